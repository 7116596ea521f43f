"""Which new nodes are of pools that took fewer different values than their minValues ask."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from engine.model.plan import RelaxedMinValues
from engine.scheduling.groups import PodClass, pod_classes
from engine.scheduling.offers import PoolOffers
from engine.scheduling.problem import NewNode, Problem, Solution


def told_of_relaxing(solution: Solution, problem: Problem) -> Solution:
    """The solution, each new node with what was relaxed for its pods.

    For a pool that does not insist on its minValues; such pods would wait if it did.
    """
    lenient = [each for each in problem.pools if each.pool.min_values_best_effort]
    offers = [PoolOffers(state, problem.daemon_sets) for state in lenient]
    asking = {pool.name: pool for pool in offers if pool.min_values}
    if not any(node.node_pool in asking for node in solution.new_nodes):
        return solution
    return evolve(
        solution,
        new_nodes=tuple(
            _with_relaxed(node, asking[node.node_pool], problem) if node.node_pool in asking else node
            for node in solution.new_nodes
        ),
    )


def _with_relaxed(node: NewNode, pool: PoolOffers, problem: Problem) -> NewNode:
    theirs = frozenset(node.pods)
    classes = pod_classes((pod for pod in problem.pods if pod.key in theirs), problem.rulings)
    return evolve(node, relaxed=_relaxed(pool, classes))


def _relaxed(pool: PoolOffers, classes: Iterable[PodClass]) -> tuple[RelaxedMinValues, ...]:
    """Of each key the fewest values that were left for any of the classes."""
    fewest: dict[str, RelaxedMinValues] = {}
    for pod_class in classes:
        for key, least, values in pool.lacking_values((kind for kind, _ in pool.fitting(pod_class)), bought_now=True):
            found = RelaxedMinValues(key, min_values=least, left=len(values))
            fewest[key] = min(fewest.get(key, found), found, key=lambda each: each.left)
    return tuple(fewest[key] for key in sorted(fewest))
