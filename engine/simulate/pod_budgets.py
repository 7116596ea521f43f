"""PodDisruptionBudgets in a simulated cluster: what their controller counts, and what an eviction asks of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from engine.model.pod import Pod, PodPhase
from engine.model.workload import PodDisruptionBudget


def counted(budgets: Iterable[PodDisruptionBudget], pods: Sequence[Pod]) -> tuple[PodDisruptionBudget, ...]:
    """The budgets with their controller's count of now, in the order given."""
    return tuple(
        evolve(each, disruptions_allowed=_allowed(each, [pod for pod in pods if covers(each, pod)]), is_observed=True)
        for each in budgets
    )


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a budget is about a pod."""
    if budget.selector is None or budget.key.namespace != pod.key.namespace or pod.is_finished:
        return False
    return all(need.admits(pod.labels.get(need.key)) for need in budget.selector)


def _allowed(budget: PodDisruptionBudget, pods: Sequence[Pod]) -> int:
    """How many more may go: the healthy less those that have to be. Shares round up, as in Kubernetes."""
    healthy = sum(pod.phase is PodPhase.RUNNING and not pod.deleting for pod in pods)
    if budget.max_unavailable is not None:
        return max(0, healthy - (len(pods) - _number(budget.max_unavailable, len(pods))))
    return max(0, healthy - _number(budget.min_available or "0", len(pods)))


def _number(written: str, of: int) -> int:
    if written.endswith("%"):
        return -(-of * int(written.removesuffix("%")) // 100)
    return int(written)
