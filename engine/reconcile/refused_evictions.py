"""Pods that are asked to leave a node and may not: a PodDisruptionBudget holds them, and so the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model.blocked_eviction import BlockedEviction
from engine.model.eviction import Eviction, EvictionStatus, RefusedEviction
from engine.model.fault import Fault
from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import PodKey
from engine.reconcile.troubles import Troubles

_HINTS = {
    EvictionStatus.REFUSED_BY_BUDGET: "it is asked again until its PodDisruptionBudget allows it",
    EvictionStatus.SEVERAL_BUDGETS: "let one PodDisruptionBudget alone select the pod",
}


class RefusedEvictions:
    """Tells of each pod on each node once, and once that it is over."""

    def __init__(self, troubles: Troubles) -> None:
        self._troubles = troubles
        self._standing: dict[tuple[str, PodKey], RefusedEviction] = {}
        self._blocked: Mapping[PodKey, BlockedEviction] = {}

    def answered(self, node: str, answers: Iterable[Eviction]) -> None:
        """What the API server said of the node's pods just now."""
        for answer in answers:
            asked = (node, answer.pod)
            before = self._standing.get(asked)
            if not answer.is_refused:
                self._over(asked)
            elif before is None or before.answer.status is not answer.status:
                # Its words name how many pods are healthy at the moment, which is no other refusal.
                self._standing[asked] = RefusedEviction(node, answer)
                self._troubles.tell(_subject(asked), _fault(self._standing[asked], self._blocked.get(answer.pod)))

    def look(self, plan: Plan, blocked: Mapping[PodKey, BlockedEviction]) -> None:
        """A pod that the plan asks no more to leave is over, whatever became of it. ``blocked`` tells, until the next
        look, what budgets hold pods."""
        self._blocked = blocked
        asked = {
            (removal.record.node, pod)
            for removal in plan.removals
            if removal.phase is RemovalPhase.MARK
            for pod in (*removal.pods, *(each.pod for each in removal.forced))
        }
        for each in [each for each in self._standing if each not in asked]:
            self._over(each)

    def standing(self) -> tuple[RefusedEviction, ...]:
        """Those that are refused now, in the order in which it began."""
        return tuple(self._standing.values())

    def _over(self, asked: tuple[str, PodKey]) -> None:
        if self._standing.pop(asked, None) is not None:
            node, pod = asked
            self._troubles.over(_subject(asked), f"pod {pod} does not hold node {node} any more")


def refusal_line(refused: RefusedEviction, blocked: BlockedEviction | None = None) -> str:
    """What holds which node, and why. ``blocked`` names the budgets, which the API server does not where there are
    several."""
    answer = refused.answer
    words = answer.message or answer.status.value
    if answer.status is EvictionStatus.SEVERAL_BUDGETS and blocked is not None:
        words = str(blocked)
    return f"pod {answer.pod} stays on node {refused.node}, which is to leave: {words}"


def _fault(refused: RefusedEviction, blocked: BlockedEviction | None) -> Fault:
    return Fault(refusal_line(refused, blocked), _HINTS.get(refused.answer.status, "it is asked again"))


def _subject(asked: tuple[str, PodKey]) -> str:
    node, pod = asked
    return f"eviction of {pod} from {node}"
