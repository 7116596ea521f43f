"""Pods that are expected on a node already stay there first; a pool under probation opens one node at a time."""

from __future__ import annotations

import pytest

from engine.model import labels as keys
from engine.model.pod import Pod
from engine.model.refusal import BringUpsFailed
from engine.scheduling.problem import ExistingNode, Problem, Reservation, Solution
from engine.scheduling.solve import solve
from engine.scheduling.topology.neighbourhood import StandingNode
from tests.builders import NOON, existing, node_pool, pod, pool_state, taint
from tests.scheduling.tied_pods import spread, tied

RACK = "example.com/rack"
A, B = existing("a"), existing("b")


def on(one: Pod, node: ExistingNode, *, holds: bool = False) -> Reservation:
    return Reservation(one.key, node=node.node, claim=node.claim, holds_regardless_of_room=holds)


def solved(pods: list[Pod], nodes: list[ExistingNode], *reservations: Reservation) -> Solution:
    return solve(Problem(tuple(pods), tuple(nodes), (pool_state(),), reservations=reservations))


def where(solution: Solution) -> dict[str, str | None]:
    return {each.pod.name: each.node for each in solution.placements}


def test_a_reserved_pod_stays_although_another_node_would_come_first() -> None:
    first, second = pod("first", gpu=1), pod("second", gpu=1)
    assert where(solved([first, second], [A, B])) == {"first": "a", "second": "b"}
    assert where(solved([first, second], [A, B], on(first, B), on(second, A))) == {"first": "b", "second": "a"}


def test_a_pod_of_higher_priority_does_not_push_a_reserved_one_out() -> None:
    urgent, reserved = pod("urgent", gpu=1, priority=9), pod("reserved", gpu=1)
    solution = solved([urgent, reserved], [A], on(reserved, A))
    assert where(solution) == {"reserved": "a"}
    assert [each.pods for each in solution.new_nodes] == [(urgent.key,)]


@pytest.mark.parametrize(
    "node",
    [
        existing("a", room={"nvidia.com/gpu": 0}),
        existing("a", taints=[taint("closed")]),
        existing("a", labels={"topology.kubernetes.io/zone": "us-east-1c"}),
    ],
)
def test_a_reservation_for_a_node_that_takes_the_pod_no_more_is_passed_over(node: ExistingNode) -> None:
    one = pod("one", gpu=1, selector={"topology.kubernetes.io/zone": "us-east-1a"})
    assert where(solved([one], [node, B], on(one, node))) == {"one": "b"}


def test_a_reservation_for_a_node_that_is_gone_is_passed_over() -> None:
    one = pod("one", gpu=1)
    assert where(solved([one], [B], on(one, A))) == {"one": "b"}


def test_one_that_holds_takes_room_that_is_not_there_yet_and_leaves_none_to_others() -> None:
    full = existing("a", room={"nvidia.com/gpu": 0})
    one, other = pod("one", gpu=1, cpu="3"), pod("other", cpu="2")
    solution = solved([one, other], [full], on(one, full, holds=True))
    assert where(solution) == {"one": "a"}


def test_one_that_holds_still_needs_a_node_that_it_may_go_to() -> None:
    barred = existing("a", taints=[taint("closed")])
    one = pod("one", gpu=1)
    assert where(solved([one], [barred], on(one, barred, holds=True))) == {}


def test_one_that_holds_comes_before_larger_ones_that_are_only_expected() -> None:
    node = existing("a", room={"cpu": "2"})
    one, larger = pod("one", cpu="2"), pod("larger", cpu="2", memory="4Gi")
    assert where(solved([one, larger], [node], on(larger, node), on(one, node, holds=True))) == {"one": "a"}


def test_one_of_two_alike_that_holds_comes_before_the_one_that_is_only_expected() -> None:
    node = existing("a", room={"cpu": "2"})
    holds, waits = pod("z-holds", cpu="2"), pod("a-waits", cpu="2")
    assert where(solved([waits, holds], [node], on(waits, node), on(holds, node, holds=True))) == {"z-holds": "a"}


def test_the_order_of_reservations_changes_nothing() -> None:
    pods = [pod(f"p{number}", gpu=1) for number in range(4)]
    reserved = [on(each, A) for each in pods]
    assert solved(pods, [A, B], *reserved) == solved(pods[::-1], [B, A], *reserved[::-1])


def test_a_pool_under_probation_opens_one_node_and_tells_the_others_why() -> None:
    failed = BringUpsFailed(failures=3, until=NOON)
    pods = [pod(f"p{number}", gpu=1) for number in range(3)]
    solution = solve(Problem(tuple(pods), (), (pool_state(one_by_one=failed),)))
    assert len(solution.new_nodes) == 1
    told = [each.refusal for unplaced in solution.unplaced for each in unplaced.refusals]
    assert told == [failed] * 2


def test_base_capacity_comes_one_by_one_too() -> None:
    failed = BringUpsFailed(failures=3, until=NOON)
    solution = solve(Problem((), (), (pool_state(node_pool(min_nodes=3), one_by_one=failed),)))
    assert len(solution.new_nodes) == 1
    assert [(each.have, each.refusal) for each in solution.base_shortfalls] == [(1, failed)]


def test_pods_that_kube_scheduler_can_bind_no_more_where_they_were_planned_get_another_place() -> None:
    """Of three planned for (1, a), (2, a) and (1, b), the first is bound: the next may go to (2, b) alone."""
    alike = {"spreads": [spread(keys.ZONE), spread(RACK)], "gpu": 1}
    bound, *waiting = (tied(f"pod-{number}", **alike) for number in range(3))  # type: ignore[arg-type]
    places = {"1a": ("1", "us-east-1a"), "2a": ("2", "us-east-1a"), "1b": ("1", "us-east-1b")}
    nodes = [
        existing(name, labels={RACK: rack, keys.ZONE: zone}, room={"nvidia.com/gpu": 0 if name == "1a" else 1})
        for name, (rack, zone) in places.items()
    ]
    standing = tuple(
        StandingNode(each.node or "", each.labels, (), [bound] if each.node == "1a" else []) for each in nodes
    )
    pools = tuple(
        pool_state(node_pool(f"rack-{rack}", labels={RACK: rack}), zones=["us-east-1a", "us-east-1b"]) for rack in "12"
    )
    planned = (on(waiting[0], nodes[1]), on(waiting[1], nodes[2]))
    solution = solve(Problem(tuple(waiting), tuple(nodes), pools, reservations=planned, standing=standing))

    assert ("rack-2", "us-east-1b") in [(each.node_pool, each.option.offering.zone) for each in solution.new_nodes]
    assert solution.unplaced == ()
