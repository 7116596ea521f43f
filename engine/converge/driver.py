"""Converging: from a published document and the machines that run to what became of each claim."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import evolve

from engine.converge import urns
from engine.converge.changes import Changes, changes_between, refuse_unrecorded_removals
from engine.converge.faults import StackMissing
from engine.converge.ground import foundation_digest
from engine.converge.outcomes import (
    DUPLICATE,
    broken_off,
    failure,
    foundation_failures,
    launch_outcomes,
    misses_ground,
    offering_of,
    removal_outcomes,
    settled_by_state,
    with_second_try,
)
from engine.converge.pulumi_process import Finished, OnEvent, PulumiCli
from engine.converge.pulumi_stack import PulumiStack
from engine.converge.recovery import (
    FoundationFinder,
    forget_pending,
    refreshed,
    refreshed_ground,
    take_in,
    with_lost_parts,
    withheld_claims,
)
from engine.converge.standing_parts import holds_no_part, parts_that_stand, with_parts
from engine.converge.state import StackState
from engine.converge.teardown import tear_down
from engine.converge.toolchain import Toolchain
from engine.converge.update import update_targets, update_whole
from engine.converge.urns import Urns
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus

NOTHING_KNOWN: Mapping[str, str] = {}
_AS_WANTED = frozenset({OutcomeStatus.CREATED, OutcomeStatus.ADOPTED, OutcomeStatus.DELETED})


class Converger:
    """Drives the stack of one environment. Remembers nothing itself: the stack and EC2 do."""

    def __init__(
        self,
        toolchain: Toolchain,
        project: Path,
        environment: Environment,
        variables: Mapping[str, str],
        finder: FoundationFinder | None = None,
    ) -> None:
        """`project` holds Pulumi.yaml; `variables` are the whole environment of the CLI's processes.

        `finder` looks for parts of the foundation whose making was cut off; without one they are made again.
        """
        self.environment = environment
        self._finder = finder
        self.stack = PulumiStack(PulumiCli(toolchain.pulumi, project, variables), environment.name)

    def ensure_stack(self) -> None:
        """Make the stack when its backend lacks it. Raises Fault."""
        self.stack.ensure()

    def converge(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        *,
        refresh: bool = False,
        known_ids: Mapping[str, str] = NOTHING_KNOWN,
    ) -> Outcome:
        """Make the stack what the document says; with nothing to do, no update runs at all.

        When AWS answers that a part of the foundation exists no more, the foundation is compared with EC2 and what is
        lacking is made anew, once, in the same call.

        `instances` are the environment's, read just before and under the lease: a claim whose machine runs is
        adopted, never launched twice. `refresh` first compares the state with EC2, for an environment whose network
        is gone. `known_ids` are the remembered instance ids by claim name: a machine that its stack does not know
        leaves with its claim only when it is that one, or the only one. `on_progress` is given each Event as it
        comes, in this thread.

        Raises ConvergeRefused, before anything is changed, when something would be lost that no record names; other
        Faults when an update could not begin; KeyboardInterrupt when a person broke off what went before it. An
        update that was broken off has an outcome, which says so.
        """
        outcome = self._converged(document, instances, on_progress, known_ids, refresh=refresh)
        if outcome.was_interrupted or not misses_ground(outcome):
            return outcome
        try:
            if not self._ground_was_lost(on_progress):
                return outcome
            second = self._converged(document, instances, on_progress, known_ids, refresh=False)
        except KeyboardInterrupt:
            return evolve(outcome, was_interrupted=True)
        except Fault as fault:
            return evolve(outcome, foundation_failures=(*outcome.foundation_failures, str(fault)))
        return with_second_try(outcome, second)

    def _ground_was_lost(self, on_progress: OnEvent) -> bool:
        """Compare the foundation with EC2: whether anything that the state held is gone. Raises Fault."""
        before = self.stack.state()
        after = refreshed_ground(self.stack, self.environment, before, on_progress)
        return bool(before.resources.keys() - after.resources.keys())

    def _converged(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        known_ids: Mapping[str, str],
        *,
        refresh: bool,
    ) -> Outcome:
        state = self._state(instances)
        held_before = state.instances_by_claim().keys()
        if refresh and not state.is_empty:
            state = refreshed(self.stack, self.environment, on_progress)
        state = self._with_standing_parts(document, state, on_progress)
        state = with_lost_parts(self.stack, self.environment, state, self._finder, on_progress)
        changes = self._changes(document, state, instances, known_ids)
        withheld = withheld_claims(state, changes, self.environment, datetime.now(UTC))
        changes = evolve(
            changes,
            launches=tuple(one for one in changes.launches if one not in withheld),
        )
        state = forget_pending(self.stack, state, {claim.name for claim in withheld})
        if changes.strays and not changes.foundation_is_stale:
            state, changes = self._with_strays(state, changes, on_progress)
        if changes.is_empty:
            return self._outcome(document, state, changes, withheld, None, {}, held_before)
        update = update_whole if changes.foundation_is_stale else update_targets
        finished = update(self.stack, document, self.environment, state, changes, on_progress)
        # A stray is named by its instance, and told of by its claim.
        claim_of = {instance.id: instance.claim for instance in instances}
        return self._outcome(document, state, changes, withheld, finished, claim_of, held_before)

    def preflight(self, document: DesiredDocument, instances: Sequence[Instance]) -> None:
        """What can be known before a document is published: that its stack can be read, and that converging it would
        lose nothing that no record names. Raises Fault; changes nothing but that a missing stack may be made.
        """
        refuse_unrecorded_removals(document, self._state(instances))

    def adoptable(self, document: DesiredDocument, instances: Sequence[Instance]) -> Mapping[str, str]:
        """Instance ids, by claim name, of machines that run and that the stack does not hold yet: for a plain
        `pulumi up`, which has to adopt them rather than launch them again.

        Raises ConvergeRefused when declaring this document would delete a machine that no record names; other Faults.
        """
        return self._changes(document, self.stack.state(), instances).adoptions

    def destroy(self, document: DesiredDocument | None, instances: Sequence[Instance], on_progress: OnEvent) -> Outcome:
        """Delete everything that the stack holds, protected or not, and the `instances` that it does not know.

        The empty stack itself stays. Settled when nothing is left. Raises Fault when it could not begin.
        """
        return tear_down(self.stack, self.environment, document, instances, self._finder, on_progress)

    def _state(self, instances: Sequence[Instance]) -> StackState:
        """The stack's state; a missing stack is made, unless machines say that there was one."""
        try:
            return self.stack.state()
        except StackMissing as missing:
            alive = [instance.id for instance in instances if instance.is_alive]
            if alive:
                raise StackMissing(
                    f"{missing}, but {len(alive)} instance(s) of environment {self.environment.name!r} run",
                    (
                        "check that PULUMI_BACKEND_URL, or `backend` in the stack file, names the right backend",
                        f"if the stack is really lost: nodewright env {self.environment.name} makes an empty one, "
                        "into which the next up adopts the instances",
                    ),
                ) from None
            self.stack.ensure()
            return self.stack.state()

    def _with_standing_parts(self, document: DesiredDocument, state: StackState, on_progress: OnEvent) -> StackState:
        """A state that was lost, with the foundation that stands all the same; a second one would stand in its way."""
        if self._finder is None or not holds_no_part(state):
            return state
        found = parts_that_stand(document, self.environment, self._finder, self.stack.name)
        if not found:
            return state
        pools = {template.node_pool for template in document.foundation.launch_templates}
        return with_parts(self.stack, self.environment, found, pools, on_progress)

    def _changes(
        self,
        document: DesiredDocument,
        state: StackState,
        instances: Sequence[Instance],
        known_ids: Mapping[str, str] = NOTHING_KNOWN,
    ) -> Changes:
        return changes_between(
            document,
            state,
            instances,
            environment=self.environment.name,
            foundation_digest=foundation_digest(document, self.environment),
            known_ids=known_ids,
        )

    def _with_strays(self, state: StackState, changes: Changes, on_progress: OnEvent) -> tuple[StackState, Changes]:
        """Machines that were let go while the stack did not know them leave like any other."""
        ids = tuple(stray.instance_id for stray in changes.strays)
        state = take_in(self.stack, self.environment, state, ids, on_progress)
        taken_in = tuple(one.urn for one in state.strays() if one.urn not in changes.removals)
        return state, evolve(changes, removals=(*changes.removals, *taken_in), strays=())

    def _outcome(
        self,
        document: DesiredDocument,
        state: StackState,
        changes: Changes,
        withheld: Sequence[Claim],
        finished: Finished | None,
        claim_of: Mapping[str, str],
        held_before: Collection[str],
    ) -> Outcome:
        done: list[ClaimOutcome] = []
        failures: tuple[str, ...] = ()
        if finished is not None:
            named = {claim.name: Urns(self.stack.name).claim(claim) for claim in changes.declared}
            leaving = {urn: claim_of.get(urns.name_of(urn)) or urns.name_of(urn) for urn in changes.removals}
            done = [
                *launch_outcomes(changes.declared, named, finished.told, changes.adoptions),
                *removal_outcomes(leaving, finished.told),
            ]
            if any(one.status is OutcomeStatus.UNKNOWN for one in done):
                done = settled_by_state(done, self.stack.state(), leaving)
            if finished.was_interrupted:
                done = broken_off(done)
            failures = foundation_failures(finished.told, (*named.values(), *changes.removals))
        left = [*_half_made(state, changes), *(_withheld(claim) for claim in withheld)]
        is_clean = finished is None or (finished.succeeded and finished.told.is_complete)
        return Outcome(
            environment=document.environment,
            version=document.version,
            finished_at=datetime.now(UTC),
            claims=(*done, *left, *_gone_already(document, state, done, held_before), *_duplicates(changes)),
            foundation_failures=failures,
            is_settled=is_clean
            and not left
            and not failures
            and not changes.strays
            and all(one.status in _AS_WANTED for one in done),
            was_interrupted=finished is not None and finished.was_interrupted,
        )


def _half_made(state: StackState, changes: Changes) -> list[ClaimOutcome]:
    """Machines whose making failed half-way in an earlier update, and that EC2 does not show alive: the next plan
    lets their claims go once EC2 says that they are gone."""
    held = state.instances_by_claim()
    return [failure(name, "\n".join(held[name].init_errors), instance_id=held[name].id) for name in changes.half_made]


def _withheld(claim: Claim) -> ClaimOutcome:
    message = "its launch was cut off a moment ago and EC2 may not show the machine yet; the next run looks again"
    return ClaimOutcome(claim.name, OutcomeStatus.UNKNOWN, offering=offering_of(claim), message=message)


def _gone_already(
    document: DesiredDocument, state: StackState, told_of: Sequence[ClaimOutcome], held_before: Collection[str]
) -> list[ClaimOutcome]:
    """Recorded removals of machines that the stack held when this run began and that a refresh found gone.

    A record is carried from document to document until it is settled, so its machine may have left long ago: that
    was told of then.
    """
    told = state.instances_by_claim().keys() | {one.claim for one in told_of}
    gone = ({record.claim for record in document.removals} & set(held_before)) - told
    return [ClaimOutcome(name, OutcomeStatus.DELETED) for name in sorted(gone)]


def _duplicates(changes: Changes) -> list[ClaimOutcome]:
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
