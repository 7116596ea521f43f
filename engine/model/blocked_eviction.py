"""Which pods the eviction API would refuse to let go at this moment, told from what was seen of their budgets.

Source of the rules: kube-apiserver's eviction of pods (pkg/registry/core/pod/storage/eviction.go). The API server has
the last word; until it is asked, this is the best that can be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from engine.model.drain import is_drained
from engine.model.eviction import EvictionStatus
from engine.model.pod import Pod, PodKey, PodPhase
from engine.model.workload import ObjectKey, PodDisruptionBudget

_Selected = tuple[PodDisruptionBudget, ...]


@frozen
class BlockedEviction:
    """``status`` is what the API server would answer: REFUSED_BY_BUDGET, which passes with time, or SEVERAL_BUDGETS,
    which needs a person. ``budgets`` are those that select the pod, in key order."""

    status: EvictionStatus
    budgets: tuple[ObjectKey, ...]

    def __str__(self) -> str:
        named = ", ".join(map(str, self.budgets))
        if self.status is EvictionStatus.SEVERAL_BUDGETS:
            return (
                f"{len(self.budgets)} PodDisruptionBudgets select it ({named}), and the eviction API wants one at most"
            )
        return f"PodDisruptionBudget {named} allows no disruption now"


def blocked_evictions(pods: Iterable[Pod], budgets: Iterable[PodDisruptionBudget]) -> Mapping[PodKey, BlockedEviction]:
    """For each bound pod that a drain of its node would ask to leave and that its budgets hold: what holds it.

    Each pod is judged by itself. Two that one budget protects may both be free here although it lets only one go.
    """
    by_namespace: dict[str, list[PodDisruptionBudget]] = {}
    for budget in sorted(budgets, key=lambda each: each.key):
        by_namespace.setdefault(budget.key.namespace, []).append(budget)
    found: dict[PodKey, BlockedEviction] = {}
    if not by_namespace:
        return found
    known: dict[tuple[str, frozenset[tuple[str, str]]], _Selected] = {}
    for pod in pods:
        own = by_namespace.get(pod.key.namespace)
        if own is None or pod.node_name is None or _asks_no_budget(pod) or not is_drained(pod):
            continue
        # Pods of one set have the same labels.
        alike = pod.key.namespace, frozenset(pod.labels.items())
        if alike not in known:
            known[alike] = tuple(budget for budget in own if budget.selects(pod.labels))
        if (blocked := _blocked(pod, known[alike])) is not None:
            found[pod.key] = blocked
    return found


def _asks_no_budget(pod: Pod) -> bool:
    """Whether the API server lets the pod go whatever its budgets say."""
    return pod.deleting or pod.is_finished or pod.phase is PodPhase.PENDING


def _blocked(pod: Pod, selected: _Selected) -> BlockedEviction | None:
    names = tuple(budget.key for budget in selected)
    if len(selected) > 1:
        return BlockedEviction(EvictionStatus.SEVERAL_BUDGETS, names)
    if not selected or selected[0].lets_go(is_ready=pod.ready_at is not None):
        return None
    return BlockedEviction(EvictionStatus.REFUSED_BY_BUDGET, names)
