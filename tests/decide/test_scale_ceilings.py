"""Which ceilings no limit can hold: what a pool holds, alone and together, base capacity, and pods that none admits."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.decide.options import Market
from engine.decide.scale_ceilings import (
    BaseBelowMinReplicas,
    FakeScaling,
    FakeScalingTogether,
    NoPoolAdmits,
    PoolHold,
)
from engine.model import labels as keys
from engine.model.constraint import HostPort, PodTerm, TopologySpread
from engine.model.environment import Caps
from engine.model.ledger import Ledger
from engine.model.money import UsdPerHour
from engine.model.pod import PodKey
from engine.model.policy import NodePool
from engine.model.quantity import NOTHING
from engine.model.refusal import NoTypeFits, PoolNotReady, RequirementMismatch, TaintNotTolerated
from engine.model.snapshot import CloudFacts
from engine.scheduling.problem import PoolState, Problem
from engine.scheduling.solve import solve
from tests.builders import (
    catalog,
    daemon_set,
    environment,
    node_class,
    node_pool,
    pod,
    requirement,
    snapshot,
    taint,
    toleration,
)
from tests.decide.scaled import judged, limited, only, overriding, scaled
from tests.decide.world import IMAGES

FOUR_GPUS = pod(cpu="8", gpu=4)
NO_CAPS = Caps(launches=10**6, added_usd_per_hour=UsdPerHour(10**15))


def test_the_limits_of_all_reachable_pools_together_hold_the_replicas_of_a_workload() -> None:
    pools = limited("gpu-core", {"nvidia.com/gpu": 16}), limited("gpu-elastic", {"nvidia.com/gpu": 64})

    found = only(FakeScaling, judged([scaled("llm", 40, FOUR_GPUS)], *pools))

    assert found.pools == (
        PoolHold("gpu-core", 4, "nvidia.com/gpu", 16),
        PoolHold("gpu-elastic", 16, "nvidia.com/gpu", 64),
    )
    assert (found.held, found.pending) == (20, 20)


def test_a_ceiling_that_the_limits_just_hold_is_no_finding() -> None:
    pools = limited("gpu-core", {"nvidia.com/gpu": 16}), limited("gpu-elastic", {"nvidia.com/gpu": 64})

    assert judged([scaled("llm", 20, FOUR_GPUS)], *pools) == ()


@pytest.mark.parametrize("unlimited", [None, {"cpu": "1000000"}, {"amd.com/gpu": 0}])
def test_a_reachable_pool_whose_limits_leave_the_pods_room_holds_everything(
    unlimited: Mapping[str, str | int] | None,
) -> None:
    pools = limited("gpu-core", {"nvidia.com/gpu": 16}), limited("gpu-elastic", unlimited)

    assert judged([scaled("llm", 10_000, FOUR_GPUS)], *pools) == ()


@pytest.mark.parametrize(
    ("limits", "resource", "held"),
    [
        # A node takes 48 cpu and 192Gi of the limits whatever its pods ask for, and holds four of these pods.
        ({"cpu": "143"}, "cpu", 8),
        ({"cpu": "144"}, "cpu", 12),
        ({"memory": "384Gi"}, "memory", 8),
        ({"nodes": 3}, "nodes", 12),
        ({"nvidia.com/gpu": 3}, "nvidia.com/gpu", 0),
        ({"nvidia.com/gpu": 40, "cpu": "48", "nodes": 2}, "cpu", 4),
    ],
)
def test_whole_nodes_count_against_each_limit_and_the_tightest_decides(
    limits: Mapping[str, str | int], resource: str, held: int
) -> None:
    found = only(FakeScaling, judged([scaled("llm", 100)], limited("gpu", limits)))

    assert (found.pools[0].resource, found.held) == (resource, held)


def test_gpus_that_a_pod_leaves_over_on_its_node_are_lost_to_the_limit() -> None:
    found = only(FakeScaling, judged([scaled("llm", 5, pod(gpu=3))], limited("gpu", {"nvidia.com/gpu": 16})))

    assert (found.held, found.pending) == (4, 1)


def test_the_best_mix_of_node_sizes_is_taken_to_fill_a_limit() -> None:
    pool = node_pool(
        requirements=(requirement(keys.INSTANCE_TYPE, "In", "g5.xlarge", "g5.12xlarge"),), limits={"nvidia.com/gpu": 7}
    )

    assert only(FakeScaling, judged([scaled("llm", 9)], pool)).held == 7


def test_limits_of_the_stack_are_laid_over_those_of_the_pool() -> None:
    workload, pool = scaled("llm", 20), limited("gpu", {"nvidia.com/gpu": 40, "cpu": "96"})

    raised = overriding({"gpu": {"cpu": "960"}})
    lowered = overriding({"gpu": {"nvidia.com/gpu": 4}})
    of_another = overriding({"other": {"cpu": "960"}})

    assert only(FakeScaling, judged([workload], pool)).held == 8
    assert judged([workload], pool, stack=raised) == ()
    assert only(FakeScaling, judged([workload], pool, stack=lowered)).held == 4
    assert only(FakeScaling, judged([workload], pool, stack=of_another)).held == 8


def test_a_pool_that_taints_selectors_or_types_close_to_the_pods_adds_nothing_to_what_is_held() -> None:
    pools = (
        limited("a-open", {"nvidia.com/gpu": 8}),
        limited("b-tainted", taints=(taint("tier", "core"),)),
        limited("c-labelled", labels={"tier": "core"}),
        node_pool("d-without-gpus", requirements=(requirement(keys.INSTANCE_TYPE, "In", "m5.large"),)),
    )
    template = pod(gpu=1, affinity=((requirement("tier", "DoesNotExist"),),))

    found = only(FakeScaling, judged([scaled("llm", 9, template)], *pools))

    assert [hold.node_pool for hold in found.pools] == ["a-open"]
    assert found.held == 8


def test_pods_without_a_gpu_are_judged_where_a_limit_on_cpu_exists() -> None:
    m5 = (requirement(keys.INSTANCE_TYPE, "In", "m5.large"),)
    workload = scaled("web", 10, pod(cpu="1", memory="1Gi"))
    bounded, free = node_pool("general", requirements=m5, limits={"cpu": "8"}), node_pool("free", requirements=m5)

    # One cpu of m5.large's two is left once the kubelet has taken its share.
    assert only(FakeScaling, judged([workload], bounded)).held == 4
    assert judged([workload], free) == ()


def test_a_pool_of_fixed_size_holds_what_its_nodes_hold() -> None:
    found = only(FakeScaling, judged([scaled("llm", 9)], limited("static", replicas=2)))

    assert found.pools == (PoolHold("static", 8, "nodes", 2),)


def test_daemons_take_their_room_before_replicas_are_counted() -> None:
    workload, pool = scaled("llm", 8, pod(cpu="11", gpu=1)), limited("gpu", {"nvidia.com/gpu": 8})

    assert judged([workload], pool) == ()
    assert only(FakeScaling, judged([workload], pool, daemon_sets=[daemon_set(cpu="5")])).held == 6


@pytest.mark.parametrize(
    "asked",
    [
        {"unsupported": ("resource claims",)},
        {"host_ports": (HostPort(80),)},
        {"spreads": (TopologySpread(keys.ZONE, 1, ()),)},
        {"pod_anti_affinity": (PodTerm(keys.ZONE, (), namespace_selector=()),)},
        {"volume_claims": ("models",)},
    ],
)
def test_what_ties_pods_to_more_than_a_node_does_not_make_a_ceiling_look_lower(asked: dict[str, Any]) -> None:
    plain = pod(gpu=1)
    tied = evolve(plain, placing=evolve(plain.placing, **asked))

    assert judged([scaled("llm", 16, tied)], limited("gpu", {"nvidia.com/gpu": 16})) == ()


def test_pods_that_want_a_node_outside_of_every_pool_are_not_judged() -> None:
    outside = pod(affinity=((requirement(keys.NODE_POOL, "DoesNotExist"),),))

    assert judged([scaled("controller", 10, outside)], limited("gpu", {"nvidia.com/gpu": 0})) == ()


def test_workloads_that_fit_alone_and_not_together_are_named_once_with_their_pools() -> None:
    pools = limited("core", {"nvidia.com/gpu": 16}), limited("elastic", {"nvidia.com/gpu": 16})
    workloads = [scaled("a", 20), scaled("b", 12), scaled("c", 1)]

    (found,) = judged(workloads, *pools)

    assert isinstance(found, FakeScalingTogether)
    assert [pool.name for pool in found.pools] == ["core", "elastic"]
    assert [each.key.name for each in found.workloads] == ["a", "b", "c"]
    assert (found.resource, found.needed, found.limit) == ("nvidia.com/gpu", 33, 32)
    assert judged(workloads[:2], *pools) == ()


def test_workloads_that_share_one_of_their_pools_are_judged_on_the_union_too() -> None:
    core, elastic = ({"tier": each} for each in ("core", "elastic"))
    pools = (
        limited("core", {"nvidia.com/gpu": 8}, labels=core),
        limited("elastic", {"nvidia.com/gpu": 8}, labels=elastic),
    )
    anywhere, on_core = scaled("anywhere", 12), scaled("on-core", 8, pod(gpu=1, selector=core))

    found = only(FakeScalingTogether, judged([anywhere, on_core], *pools))

    assert ([pool.name for pool in found.pools], found.needed, found.limit) == (["core", "elastic"], 20, 16)
    assert judged([evolve(anywhere, max_replicas=8), on_core], *pools) == ()


def test_only_the_smallest_pool_set_that_is_too_small_is_told() -> None:
    core = {"tier": "core"}
    pools = limited("core", {"nvidia.com/gpu": 8}, labels=core), limited("elastic", {"nvidia.com/gpu": 8})
    narrow = [scaled(name, 5, pod(gpu=1, selector=core)) for name in ("a", "b")]

    (found,) = judged([*narrow, scaled("wide", 16)], *pools)

    assert isinstance(found, FakeScalingTogether)
    assert [pool.name for pool in found.pools] == ["core"]


def test_workloads_that_share_no_pool_are_not_added_up() -> None:
    labels = [{"tier": "core"}, {"tier": "elastic"}]
    pools = [limited(each["tier"], {"nvidia.com/gpu": 8}, labels=each) for each in labels]
    workloads = [scaled(each["tier"], 8, pod(gpu=1, selector=each)) for each in labels]

    assert judged(workloads, *pools) == ()


def test_a_limit_on_nodes_is_held_against_the_fewest_nodes_that_could_do() -> None:
    pool = limited("gpu", {"nodes": 3})

    found = only(FakeScalingTogether, judged([scaled("a", 8), scaled("b", 5)], pool))

    assert (found.resource, found.needed, found.limit) == ("nodes", 4, 3)
    assert judged([scaled("a", 8), scaled("b", 4)], pool) == ()


def test_a_sum_is_not_judged_where_one_of_the_pools_lacks_the_limit() -> None:
    pools = limited("core", {"nvidia.com/gpu": 8}), limited("elastic", {"cpu": "480"})

    assert judged([scaled("a", 20), scaled("b", 20)], *pools) == ()


def test_base_capacity_below_the_nodes_that_the_least_replicas_need_is_told_with_both_numbers() -> None:
    pool = limited("core", min_nodes=2)
    workloads = [scaled("a", 10, least=6), scaled("b", 10, least=3), scaled("c", 10, least=0)]

    found = only(BaseBelowMinReplicas, judged(workloads, pool))

    assert (found.pool.name, found.pool.base_nodes, found.needed, found.is_least) == ("core", 2, 3, False)
    assert [each.key.name for each in found.workloads] == ["a", "b"]
    assert judged(workloads[:1], pool) == ()


def test_base_capacity_of_a_pool_of_fixed_size_are_its_replicas() -> None:
    found = only(BaseBelowMinReplicas, judged([scaled("a", 8, least=5)], limited("static", replicas=1)))

    assert (found.pool.base_nodes, found.needed) == (1, 2)


def test_least_replicas_that_can_go_elsewhere_do_not_count_on_a_pools_base_capacity() -> None:
    pools = limited("core", min_nodes=1), limited("elastic")

    assert judged([scaled("a", 50, least=50)], *pools) == ()


def test_a_pool_that_keeps_no_base_capacity_promises_none() -> None:
    assert judged([scaled("a", 50, least=50)], limited("core")) == ()


def test_more_least_replicas_than_are_counted_are_told_as_at_least() -> None:
    found = only(BaseBelowMinReplicas, judged([scaled("a", 2**31 - 1, least=2**31 - 1)], limited("core", min_nodes=1)))

    assert (found.needed, found.is_least) == (2_500, True)


def test_pods_that_no_pool_admits_come_with_a_reason_of_each_pool() -> None:
    m5 = (requirement(keys.INSTANCE_TYPE, "In", "m5.large"),)
    pools = (
        limited("labelled", labels={"tier": "core"}),
        limited("tainted", taints=(taint("tier", "core"),)),
        node_pool("without-gpus", requirements=m5),
        limited("static", replicas=3, taints=(taint("tier", "core"),)),
    )
    template = pod(gpu=1, selector={keys.INSTANCE_FAMILY: "g5"})

    found = only(NoPoolAdmits, judged([scaled("llm", 4, template)], *pools[1:]))
    codes = {each.node_pool: type(each.refusal) for each in found.refusals}

    assert codes == {"tainted": TaintNotTolerated, "without-gpus": RequirementMismatch, "static": TaintNotTolerated}
    assert judged([scaled("llm", 4, template)], *pools) == ()


def test_a_pod_with_more_gpus_than_any_type_has_is_admitted_by_no_pool() -> None:
    found = only(NoPoolAdmits, judged([scaled("huge", 4, pod(gpu=64))], limited("gpu")))

    (refused,) = found.refusals
    assert isinstance(refused.refusal, NoTypeFits)
    assert (refused.refusal.needed, refused.refusal.nearest_amount) == (64, 4)


def test_without_any_pool_none_admits_the_pods() -> None:
    (refused,) = only(NoPoolAdmits, judged([scaled("llm", 4)])).refusals

    assert (refused.node_pool, type(refused.refusal)) == ("", PoolNotReady)


def test_the_order_of_workloads_and_pools_changes_nothing() -> None:
    core = {"tier": "core"}
    pools = [
        limited("core", {"nvidia.com/gpu": 8}, labels=core, min_nodes=1),
        limited("elastic", {"nvidia.com/gpu": 8}, taints=(taint("tier"),)),
        limited("batch", {"nvidia.com/gpu": 4}),
    ]
    workloads = [
        scaled("a", 30, pod(gpu=1, selector=core), least=5),
        scaled("b", 30, pod(gpu=1, tolerations=(toleration("tier"),)), least=2),
        scaled("c", 30, pod(gpu=2), least=2, kind="StatefulSet"),
        scaled("d", 30, pod(gpu=99)),
    ]
    first = judged(workloads, *pools)
    shuffled = random.Random(1)

    assert {type(each) for each in first} == {FakeScaling, FakeScalingTogether, BaseBelowMinReplicas, NoPoolAdmits}
    for _ in range(5):
        shuffled.shuffle(pools)
        shuffled.shuffle(workloads)
        assert judged(workloads, *pools) == first


@given(
    gpu=st.integers(0, 5),
    half_cpus=st.integers(1, 14),
    limit=st.integers(0, 14),
    resource=st.sampled_from(["nvidia.com/gpu", "cpu", "nodes"]),
    names=st.sets(st.sampled_from(["g5.xlarge", "g5.2xlarge", "g5.12xlarge", "m5.large"]), min_size=1),
)
def test_the_scheduler_never_places_more_replicas_than_a_pool_is_said_to_hold(
    gpu: int, half_cpus: int, limit: int, resource: str, names: set[str]
) -> None:
    """What is called fake must be so: of more pods than a pool is said to hold, the scheduler leaves the rest."""
    pool = node_pool(
        requirements=(requirement(keys.INSTANCE_TYPE, "In", *sorted(names)),),
        limits={resource: limit * 8 if resource == "cpu" else limit},
    )
    template = pod(cpu=f"{half_cpus * 500}m", gpu=gpu or None)

    found = [each for each in judged([scaled("llm", 300, template)], pool) if isinstance(each, FakeScaling)]

    assume(found)
    pods = tuple(evolve(template, key=PodKey("ml", f"pod-{number}")) for number in range(found[0].held + 5))
    solution = solve(Problem(pods, (), (_empty_state(pool),), caps=NO_CAPS))
    assert len(solution.unplaced) >= 5
    if len(names) == 1:
        assert len(solution.unplaced) == 5


def _empty_state(pool: NodePool) -> PoolState:
    seen = snapshot(cloud=CloudFacts(images={"default": IMAGES}))
    options = Market(catalog(), environment(), seen, Ledger()).options(pool, node_class())
    assert not isinstance(options, PoolNotReady)
    return PoolState(pool=pool, limits=pool.limits, used=NOTHING, options=options)
