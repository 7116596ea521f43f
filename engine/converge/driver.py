"""Converging: from a published document and the machines that run to what became of each claim."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from attrs import evolve

from engine.converge import urns
from engine.converge.changes import Changes, changes_between, foundation_stands, refuse_unrecorded_removals
from engine.converge.faults import StackMissing, lost_stack
from engine.converge.ground import foundation_digest
from engine.converge.leftovers import cut_off, gone_already, told_duplicates, told_half_made
from engine.converge.outcomes import (
    broken_off,
    foundation_failures,
    launch_outcomes,
    misses_ground,
    of_all_lanes,
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
from engine.converge.stack_lock import LockWatch
from engine.converge.standing_parts import holds_no_part, parts_that_stand, with_parts
from engine.converge.state import StackState
from engine.converge.teardown import tear_down
from engine.converge.update import update_targets, update_whole
from engine.converge.urns import Urns
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.lane import lane_slice
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus

NOTHING_KNOWN: Mapping[str, str] = {}
_AS_WANTED = frozenset({OutcomeStatus.CREATED, OutcomeStatus.ADOPTED, OutcomeStatus.DELETED})


def no_other_lanes(document: DesiredDocument | None) -> Sequence[Converger]:
    """For an environment that is converged in its main stack alone."""
    return ()


class Converger:
    """Drives one lane of an environment: here its main stack. Remembers nothing itself: the stack and EC2 do.

    Safe to use from many threads, which wait for each other.
    """

    def __init__(
        self,
        cli: PulumiCli,
        environment: Environment,
        finder: FoundationFinder | None = None,
        *,
        stack: str = "",
        lanes: Callable[[DesiredDocument | None], Sequence[Converger]] = no_other_lanes,
    ) -> None:
        """`finder` looks for parts of the foundation whose making was cut off; without one they are made again.

        `stack` is the environment's own unless it is said; `lanes` gives the other ones, of a document, or without
        one all that there may be.
        """
        self.environment = environment
        self.stack = PulumiStack(cli, stack or environment.name, LockWatch())
        self._finder = finder
        self._lanes = lanes
        self._one_at_a_time = threading.Lock()
        self._is_known_to_work = False

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
        with self._one_at_a_time:
            outcome = self._converged_on_its_ground(document, instances, on_progress, known_ids, refresh=refresh)
        part = lane_slice(document, self.stack.name, self.environment.name)
        return evolve(outcome, stack=self.stack.name, slice_digest=part)

    def _converged_on_its_ground(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        known_ids: Mapping[str, str],
        *,
        refresh: bool,
    ) -> Outcome:
        outcome = self._converged(document, instances, on_progress, known_ids, refresh=refresh)
        if outcome.was_interrupted or not misses_ground(outcome):
            return outcome
        try:
            if not self._found_ground_lost(document, instances, on_progress, known_ids):
                return outcome
            second = self._converged(document, instances, on_progress, known_ids, refresh=False)
        except KeyboardInterrupt:
            return evolve(outcome, was_interrupted=True)
        except Fault as fault:
            return evolve(outcome, foundation_failures=(*outcome.foundation_failures, str(fault)))
        return with_second_try(outcome, second)

    def mend_ground(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        known_ids: Mapping[str, str],
    ) -> bool:
        """Make anew what the foundation lacks in EC2, for a lane that misses it; whether it lacked anything."""
        with self._one_at_a_time:
            lost = self._found_ground_lost(document, instances, on_progress, known_ids)
            if lost:
                self._converged(document, instances, on_progress, known_ids, refresh=False)
            return lost

    def _found_ground_lost(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        known_ids: Mapping[str, str],
    ) -> bool:
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
        state = self._state(document, instances)
        held_before = state.instances_by_claim().keys()
        if refresh and not state.is_empty:
            state = refreshed(self.stack, self.environment, on_progress)
        state = self._with_what_stands(document, state, on_progress)
        changes = self._changes(document, state, instances, known_ids)
        unseen = withheld_claims(state, changes, self.environment, datetime.now(UTC))
        withheld = {**self._waiting(document, changes), **{claim.name: cut_off(claim) for claim in unseen}}
        changes = evolve(changes, launches=tuple(one for one in changes.launches if one.name not in withheld))
        state = forget_pending(self.stack, state, {claim.name for claim in unseen})
        if changes.strays and not changes.foundation_is_stale:
            state, changes = self._with_strays(state, changes, on_progress)
        if changes.is_empty:
            return self._outcome(document, state, changes, withheld.values(), None, {}, held_before)
        finished = self._updated(document, state, changes, on_progress)
        # A stray is named by its instance, and told of by its claim.
        claim_of = {instance.id: instance.claim for instance in instances}
        return self._outcome(document, state, changes, withheld.values(), finished, claim_of, held_before)

    def _updated(
        self, document: DesiredDocument, state: StackState, changes: Changes, on_progress: OnEvent
    ) -> Finished:
        update = update_whole if changes.foundation_is_stale else update_targets
        return update(self.stack, document, self.environment, state, changes, on_progress)

    def _waiting(self, document: DesiredDocument, changes: Changes) -> Mapping[str, ClaimOutcome]:
        """Launches that cannot be made yet, by claim name: none, where the foundation is this stack's own."""
        return {}

    def preflight(self, document: DesiredDocument, instances: Sequence[Instance]) -> None:
        """What can be known before a document is published: that its stack can be read, and that converging it would
        lose nothing that no record names, in any lane. Raises Fault; changes nothing but that a missing stack may be
        made.

        The first time the CLI reads the stack, since the state's file does not tell whether its secrets can be opened.
        """
        state = self._state(document, instances)
        if not self._is_known_to_work:
            state = self.stack.exported()
            self._is_known_to_work = True
        refuse_unrecorded_removals(document, state)
        for lane in self._lanes(document):
            lane.preflight(document, instances)

    def foundation_stands(self, document: DesiredDocument) -> bool:
        """Whether the stack holds the document's foundation, so that other lanes can launch onto it. Raises Fault."""
        digest = foundation_digest(document, self.environment)
        return self.stack.exists() and foundation_stands(self.stack.state(), self.environment.name, digest)

    def adoptable(self, document: DesiredDocument, instances: Sequence[Instance]) -> Mapping[str, str]:
        """Instance ids, by claim name, of machines that run and that the stack does not hold yet: for a plain
        `pulumi up`, which has to adopt them rather than launch them again.

        Raises ConvergeRefused when declaring this document would delete a machine that no record names; other Faults.
        """
        return self._changes(document, self.stack.state(), instances).adoptions

    def destroy(self, document: DesiredDocument | None, instances: Sequence[Instance], on_progress: OnEvent) -> Outcome:
        """Delete everything that the environment's stacks hold, protected or not, and the `instances` that none knows.

        The other lanes go first, for their machines stand on this one's network. The empty stacks themselves stay.
        Settled when nothing is left. Raises Fault when it could not begin.
        """
        done: list[Outcome] = []
        held_elsewhere: set[str] = set()
        for lane in self._lanes(None):
            held_elsewhere |= lane.machine_ids()
            done.append(lane.destroy(document, instances, on_progress))
            if done[-1].was_interrupted:
                return of_all_lanes(done)
        if all(outcome.is_settled for outcome in done):
            own = [instance for instance in instances if instance.id not in held_elsewhere]
            with self._one_at_a_time:
                done.append(tear_down(self.stack, self.environment, document, own, self._finder, on_progress))
        return of_all_lanes(done)

    def machine_ids(self) -> set[str]:
        """The ids of the machines that the stack holds; none when it does not exist. Raises Fault."""
        return {one.id for one in self.stack.state().of_type(urns.INSTANCE)} if self.stack.exists() else set()

    def _state(self, document: DesiredDocument, instances: Sequence[Instance]) -> StackState:
        """The stack's state; a missing stack is made, unless machines say that there was one."""
        try:
            return self.stack.state()
        except StackMissing as missing:
            alive = [instance for instance in instances if instance.is_alive]
            if alive:
                raise lost_stack(missing, self.environment.name, document, alive) from None
            self.stack.ensure()
            return self.stack.state()

    def _with_what_stands(self, document: DesiredDocument, state: StackState, on_progress: OnEvent) -> StackState:
        """The state with the parts of the foundation that stand and that it lacks, because a run was cut off, or
        because the state was lost; a second foundation would stand in the way of the first."""
        if self._finder is not None and holds_no_part(state):
            found = parts_that_stand(document, self.environment, self._finder, self.stack.name)
            if found:
                pools = {template.node_pool for template in document.foundation.launch_templates}
                state = with_parts(self.stack, self.environment, found, pools, on_progress)
        return with_lost_parts(self.stack, self.environment, state, self._finder, on_progress)

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
        withheld: Iterable[ClaimOutcome],
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
        left = [*told_half_made(state, changes), *withheld]
        is_clean = finished is None or (finished.succeeded and finished.told.is_complete)
        return Outcome(
            environment=document.environment,
            version=document.version,
            finished_at=datetime.now(UTC),
            claims=(*done, *left, *gone_already(document, state, done, held_before), *told_duplicates(changes)),
            foundation_failures=failures,
            is_settled=is_clean
            and not left
            and not failures
            and not changes.strays
            and all(one.status in _AS_WANTED for one in done),
            was_interrupted=finished is not None and finished.was_interrupted,
        )
