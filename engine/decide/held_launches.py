"""What a plan says of the nodes that it would launch, were the stack that makes launch templates not busy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import evolve

from engine.model.environment import Environment
from engine.model.plan import BaseShortfall, LimitUse, Unplaced
from engine.model.policy import Policy
from engine.model.quantity import NODES, NOTHING, Resources
from engine.model.refusal import FoundationBusy, PoolRefusal
from engine.scheduling.problem import NewNode, Solution


def without_held(solution: Solution, held: Sequence[NewNode], policy: Policy, environment: Environment) -> Solution:
    """The solution's answers once these nodes are not launched: their pods wait, and nothing of a limit is taken."""
    if not held:
        return solution
    busy = FoundationBusy(stack=environment.name)
    waiting = tuple(Unplaced(pod, (PoolRefusal(new.node_pool, busy),)) for new in held for pod in new.pods)
    return evolve(
        solution,
        unplaced=(*solution.unplaced, *waiting),
        base_shortfalls=tuple(_shortfalls(solution, held, policy, busy)),
        limits=tuple(_less(use, held) for use in solution.limits),
    )


def _shortfalls(
    solution: Solution, held: Sequence[NewNode], policy: Policy, busy: FoundationBusy
) -> Iterator[BaseShortfall]:
    """Those that there are, with fewer nodes, and those of pools whose base capacity would have been launched whole."""
    waiting = Counter(new.node_pool for new in held if new.for_base_capacity)
    for each in solution.base_shortfalls:
        yield evolve(each, have=each.have - waiting.pop(each.node_pool, 0))
    for pool in policy.node_pools:
        if waiting[pool.name]:
            have = pool.base_nodes - waiting[pool.name]
            yield BaseShortfall(node_pool=pool.name, wanted=pool.base_nodes, have=have, refusal=busy)


def _less(use: LimitUse, held: Sequence[NewNode]) -> LimitUse:
    theirs = (Resources({**new.option.capacity, NODES: 1}) for new in held if new.node_pool == use.node_pool)
    return evolve(use, planned=use.planned - sum(theirs, NOTHING).amount(use.resource))
