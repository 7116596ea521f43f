"""What holds for every problem."""

from __future__ import annotations

from random import Random
from typing import TypeVar

import pytest
from attrs import evolve
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.model.environment import Caps
from engine.model.pod import Pod, PodKey
from engine.model.quantity import Resources
from engine.scheduling.problem import Problem
from engine.scheduling.solve import solve
from tests.scheduling.problems import after, burst, existing_nodes, pods, problems
from tests.scheduling.solution_checker import faults

T = TypeVar("T")
_QUICK = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_QUICK
@given(problems())
def test_kubernetes_limits_and_caps_accept_every_solution(problem: Problem) -> None:
    assert faults(problem, solve(problem)) == []


@_QUICK
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(problem: Problem, random: Random) -> None:
    def shuffled(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(values, len(values)))

    mixed = Problem(
        pods=shuffled(problem.pods),
        existing=shuffled(problem.existing),
        pools=shuffled(tuple(evolve(state, options=shuffled(state.options)) for state in problem.pools)),
        daemon_sets=shuffled(problem.daemon_sets),
        caps=problem.caps,
    )
    assert solve(mixed) == solve(problem)


@_QUICK
@given(problems())
def test_a_plan_asked_again_while_its_nodes_launch_launches_nothing(problem: Problem) -> None:
    first = solve(problem)
    # A cap holds back what the next pass then launches; that is no unrest.
    assume(not any(told.refusal.code == "cap-reached" for pod in first.unplaced for told in pod.refusals))
    assume(not any(short.refusal.code == "cap-reached" for short in first.base_shortfalls))
    second = solve(after(problem, first))
    assert second.new_nodes == ()
    assert {pod.pod for pod in second.unplaced} == {pod.pod for pod in first.unplaced}


@pytest.mark.parametrize("seed", range(3))
def test_a_large_mixed_burst_is_launched_once(seed: int) -> None:
    problem = burst(pods=400, classes=40, seed=seed)
    first = solve(problem)
    assert faults(problem, first) == []
    assert first.unplaced == ()
    assert solve(after(problem, first)).new_nodes == ()


@_QUICK
@given(pods(), st.integers(1, 9), st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data())
def test_more_room_never_strands_a_pod_of_its_class(
    shape: Pod, count: int, extra: list[int], data: st.DataObject
) -> None:
    alike = tuple(evolve(shape, key=PodKey("default", f"pod-{number}")) for number in range(count))
    nodes = [data.draw(existing_nodes(f"node-{number}")) for number in range(len(extra))]
    roomier = [
        evolve(node, room=node.room + Resources({"cpu": 1000 * more, "memory": more * 2**33, "pods": more}))
        for node, more in zip(nodes, extra, strict=True)
    ]
    before = solve(Problem(pods=alike, existing=tuple(nodes), pools=()))
    now = solve(Problem(pods=alike, existing=tuple(roomier), pools=()))
    assert len(now.placements) >= len(before.placements)


@_QUICK
@given(problems())
def test_no_pod_is_held_back_by_a_cap_that_is_not_used_up(problem: Problem) -> None:
    freed = evolve(problem, caps=Caps(launches=1000))
    told = [each.refusal.code for pod in solve(freed).unplaced for each in pod.refusals]
    assert "cap-reached" not in told
