"""What has to be told of claims besides what an update did with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.converge.changes import Changes
from engine.converge.outcomes import DUPLICATE, failure, offering_of
from engine.converge.state import StackState
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.outcome import ClaimOutcome, OutcomeStatus


def told_half_made(state: StackState, changes: Changes) -> list[ClaimOutcome]:
    """Machines whose making failed half-way in an earlier update, and that EC2 does not show alive: the next plan
    lets their claims go once EC2 says that they are gone."""
    held = state.instances_by_claim()
    return [failure(name, "\n".join(held[name].init_errors), instance_id=held[name].id) for name in changes.half_made]


def cut_off(claim: Claim) -> ClaimOutcome:
    message = "its launch was cut off a moment ago and EC2 may not show the machine yet; the next run looks again"
    return ClaimOutcome(claim.name, OutcomeStatus.UNKNOWN, offering=offering_of(claim), message=message)


def gone_already(
    document: DesiredDocument, state: StackState, told_of: Sequence[ClaimOutcome], held_before: Collection[str]
) -> list[ClaimOutcome]:
    """Recorded removals of machines that the stack held when this run began and that a refresh found gone.

    A record is carried from document to document until it is settled, so its machine may have left long ago: that
    was told of then.
    """
    told = state.instances_by_claim().keys() | {one.claim for one in told_of}
    gone = ({record.claim for record in document.removals} & set(held_before)) - told
    return [ClaimOutcome(name, OutcomeStatus.DELETED) for name in sorted(gone)]


def told_duplicates(changes: Changes) -> list[ClaimOutcome]:
    """A second machine of a claim is only told of: pods may run on it, and no record lets it go."""
    return [
        ClaimOutcome(
            one.claim,
            OutcomeStatus.UNKNOWN,
            one.instance_id,
            code=DUPLICATE,
            message=(
                f"instance {one.instance_id} carries the same claim tag as {one.kept}, which is the one that is managed"
                if one.kept
                else f"instance {one.instance_id} carries the tag of a claim whose own machine has left, and is not it"
            )
            + "; drain and terminate it by hand",
        )
        for one in changes.duplicates
    ]
