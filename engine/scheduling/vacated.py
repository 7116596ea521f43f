"""A problem as it is once some nodes are gone and their pods wait for another place."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from engine.model.environment import Caps
from engine.model.money import UsdPerHour
from engine.model.quantity import NOTHING
from engine.scheduling.movable import MovableNode
from engine.scheduling.problem import PoolState, Problem

# Caps are of one pass; a repacking may take several.
UNCAPPED = Caps(launches=10**9, removals=10**9, added_usd_per_hour=UsdPerHour(10**15))


def vacated(problem: Problem, going: Sequence[MovableNode]) -> Problem:
    """The problem without these nodes: their pods are pending, and limits count them no more.

    What rules' ceilings count stays as it was: they were asked about a world that has the nodes, so they may admit
    less than they would once these are gone.
    """
    if not going:
        return problem
    names = {(each.node, each.claim) for each in going}
    nodes = {each.node for each in going if each.node is not None}
    moved = {pod.key for each in going for pod in each.pods}
    return evolve(
        problem,
        pods=(*problem.pods, *(pod for each in going for pod in each.pods)),
        existing=tuple(each for each in problem.existing if (each.node, each.claim) not in names),
        pools=tuple(_pool_without(state, going) for state in problem.pools),
        standing=tuple(
            evolve(each, pods=tuple(pod for pod in each.pods if pod.key not in moved))
            if any(pod.key in moved for pod in each.pods)
            else each
            for each in problem.standing
            if each.name not in nodes
        ),
    )


def _pool_without(state: PoolState, going: Sequence[MovableNode]) -> PoolState:
    own = [each for each in going if each.node_pool == state.pool.name]
    if not own:
        return state
    gone = sum((each.capacity for each in own), NOTHING)
    return evolve(state, used=state.used - gone, nodes=state.nodes - len(own))
