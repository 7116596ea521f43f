"""Pods that must share a host with pods of another class: a node is chosen that holds both."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.pod import Pod
from engine.model.quantity import Resources
from engine.scheduling.problem import ExistingNode, PoolState, Problem, Solution
from engine.scheduling.solve import solve
from tests.builders import G5_2XLARGE, G5_XLARGE, existing, node_pool, pool_state, requirement
from tests.scheduling.tied_pods import term, tied

OPEN = node_pool(open_to_all_pods=True)


def with_app(name: str, app: str, cpu: str, gpu: int = 0, near: str = "", **more: object) -> Pod:
    """``near``: it must be on the host of a pod of that app."""
    terms = [term(keys.HOSTNAME, (requirement("app", "In", near),))] if near else []
    return tied(name, app, cpu=cpu, gpu=gpu, near=terms, **more)  # type: ignore[arg-type]


def leader(name: str = "leader", gpu: int = 1, **more: object) -> Pod:
    return with_app(name, "leader", "1", gpu, **more)  # type: ignore[arg-type]


def followers(count: int, cpu: str, near: str = "leader", app: str = "follower", gpu: int = 0) -> list[Pod]:
    return [with_app(f"{app}-{number}", app, cpu, gpu, near) for number in range(count)]


def planned(
    pods: Iterable[Pod], pool: PoolState | None = None, there: Iterable[ExistingNode] = (), **more: object
) -> Solution:
    pools = (pool or pool_state(OPEN),)
    return solve(Problem(pods=tuple(pods), existing=tuple(there), pools=pools, **more))  # type: ignore[arg-type]


def nodes(solution: Solution) -> list[tuple[str, list[str]]]:
    assert solution.unplaced == ()
    return sorted(
        (node.option.instance_type.name, sorted(pod.name for pod in node.pods)) for node in solution.new_nodes
    )


@pytest.mark.parametrize("open_to_all", [True, False])
def test_a_leader_gets_a_node_that_holds_its_followers(open_to_all: bool) -> None:
    pool = pool_state(node_pool(open_to_all_pods=open_to_all))
    found = nodes(planned([leader(), *followers(2, "4")], pool))
    assert found == [("g5.12xlarge", ["follower-0", "follower-1", "leader"])]


def test_a_follower_of_a_follower_is_counted_too() -> None:
    chain = [leader(), *followers(1, "3"), *followers(1, "3", near="follower", app="last")]
    assert nodes(planned(chain)) == [("g5.2xlarge", ["follower-0", "last-0", "leader"])]


def test_a_leader_with_followers_of_several_classes_gets_a_node_for_all_of_them() -> None:
    pods = [leader(), *followers(1, "3", app="proxy"), *followers(1, "2", app="agent")]
    assert nodes(planned(pods)) == [("g5.2xlarge", ["agent-0", "leader", "proxy-0"])]


def test_followers_of_any_of_several_leaders_are_parted_among_them_where_that_costs_less() -> None:
    leaders = [leader(f"leader-{number}") for number in range(4)]
    found = nodes(planned([*leaders, *followers(8, "2")]))
    # On a g5.2xlarge are three of them, on a g5.xlarge is one.
    assert sorted((kind, len(pods)) for kind, pods in found) == [
        ("g5.2xlarge", 4),
        ("g5.2xlarge", 4),
        ("g5.xlarge", 2),
        ("g5.xlarge", 2),
    ]


def test_leaders_of_different_classes_share_the_followers_of_both() -> None:
    small, large = leader("small"), evolve(leader("large", gpu=3), labels={"app": "leader"})
    found = nodes(planned([small, large, *followers(3, "6")]))
    assert len([pod for _, pods in found for pod in pods]) == 5
    assert "g5.12xlarge" in {kind for kind, _ in found}


def test_leaders_without_followers_go_where_they_are_cheapest() -> None:
    leaders = [leader(f"leader-{number}") for number in range(3)]
    found = nodes(planned([*leaders, *followers(1, "5")]))
    assert [kind for kind, _ in found] == ["g5.2xlarge", "g5.xlarge", "g5.xlarge"]


def test_all_of_a_gang_and_those_who_follow_it_get_one_node() -> None:
    gang = [with_app(f"gang-{number}", "gang", "3", near="gang") for number in range(2)]
    found = nodes(planned([*gang, *followers(2, "3", near="gang")]))
    assert found == [("g5.12xlarge", ["follower-0", "follower-1", "gang-0", "gang-1"])]


def test_several_shares_go_to_one_large_node_where_that_costs_less() -> None:
    prices = {"g5.xlarge": "2.0", "g5.2xlarge": "2.0", "g5.12xlarge": "5.7"}
    leaders = [leader(f"leader-{number}") for number in range(4)]
    found = nodes(planned([*leaders, *followers(4, "4")], pool_state(OPEN, prices=prices)))
    assert [(kind, len(pods)) for kind, pods in found] == [("g5.12xlarge", 8)]


def test_a_standing_node_that_holds_both_is_taken_before_one_that_holds_the_leader_alone() -> None:
    tight, roomy = existing("tight", G5_XLARGE), existing("roomy", G5_2XLARGE)
    solution = planned([leader(), *followers(1, "4")], there=[tight, roomy])
    assert {(placed.pod.name, placed.node) for placed in solution.placements} == {
        ("leader", "roomy"),
        ("follower-0", "roomy"),
    }
    assert solution.new_nodes == ()


def test_followers_that_exclude_each_other_go_to_one_leader_each() -> None:
    apart = [term(keys.HOSTNAME, (requirement("app", "In", "follower"),))]
    kept = [
        tied(
            f"follower-{number}",
            "follower",
            cpu="2",
            gpu=0,
            near=[term(keys.HOSTNAME, (requirement("app", "In", "leader"),))],
            apart=apart,
        )
        for number in range(2)
    ]
    found = nodes(planned([leader("leader-0"), leader("leader-1"), *kept]))
    assert [len(pods) for _, pods in found] == [2, 2]


def test_a_limit_that_leaves_no_room_for_both_leaves_the_follower_out_and_says_why() -> None:
    limited = pool_state(OPEN, limits=Resources.parse({"cpu": "8"}))
    solution = planned([leader(), *followers(2, "4")], limited)
    assert {told.pod.name for told in solution.unplaced} == {"follower-0", "follower-1"}
    assert all(told.refusals for told in solution.unplaced)


def test_the_order_of_the_pods_changes_nothing() -> None:
    pods = [*(leader(f"leader-{number}") for number in range(3)), *followers(5, "3"), *followers(2, "1", app="agent")]
    assert planned(pods) == planned(pods[::-1])
