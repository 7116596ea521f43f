"""What a plan says of the nodes that it would launch, were the stack that makes launch templates not busy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from engine.model.environment import Environment
from engine.model.money import FREE
from engine.model.plan import BaseShortfall, LimitUse, Unplaced
from engine.model.pod import PodKey
from engine.model.policy import Policy
from engine.model.quantity import NODES, NOTHING, Resources
from engine.model.refusal import FoundationBusy, PoolRefusal
from engine.scheduling.ceilings import Ceiling
from engine.scheduling.problem import NewNode, Problem, Solution


def without_held(
    solution: Solution,
    held: Sequence[NewNode],
    problem: Problem,
    policy: Policy,
    environment: Environment,
) -> Solution:
    """The solution's answers once these nodes are not launched: their pods wait, nothing of a limit is taken, and no
    bound is proven for the rest."""
    if not held:
        return solution
    busy = FoundationBusy(stack=environment.name)
    waiting = tuple(Unplaced(pod, (PoolRefusal(new.node_pool, busy),)) for new in held for pod in new.pods)
    return evolve(
        solution,
        unplaced=(*solution.unplaced, *waiting),
        base_shortfalls=tuple(_shortfalls(solution, held, policy, busy)),
        limits=tuple(_less(use, held, problem) for use in solution.limits),
        packing=None,
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


def _less(use: LimitUse, held: Sequence[NewNode], problem: Problem) -> LimitUse:
    if not use.rule:
        theirs = (Resources({**new.option.capacity, NODES: 1}) for new in held if new.node_pool == use.node_pool)
        return evolve(use, planned=use.planned - sum(theirs, NOTHING).amount(use.resource))
    requests = {pod.key: pod.placing.requests for pod in problem.pods}
    ceiling = next(each for each in problem.ceilings if (each.rule, each.group) == (use.rule, use.group))
    return evolve(use, planned=use.planned - sum(_taken(ceiling, new, requests) for new in held))


def _taken(ceiling: Ceiling, new: NewNode, requests: Mapping[PodKey, Resources]) -> int:
    """What a new node with its pods takes of a ceiling."""
    price = new.option.usd_per_hour or FREE
    if ceiling.pods is None:
        return ceiling.of_node(new.option.capacity, price) if new.node_pool in ceiling.node_pools else 0
    theirs = ceiling.pods.get(new.node_pool, ceiling.elsewhere).intersection(new.pods)
    if ceiling.counts_nodes:
        return ceiling.of_node(NOTHING, price) if theirs else 0
    return sum(ceiling.of_pod(requests[pod]) for pod in theirs)
