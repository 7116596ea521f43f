"""Pods go onto nodes that are there first, as the kube-scheduler would bind them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.pod import Pod
from engine.scheduling.problem import ExistingNode, PoolState, Problem
from engine.scheduling.solve import solve
from tests.builders import (
    ANYTHING,
    G5_2XLARGE,
    M5_LARGE,
    existing,
    pod,
    pool_state,
    requirement,
    taint,
    toleration,
)


def nodes_of(pods: Iterable[Pod], nodes: Iterable[ExistingNode], pools: Iterable[PoolState] = ()) -> dict[str, str]:
    """Which node each placed pod gets, by the pod's name."""
    solution = solve(Problem(pods=tuple(pods), existing=tuple(nodes), pools=tuple(pools)))
    return {each.pod.name: each.node or each.claim or "" for each in solution.placements}


def test_a_node_with_room_is_used_before_one_is_launched() -> None:
    solution = solve(Problem(pods=(pod(gpu=1),), existing=(existing(),), pools=(pool_state(),)))
    assert [each.node for each in solution.placements] == ["node-1"]
    assert solution.new_nodes == ()


def test_a_claim_in_flight_counts_as_the_node_that_it_will_be() -> None:
    solution = solve(Problem(pods=(pod(gpu=1),), existing=(existing(in_flight=True),), pools=(pool_state(),)))
    assert [(each.node, each.claim) for each in solution.placements] == [(None, "claim-node-1")]
    assert solution.new_nodes == ()


def test_ten_pods_of_two_batches_share_the_node_that_the_first_batch_launched() -> None:
    sixteen = existing("first", M5_LARGE, room={"cpu": "16", "memory": "64Gi", "pods": 100}, in_flight=True)
    batches = [pod(f"pod-{number}") for number in range(10)]
    solution = solve(Problem(pods=tuple(batches), existing=(sixteen,), pools=(pool_state(types=[M5_LARGE]),)))
    assert len(solution.placements) == 10
    assert solution.new_nodes == ()


@pytest.mark.parametrize(
    ("tolerations", "effect", "bound"),
    [
        ((), "NoSchedule", False),
        ((), "NoExecute", False),
        ((), "PreferNoSchedule", True),
        ((toleration("gpu"),), "NoSchedule", True),
        ((toleration("gpu", "true"),), "NoSchedule", True),
        ((toleration("gpu", "false"),), "NoSchedule", False),
        ((toleration("gpu", effect="NoExecute"),), "NoSchedule", False),
        ((ANYTHING,), "NoExecute", True),
    ],
)
def test_a_taint_keeps_a_pod_away_unless_tolerated(tolerations: tuple[object, ...], effect: str, bound: bool) -> None:
    node = existing(taints=[taint("gpu", "true", effect)])
    assert bool(nodes_of([pod(tolerations=tolerations)], [node])) is bound  # type: ignore[arg-type]


def test_a_soft_taint_only_makes_another_node_better() -> None:
    soft = existing("soft", taints=[taint("gpu", effect="PreferNoSchedule")], room={"cpu": "2"})
    plain = existing("plain", room={"cpu": "3"})
    assert nodes_of([pod(gpu=1)], [soft, plain]) == {"pod": "plain"}


@pytest.mark.parametrize(
    ("affinity", "bound"),
    [
        ((), True),
        (((requirement(keys.ZONE, "In", "us-east-1a"),),), True),
        (((requirement(keys.ZONE, "In", "us-east-1b"),),), False),
        (((requirement(keys.ZONE, "In", "us-east-1b"),), (requirement("disk", "In", "ssd"),)), True),
        (((requirement(keys.ZONE, "In", "us-east-1a"), requirement("disk", "NotIn", "ssd")),), False),
        (((requirement("rack", "NotIn", "7"),),), True),
        (((requirement("rack", "DoesNotExist"),),), True),
        (((requirement("rack", "Exists"),),), False),
        (((requirement(keys.INSTANCE_CPU, "Gt", "3"),),), True),
        (((requirement("disk", "Gt", "3"),),), False),
        # An empty term matches no node; beside another one it is passed over.
        (((),), False),
        (((), (requirement("disk", "In", "ssd"),)), True),
        # A term with a key that nobody may set is no reason to drop the others.
        (((requirement("karpenter.sh/x", "In", "1"),), (requirement(keys.ZONE, "In", "us-east-1a"),)), True),
    ],
)
def test_a_node_fits_when_any_affinity_term_matches(affinity: tuple[tuple[object, ...], ...], bound: bool) -> None:
    node = existing(labels={"disk": "ssd"})
    assert bool(nodes_of([pod(affinity=affinity)], [node])) is bound  # type: ignore[arg-type]


def test_the_selector_and_a_term_must_both_match() -> None:
    node = existing(labels={"disk": "ssd"})
    zone_a = ((requirement(keys.ZONE, "In", "us-east-1a"),),)
    assert nodes_of([pod(selector={"disk": "ssd"}, affinity=zone_a)], [node])
    assert not nodes_of([pod(selector={"disk": "hdd"}, affinity=zone_a)], [node])


def test_beta_keys_in_a_selector_match_present_labels() -> None:
    assert nodes_of([pod(selector={"beta.kubernetes.io/instance-type": "g5.xlarge"})], [existing()])


@pytest.mark.parametrize(
    ("room", "fit"),
    [({"pods": 2}, 2), ({"pods": 0}, 0), ({"cpu": "3"}, 3), ({"memory": "1Gi"}, 1), ({"cpu": "0"}, 0)],
)
def test_no_more_pods_are_placed_than_every_resource_and_the_pod_count_allow(room: dict[str, str], fit: int) -> None:
    assert len(nodes_of([pod(f"pod-{number}") for number in range(4)], [existing(room=room)])) == fit


def test_a_pod_without_accelerator_prefers_a_node_without() -> None:
    gpu = existing("gpu", room={"cpu": "1"})
    plain = existing("plain", M5_LARGE)
    assert nodes_of([pod()], [gpu, plain]) == {"pod": "plain"}
    assert nodes_of([pod()], [gpu, evolve(plain, is_empty=True)], [pool_state(types=[M5_LARGE])]) == {"pod": "plain"}
    assert nodes_of([pod()], [gpu]) == {"pod": "gpu"}


def test_the_tightest_node_takes_the_pod() -> None:
    nodes = [existing("roomy", G5_2XLARGE), existing("tight", room={"cpu": "2"}), existing("full", room={"cpu": "0"})]
    assert nodes_of([pod(gpu=1)], nodes) == {"pod": "tight"}


def test_scarce_pods_are_placed_before_pods_that_fit_anywhere() -> None:
    only = existing(room={"cpu": "4"})
    placed = nodes_of([pod("cpu", cpu="3"), pod("gpu", cpu="2", gpu=1)], [only])
    assert placed == {"gpu": "node-1"}


def test_priority_comes_before_scarcity() -> None:
    only = existing(room={"cpu": "4"})
    placed = nodes_of([pod("urgent", cpu="3", priority=1000), pod("gpu", cpu="2", gpu=1)], [only])
    assert placed == {"urgent": "node-1"}


def test_a_node_that_is_not_ours_is_filled_too() -> None:
    foreign = evolve(existing("foreign", labels={}), claim=None)
    solution = solve(Problem(pods=(pod(),), existing=(foreign,), pools=()))
    assert [(each.node, each.claim) for each in solution.placements] == [("foreign", None)]


def test_an_overcommitted_node_takes_only_pods_that_ask_nothing_of_what_is_short() -> None:
    short = evolve(existing(), room=existing().room - pod(cpu="6").placing.requests)
    assert not nodes_of([pod(cpu="1m")], [short])
    assert nodes_of([pod(cpu="0")], [short])
