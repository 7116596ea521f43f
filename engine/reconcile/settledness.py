"""Which lanes of an environment stand as its published document says, and which have still to be converged."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from engine.model.document import DesiredDocument
from engine.model.lane import lane_slice, stacks_of
from engine.model.ledger import Ledger
from engine.model.outcome import Outcome


def unsettled_lanes(document: DesiredDocument | None, outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    """The stacks that nothing shows to be converged, the main one first. ``outcomes`` are the last ones, by stack."""
    if document is None:
        return ()
    return tuple(stack for stack in stacks_of(document) if not _is_settled(document, stack, outcomes.get(stack)))


def with_what_settled(ledger: Ledger, document: DesiredDocument | None, outcomes: Mapping[str, Outcome]) -> Ledger:
    """The ledger, that knows what the outcomes say of the document. One that was lost would never learn of a document
    that settled before: its removals would count as machines that may still run for as long as nothing is published."""
    if document is None or ledger.settled_version >= document.version or unsettled_lanes(document, outcomes):
        return ledger
    return evolve(ledger, settled_version=document.version)


def _is_settled(document: DesiredDocument, stack: str, outcome: Outcome | None) -> bool:
    if outcome is None or not outcome.is_settled:
        return False
    if outcome.slice_digest:
        return outcome.slice_digest == lane_slice(document, stack, document.environment)
    # The version alone would take a document that came back from a backup for the one that was converged.
    return (outcome.version, outcome.plan_hash) == (document.version, document.plan_hash)
