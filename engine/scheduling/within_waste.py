"""The answer to a problem within what pools accept of unused GPUs.

A node is judged once it is known who goes there. One that wastes too much is not launched: its pods get another, or a
reason. Where no pods that wait could use enough of a type's GPUs together, the type is out from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from engine.model.pod import PodKey
from engine.model.policy import NodePool
from engine.model.quantity import NOTHING, Resources
from engine.scheduling.problem import NewNode, Problem, Solution
from engine.scheduling.solve import solve
from engine.scheduling.steps import MOST_STEPS
from engine.scheduling.terms import ANY_TERMS, Terms
from engine.scheduling.waste import devices, exceeds_waste

# So often one type is taken from the pods that would have wasted it; then all of the pool's are, from everybody.
_PATIENCE = 12

# Pools and instance types.
_Types = frozenset[tuple[str, str]]


def answered(problem: Problem, most_steps: int = MOST_STEPS) -> Solution:
    """The answer in which no new node wastes more GPUs than its pool accepts, base capacity apart."""
    requests = {pod.key: pod.placing.requests for pod in problem.pods}
    pools = {state.pool.name: state.pool for state in problem.pools if state.pool.max_gpu_waste is not None}
    if pools:
        problem = _barring(problem, dict.fromkeys(requests, _hopeless(problem, requests)))
    solution = solve(problem, most_steps)
    rounds = 0
    while wasteful := [new for new in solution.new_nodes if _is_wasteful(new, pools, requests)]:
        rounds += 1
        found: dict[PodKey, _Types] = {}
        for new in wasteful:
            out = frozenset({(new.node_pool, new.option.instance_type.name)})
            for pod in new.pods:
                found[pod] = found.get(pod, frozenset()) | out
        if rounds > _PATIENCE:
            found = dict.fromkeys(requests, _accelerated(problem, pools))
        problem = _barring(problem, found)
        solution = solve(problem, most_steps)
    return evolve(solution, new_nodes=tuple(_with_waste(new, requests) for new in solution.new_nodes))


def _is_wasteful(new: NewNode, pools: Mapping[str, NodePool], requests: Mapping[PodKey, Resources]) -> bool:
    pool = pools.get(new.node_pool)
    if pool is None or new.for_base_capacity:
        return False
    return exceeds_waste(pool, new.option, _together(new.pods, requests))


def _with_waste(new: NewNode, requests: Mapping[PodKey, Resources]) -> NewNode:
    """The new node with the number of its GPUs that go unused; base capacity without pods wastes none."""
    there = devices(new.option)
    if not (there and new.pods):
        return new
    together = _together(new.pods, requests)
    unused = min(max(0, has - together.amount(name)) for name, has in there.items())
    return evolve(new, gpus_wasted=unused) if unused else new


def _together(pods: Iterable[PodKey], requests: Mapping[PodKey, Resources]) -> Resources:
    return sum((requests[pod] for pod in pods), NOTHING)


def _hopeless(problem: Problem, requests: Mapping[PodKey, Resources]) -> _Types:
    """The types of which even all pods that wait, together on one node, would waste too much."""
    asked: dict[str, int] = {}
    for each in requests.values():
        for name in each.accelerators():
            asked[name] = asked.get(name, 0) + each[name]
    return frozenset(
        (state.pool.name, option.instance_type.name)
        for state in problem.pools
        for option in state.options
        if exceeds_waste(state.pool, option, Resources(asked))
    )


def _accelerated(problem: Problem, pools: Mapping[str, NodePool]) -> _Types:
    return frozenset(
        (state.pool.name, option.instance_type.name)
        for state in problem.pools
        if state.pool.name in pools
        for option in state.options
        if devices(option)
    )


def _barring(problem: Problem, found: Mapping[PodKey, _Types]) -> Problem:
    terms = dict(problem.terms)
    known: dict[tuple[Terms, _Types], Terms] = {}
    for pod, types in found.items():
        before = terms.get(pod, ANY_TERMS)
        if types:
            terms[pod] = known.setdefault((before, types), evolve(before, wasteful=before.wasteful | types))
    return evolve(problem, terms=terms)
