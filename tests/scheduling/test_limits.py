"""Limits are exact and caps hold (cases 1 and 21)."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.model.environment import Caps
from engine.model.plan import LimitUse
from engine.model.pod import Pod
from engine.model.quantity import Resources
from engine.model.refusal import CapReached, LimitReached
from engine.scheduling.problem import Problem, Solution
from engine.scheduling.solve import solve
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    M5_LARGE,
    node_pool,
    pod,
    pool_state,
    taint,
    toleration,
    usd,
)


def gpu_pods(count: int, first: int = 0) -> list[Pod]:
    return [pod(f"pod-{first + number:03}", cpu="2", gpu=1) for number in range(count)]


def refused(solution: Solution) -> list[object]:
    return [told.refusal for unplaced in solution.unplaced for told in unplaced.refusals]


def test_a_limit_on_nodes_counts_the_nodes_of_the_same_plan() -> None:
    state = pool_state(node_pool(limits={"nodes": 1}), types=[G5_XLARGE])
    solution = solve(Problem(tuple(gpu_pods(2)), (), (state,)))
    assert len(solution.new_nodes) == 1
    assert refused(solution) == [LimitReached("nodes", limit=1, used=0, planned=1, needed=1)]


@pytest.mark.parametrize("batches", [(306,), (101, 101, 60, 44), (1, 300, 5)])
def test_a_limit_of_nodes_holds_under_any_split_into_batches(batches: tuple[int, ...]) -> None:
    pool, launched, first = node_pool(limits={"nodes": 208}), 0, 0
    for size in batches:
        state = pool_state(pool, types=[G5_XLARGE], used={"nodes": launched, "cpu": 4 * launched}, nodes=launched)
        problem = Problem(tuple(gpu_pods(size, first)), (), (state,), caps=Caps(launches=1000))
        launched, first = launched + len(solve(problem).new_nodes), first + size
    assert launched == 208


def test_a_limit_is_told_apart_from_types_that_do_not_fit() -> None:
    state = pool_state(node_pool(limits={"nvidia.com/gpu": 1}), used={"nvidia.com/gpu": 1, "nodes": 1})
    assert refused(solve(Problem(tuple(gpu_pods(1)), (), (state,)))) == [
        LimitReached("nvidia.com/gpu", limit=1, used=1, planned=0, needed=1)
    ]


def test_limits_count_capacity_and_not_requests() -> None:
    state = pool_state(node_pool(limits={"cpu": "11"}), types=[G5_XLARGE])
    solution = solve(Problem(tuple(gpu_pods(4)), (), (state,)))
    assert len(solution.new_nodes) == 2
    assert solution.limits == (LimitUse("gpu", "cpu", limit=11_000, used=0, planned=8_000),)
    assert refused(solution)[0] == LimitReached("cpu", limit=11_000, used=0, planned=8_000, needed=4_000)


def test_near_the_limit_a_type_that_is_within_it_is_taken() -> None:
    state = pool_state(
        node_pool(limits={"nvidia.com/gpu": 2}),
        types=[G5_2XLARGE, G5_12XLARGE],
        prices={
            "g5.2xlarge": "1.2",
            "g5.12xlarge": "1.3",
        },
    )
    solution = solve(Problem(tuple(gpu_pods(3)), (), (state,)))
    assert Counter(node.option.instance_type.name for node in solution.new_nodes) == {"g5.2xlarge": 2}
    assert len(solution.unplaced) == 1


def test_a_full_pool_lets_pods_fall_to_the_next_one() -> None:
    first = pool_state(node_pool("first", weight=10, limits={"nodes": 1}), types=[G5_XLARGE])
    second = pool_state(node_pool("second"), types=[G5_XLARGE])
    solution = solve(Problem(tuple(gpu_pods(3)), (), (first, second)))
    assert Counter(node.node_pool for node in solution.new_nodes) == {"first": 1, "second": 2}


def test_a_limit_that_is_broken_already_bars_only_what_adds_to_it() -> None:
    state = pool_state(node_pool(limits={"nvidia.com/gpu": 1}), types=[G5_XLARGE, M5_LARGE], used={"nvidia.com/gpu": 4})
    solution = solve(Problem((pod("cpu"), *gpu_pods(1)), (), (state,)))
    assert [node.option.instance_type.name for node in solution.new_nodes] == ["m5.large"]
    assert refused(solution) == [LimitReached("nvidia.com/gpu", limit=1, used=4, planned=0, needed=1)]


def test_the_limits_in_force_are_the_states_and_not_the_files() -> None:
    state = pool_state(node_pool(limits={"nodes": 1}), limits=Resources({"nodes": 2}), types=[G5_XLARGE])
    assert len(solve(Problem(tuple(gpu_pods(3)), (), (state,))).new_nodes) == 2


def test_base_capacity_is_bounded_by_the_limit_that_pods_use_too() -> None:
    state = pool_state(node_pool(limits={"nodes": 2}, min_nodes=3), types=[G5_XLARGE])
    assert len(solve(Problem(tuple(gpu_pods(1)), (), (state,))).new_nodes) == 2


def test_the_cap_on_launches_leaves_the_rest_for_the_next_pass() -> None:
    problem = Problem(tuple(gpu_pods(3)), (), (pool_state(),), caps=Caps(launches=2))
    solution = solve(problem)
    assert len(solution.new_nodes) == 2
    assert refused(solution) == [CapReached(cap="launches", limit="2")]


def test_the_cap_on_added_dollars_leaves_the_rest_for_the_next_pass() -> None:
    problem = Problem(tuple(gpu_pods(3)), (), (pool_state(),), caps=Caps(added_usd_per_hour=usd("2.5")))
    solution = solve(problem)
    assert len(solution.new_nodes) == 2
    assert refused(solution) == [CapReached(cap="addedUsdPerHour", limit=str(usd("2.5")))]


def test_urgent_pods_have_the_cap_first() -> None:
    urgent = pod("urgent", cpu="1", gpu=1, priority=10)
    problem = Problem((*gpu_pods(2), urgent), (), (pool_state(),), caps=Caps(launches=1))
    assert [key.name for node in solve(problem).new_nodes for key in node.pods] == ["urgent"]


def test_a_limit_of_another_pool_changes_nothing() -> None:
    closed = pool_state(node_pool("closed", weight=9, limits={"nodes": 0}, taints=[taint("closed")]))
    tolerant = pod(gpu=1, tolerations=[toleration("closed")])
    solution = solve(Problem((tolerant,), (), (closed, pool_state(node_pool("open")))))
    assert [node.node_pool for node in solution.new_nodes] == ["open"]
