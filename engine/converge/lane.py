"""Converging a lane beside the main one: a stack of claims alone, whose update waits for no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.converge.changes import Changes
from engine.converge.driver import Converger
from engine.converge.faults import StackMissing, fault_of
from engine.converge.lane_program import lacking_ground
from engine.converge.outcomes import offering_of
from engine.converge.pulumi_process import Finished, OnEvent, PulumiCli
from engine.converge.recovery import providers_only
from engine.converge.state import StackState
from engine.converge.teardown import tear_down
from engine.converge.update import update_lane
from engine.converge.urns import LAUNCHES
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus


class LaneConverger(Converger):
    """Drives the stack of one further lane. Its claims stand on what the main stack holds, as last written there."""

    def __init__(self, cli: PulumiCli, environment: Environment, main: Converger, *, stack: str) -> None:
        super().__init__(cli, environment, stack=stack)
        self._main = main

    def preflight(self, document: DesiredDocument, instances: Sequence[Instance]) -> None:
        """As in the main lane; a stack that does not exist yet has nothing to lose."""
        if self.stack.exists():
            super().preflight(document, instances)

    def destroy(self, document: DesiredDocument | None, instances: Sequence[Instance], on_progress: OnEvent) -> Outcome:
        """Delete what this stack holds; machines that no stack knows are left to the main one. Raises Fault."""
        with self._one_at_a_time:
            return tear_down(self.stack, self.environment, document, (), None, on_progress)

    def _state(self, document: DesiredDocument, instances: Sequence[Instance]) -> StackState:
        """A missing stack is made: the main one, where a wrong backend would show, has been read before."""
        try:
            return self.stack.state()
        except StackMissing:
            self.stack.ensure()
            return self.stack.state()

    def _with_what_stands(self, document: DesiredDocument, state: StackState, on_progress: OnEvent) -> StackState:
        return state

    def _waiting(self, document: DesiredDocument, changes: Changes) -> Mapping[str, ClaimOutcome]:
        ids = self._ground_ids() if changes.launches else {}
        lacking = [(claim, lacking_ground(claim, document, self.environment, ids)) for claim in changes.launches]
        return {
            claim.name: ClaimOutcome(
                claim.name,
                OutcomeStatus.SKIPPED,
                offering=offering_of(claim),
                message=f"stack {self._main.stack.name} does not hold {parts} yet; the next run looks again",
            )
            for claim, parts in lacking
            if parts
        }

    def _updated(
        self, document: DesiredDocument, state: StackState, changes: Changes, on_progress: OnEvent
    ) -> Finished:
        return update_lane(self.stack, document, self.environment, self._ground_ids(), state, changes, on_progress)

    def _found_ground_lost(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        known_ids: Mapping[str, str],
    ) -> bool:
        """The foundation is the main stack's to mend; this waits for an update of it that is under way."""
        return self._main.mend_ground(document, instances, on_progress, known_ids)

    def _with_strays(self, state: StackState, changes: Changes, on_progress: OnEvent) -> tuple[StackState, Changes]:
        """A stack that never launched anything lacks the provider by which a machine can be taken in."""
        if state.provider_reference(LAUNCHES) is None:
            program = providers_only(self.environment, self.stack.name)
            done = self.stack.operate("up", program=program, on_event=on_progress)
            if not done.succeeded:
                raise fault_of(done, self.stack.name, f"preparing stack {self.stack.name}")
            state = self.stack.state()
        return super()._with_strays(state, changes, on_progress)

    def _ground_ids(self) -> Mapping[str, str]:
        """Resource ids by URN, as the main stack's last update wrote them."""
        return {urn: one.id for urn, one in self._main.stack.state().resources.items() if one.id}
