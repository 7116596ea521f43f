"""Cases of packing, price, daemons and reasons that went wrong elsewhere; the number is the case's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.constraint import PreferredNodeTerm
from engine.model.environment import Caps
from engine.model.node import Node
from engine.model.plan import Plan
from engine.model.pod import DaemonSet, Pod
from engine.model.quantity import Resources
from engine.model.refusal import AcceleratorNotOffered, LimitReached, PoolRefusal
from engine.report.words import refusal_words
from tests.builders import (
    ANYTHING,
    G4AD_2XLARGE,
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    NOON,
    PRICES,
    catalog,
    daemon_set,
    environment,
    instance_type,
    minutes,
    node,
    node_pool,
    pod,
    requirement,
    taint,
    toleration,
    usd,
)
from tests.decide.world import World, policy

ONE_ZONE = {"us-east-1a": "use1-az1"}
G5 = (G5_XLARGE, G5_2XLARGE, G5_12XLARGE)
_SMALL = requirement(keys.INSTANCE_SIZE, "In", "xlarge")
UNCAPPED = environment(caps=Caps(launches=1000, added_usd_per_hour=usd(10**6)))


def g5(large: str = "5.7") -> Catalog:
    """All g5 sizes, on-demand, in one zone; the price of a g5.12xlarge."""
    prices = {**PRICES, "g5.12xlarge": large}
    return catalog(G5, zones=ONE_ZONE, capacity_types=[keys.ON_DEMAND], prices=prices)


def gpu_pods(count: int, first: int = 0) -> list[Pod]:
    return [pod(f"pod-{number:03}", gpu=1, cpu="2", memory="13Gi") for number in range(first, first + count)]


def types_of(plan: Plan) -> dict[str, int]:
    return dict(Counter(launch.claim.inputs.instance_type for launch in plan.launches))


def paid(plan: Plan) -> float:
    """Dollars an hour of all launches."""
    return sum(launch.claim.usd_per_hour.micros for launch in plan.launches) / 10**6


def refused(plan: Plan) -> list[PoolRefusal]:
    """What every pod that got nothing is told, once each."""
    return list(dict.fromkeys(each for unplaced in plan.unplaced for each in unplaced.refusals))


# --- 1: a limit of nodes inside one pass


def test_01_a_limit_of_one_node_lets_one_node_start_for_two_pods_and_says_so_to_the_other() -> None:
    pods = gpu_pods(2)
    one = World(policy(node_pool(limits={"nodes": 1}, requirements=[_SMALL])), pods, sold=g5())
    plan = one.turn(minutes(1))
    assert types_of(plan) == {"g5.xlarge": 1}
    assert [unplaced.pod.name for unplaced in plan.unplaced] == ["pod-001"]
    assert refused(plan) == [PoolRefusal("gpu", LimitReached("nodes", limit=1, used=0, planned=1, needed=1))]
    assert refusal_words(refused(plan)[0].refusal, NOON) == "limit nodes 1 reached (0 used, 1 planned, needs 1)"
    later = one.turn(minutes(1))
    assert later.launches == ()
    assert refused(later) == [PoolRefusal("gpu", LimitReached("nodes", limit=1, used=1, planned=0, needed=1))]


@pytest.mark.parametrize("batches", [(321, 101, 101, 60, 44), (627,), (600, 7, 1, 19)])
def test_01_a_limit_of_608_nodes_holds_under_any_split_into_batches(batches: tuple[int, ...]) -> None:
    one = World(policy(node_pool(limits={"nodes": 608}, requirements=[_SMALL])), sold=g5(), stack=UNCAPPED)
    launched = 0
    for size in batches:
        one.pods |= {each.key: each for each in gpu_pods(size, first=len(one.pods))}
        plan = one.decide()
        one.apply(plan)
        launched += len(plan.launches)
    assert launched == 608
    assert len(plan.unplaced) == 19
    assert [each.refusal.code for each in refused(plan)] == ["limit-reached"]


# --- 2: small GPU pods and one large node


@pytest.mark.parametrize(
    ("pods", "large", "types"),
    [
        (2, "5.7", {"g5.xlarge": 2}),
        (4, "5.7", {"g5.xlarge": 4}),
        (4, "3.5", {"g5.12xlarge": 1}),
    ],
)
def test_02_small_pods_get_a_large_node_only_where_that_is_cheaper(
    pods: int, large: str, types: dict[str, int]
) -> None:
    plan = World(policy(node_pool()), gpu_pods(pods), sold=g5(large)).decide()
    assert types_of(plan) == types
    assert plan.unplaced == ()


def test_02_where_daemons_make_the_smallest_too_small_two_of_the_next_are_still_cheaper() -> None:
    agent = daemon_set(memory="1500Mi")
    plan = World(policy(node_pool()), gpu_pods(2), sold=g5(), daemon_sets=[agent]).decide()
    assert types_of(plan) == {"g5.2xlarge": 2}
    assert paid(plan) < 5.7


# --- 6: daemons make small nodes dear


@pytest.mark.parametrize(("pods", "dollars"), [(16, 1.2), (28, 1.6)])
def test_06_fewer_larger_nodes_are_bought_where_daemons_take_a_core_of_each(pods: int, dollars: float) -> None:
    sizes = [
        instance_type("c5.large", vcpus=2, memory_gib=4, max_pods=29),
        instance_type("c5.2xlarge", vcpus=8, memory_gib=16, max_pods=58),
        instance_type("c5.4xlarge", vcpus=16, memory_gib=32, max_pods=234),
    ]
    prices = {kind.name: str(kind.vcpus * 0.05) for kind in sizes}
    sold = catalog(sizes, zones=ONE_ZONE, prices=prices, capacity_types=[keys.ON_DEMAND])
    waiting = [pod(f"pod-{number:02}", cpu="1", memory="100Mi") for number in range(pods)]
    plan = World(policy(node_pool()), waiting, sold=sold, daemon_sets=[daemon_set(cpu="1")]).decide()
    assert plan.unplaced == ()
    assert "c5.large" not in types_of(plan)
    assert len(plan.launches) <= 3
    assert paid(plan) == pytest.approx(dollars)


# --- 19: another vendor's GPU


def test_19_a_pool_of_another_vendors_gpus_says_which_it_offers() -> None:
    pool = node_pool("amd", requirements=[requirement(keys.INSTANCE_FAMILY, "In", "g4ad")])
    plan = World(policy(pool), [pod(gpu=1)], sold=catalog([G4AD_2XLARGE, *G5])).decide()
    [told] = refused(plan)
    assert told.refusal == AcceleratorNotOffered("nvidia.com/gpu", offered=("amd.com/gpu",), families=("g4ad",))
    assert refusal_words(told.refusal, NOON) == "no type of the pool offers nvidia.com/gpu; g4ad offers amd.com/gpu"


# --- 21: a limit is no lack of types


def test_21_a_limit_of_gpus_that_is_used_up_is_told_as_such() -> None:
    one = World(policy(node_pool(limits={"nvidia.com/gpu": 1})), gpu_pods(1), sold=g5())
    one.rest()
    one.pods |= {each.key: each for each in gpu_pods(1, first=1)}
    plan = one.decide()
    assert refused(plan) == [PoolRefusal("gpu", LimitReached("nvidia.com/gpu", limit=1, used=1, planned=0, needed=1))]


# --- 22: what daemons take


_TWO_TERMS = ((requirement("disk", "In", "nvme"),), (requirement(keys.INSTANCE_FAMILY, "In", "g5"),))


@pytest.mark.parametrize(
    "daemons",
    [
        [daemon_set("tolerates everything", cpu="500m", tolerations=[ANYTHING])],
        [daemon_set("second of two terms", cpu="500m", affinity=_TWO_TERMS)],
        [daemon_set("waits for registration", cpu="500m", selector={keys.REGISTERED: "true"})],
    ],
    ids=lambda daemons: daemons[0].name,
)
def test_22_the_next_bigger_type_is_bought_where_a_daemon_takes_what_the_pod_needs(daemons: list[DaemonSet]) -> None:
    pool = node_pool(taints=[taint("gpu", "true")])
    waiting = [pod(gpu=1, cpu="3500m", memory="1Gi", tolerations=[toleration("gpu")])]
    assert _type_for(waiting, pool, ()) == {"g5.xlarge": 1}
    assert _type_for(waiting, pool, daemons) == {"g5.2xlarge": 1}


def _type_for(waiting: list[Pod], pool: object, daemons: Iterable[DaemonSet]) -> dict[str, int]:
    return types_of(World(policy(pool), waiting, sold=g5(), daemon_sets=daemons).decide())


# --- 40: one term of several cannot be met


def test_40_a_term_that_no_pool_can_meet_does_not_keep_the_other_from_being_used() -> None:
    terms = [
        (requirement("karpenter.sh/x", "In", "1"),),
        (requirement(keys.ZONE, "In", "us-east-1b"),),
    ]
    plan = World(policy(node_pool()), [pod(gpu=1, affinity=terms)]).decide()
    assert [launch.claim.inputs.zone for launch in plan.launches] == ["us-east-1b"]


# --- 41: a pod would rather have a node of nobody's


@pytest.mark.parametrize("room", ["none", "enough"])
def test_41_a_preference_for_nodes_of_no_pool_gives_way_where_none_has_room(room: str) -> None:
    stranger = PreferredNodeTerm(100, (requirement(keys.NODE_POOL, "DoesNotExist"),))
    plain = pod(gpu=1)
    one = World(policy(node_pool()), [evolve(plain, placing=evolve(plain.placing, preferred_terms=(stranger,)))])
    held = _node(gpus=0 if room == "none" else 1)
    one.nodes[held.name] = held
    plan = one.decide()
    assert plan.unplaced == ()
    assert len(plan.launches) == (1 if room == "none" else 0)
    assert [each.node for each in plan.placements] == ([] if room == "none" else [held.name])


def _node(gpus: int) -> Node:
    standing = node("stranger", G5_XLARGE)
    return evolve(standing, allocatable=Resources({**standing.allocatable, "nvidia.com/gpu": gpus}))
