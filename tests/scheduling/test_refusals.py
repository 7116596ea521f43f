"""Every pod that gets nothing hears from every pool why, with numbers, the nearest miss first."""

from __future__ import annotations

from typing import ClassVar

import pytest

from engine.model import labels as keys
from engine.model.ledger import Unavailable
from engine.model.pod import Pod
from engine.model.refusal import (
    AcceleratorNotOffered,
    GpuPoolClosed,
    Measured,
    NoOffering,
    NoPermittedType,
    NoTypeFits,
    OfferingsUnavailable,
    PoolIsStatic,
    PoolNotReady,
    Refusal,
    RequirementMismatch,
    TaintNotTolerated,
    UnsupportedConstraint,
)
from engine.scheduling.problem import PoolState, Problem
from engine.scheduling.solve import solve
from tests.builders import (
    G4AD_2XLARGE,
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    M5_LARGE,
    NOON,
    PRICES,
    daemon_set,
    instance_type,
    minutes,
    node_pool,
    option,
    pod,
    pool_state,
    requirement,
    taint,
)

GIB = 2**30
_ZONE_TERMS = [
    (requirement(keys.INSTANCE_TYPE, "In", "m5.large"),),
    (requirement(keys.ZONE, "In", "us-east-1a"), requirement(keys.CAPACITY_TYPE, "In", "spot")),
]


def told(waiting: Pod, *pools: PoolState, **more: object) -> list[tuple[str, Refusal]]:
    """Each refusal of the one pod with its pool."""
    unplaced = solve(Problem((waiting,), (), pools, **more)).unplaced  # type: ignore[arg-type]
    return [(each.node_pool, each.refusal) for each in unplaced[0].refusals]


def why(waiting: Pod, state: PoolState, **more: object) -> Refusal:
    return told(waiting, state, **more)[0][1]


@pytest.mark.parametrize(
    ("waiting", "state", "refusal"),
    [
        (pod(gpu=1), pool_state(node_pool(taints=[taint("gpu", "true")])), TaintNotTolerated("gpu=true:NoSchedule")),
        (
            pod(gpu=1, selector={keys.ZONE: "us-east-1b"}),
            pool_state(),
            RequirementMismatch(keys.ZONE, wanted="us-east-1b", offered="us-east-1a"),
        ),
        (
            pod(gpu=1, selector={"accelerator": "l40s"}),
            pool_state(),
            RequirementMismatch("accelerator", wanted="l40s", offered=""),
        ),
        (
            pod(gpu=1, affinity=[(requirement(keys.INSTANCE_GPU_MEMORY, "Gt", "40000"),)]),
            pool_state(),
            RequirementMismatch(keys.INSTANCE_GPU_MEMORY, wanted="at least 40001", offered="24576", nearest="24576"),
        ),
        # Of two terms the one that came further is told.
        (
            pod(gpu=1, affinity=_ZONE_TERMS),
            pool_state(),
            RequirementMismatch(keys.CAPACITY_TYPE, wanted="spot", offered="on-demand"),
        ),
        # Each is offered, but not together.
        (
            pod(gpu=1, selector={keys.ZONE: "us-east-1b", keys.INSTANCE_TYPE: "g5.12xlarge"}),
            pool_state(options=[option(G5_12XLARGE), option(G5_XLARGE, zone="us-east-1b")]),
            NoPermittedType(f"{keys.ZONE} In us-east-1b"),
        ),
        (
            pod(resources={"nvidia.com/gpu": 1}),
            pool_state(types=[G4AD_2XLARGE]),
            AcceleratorNotOffered("nvidia.com/gpu", offered=("amd.com/gpu",), families=("g4ad",)),
        ),
        (pod(gpu=1), pool_state(types=[M5_LARGE]), AcceleratorNotOffered("nvidia.com/gpu", offered=())),
        (pod(), pool_state(), GpuPoolClosed()),
        (
            pod(gpu=8),
            pool_state(),
            NoTypeFits("nvidia.com/gpu", needed=8, nearest_amount=4, nearest_type="g5.12xlarge"),
        ),
        (
            pod(gpu=1, memory="500Gi"),
            pool_state(types=[G5_XLARGE]),
            NoTypeFits("memory", needed=500 * GIB, nearest_amount=16 * GIB, nearest_type="g5.xlarge"),
        ),
        # Four GPUs leave only the 12xlarge, whose cpu is what lacks.
        (
            pod(gpu=4, cpu="64"),
            pool_state(),
            NoTypeFits("cpu", needed=64_000, nearest_amount=48_000, nearest_type="g5.12xlarge"),
        ),
        (pod(gpu=1), pool_state(prices={}), NoOffering(types=3, unpriced=3)),
        (pod(gpu=1), pool_state(node_pool(replicas=0)), PoolIsStatic()),
        (pod(gpu=1), pool_state(not_ready=PoolNotReady("no subnet matches")), PoolNotReady("no subnet matches")),
        (pod(gpu=1), pool_state(options=[], not_ready=PoolNotReady("no class")), PoolNotReady("no class")),
        (
            pod(gpu=1),
            pool_state(node_pool(requirements=[requirement(keys.ARCH, "In", "s390x")]), options=[]),
            NoPermittedType(f"{keys.ARCH} In s390x"),
        ),
        (pod(gpu=1), pool_state(options=[], unsold=(G5_XLARGE, G5_XLARGE)), NoOffering(types=2, unpriced=0)),
    ],
)
def test_the_first_constraint_that_decides_is_told_with_its_numbers(
    waiting: Pod, state: PoolState, refusal: Refusal
) -> None:
    assert why(waiting, state) == refusal


def test_what_daemons_take_is_told_with_the_nearest_type() -> None:
    refusal = why(pod(cpu="4", gpu=1), pool_state(types=[G5_XLARGE]), daemon_sets=(daemon_set(cpu="500m"),))
    assert refusal == NoTypeFits("cpu", needed=4000, nearest_amount=3500, nearest_type="g5.xlarge", daemon_overhead=500)


def test_offerings_that_refused_are_told_only_when_they_are_the_only_obstacle() -> None:
    refused = {
        "us-east-1a": Unavailable(NOON + minutes(12), 3, "InsufficientInstanceCapacity"),
        "us-east-1b": Unavailable(NOON + minutes(3), 1, "VcpuLimitExceeded"),
    }
    state = pool_state(
        options=[option(zone=zone, refused=each) for zone, each in refused.items()] + [option(G5_12XLARGE, price=None)]
    )
    assert why(pod(gpu=1), state) == OfferingsUnavailable(
        2, until=NOON + minutes(3), refusals=1, last_code="VcpuLimitExceeded"
    )
    assert why(pod(gpu=2), state) == NoOffering(types=1, unpriced=1)


def test_a_limit_is_not_blamed_where_what_it_leaves_room_for_has_refused() -> None:
    pool = node_pool("gpu", limits={"nvidia.com/gpu": 2})
    refused = Unavailable(NOON + minutes(3), 1, "InsufficientInstanceCapacity")
    state = pool_state(pool, options=[option(refused=refused), option(G5_12XLARGE)])

    assert why(pod(gpu=1), state) == OfferingsUnavailable(
        1, until=NOON + minutes(3), refusals=1, last_code="InsufficientInstanceCapacity"
    )


def test_the_nearest_miss_is_told_first() -> None:
    pools = [
        pool_state(node_pool("static", replicas=0)),
        pool_state(node_pool("tainted", weight=50, taints=[taint("gpu")])),
        pool_state(node_pool("elsewhere", labels={keys.ZONE: "us-east-1b"}), zones=["us-east-1b"]),
        pool_state(node_pool("small"), types=[G5_XLARGE]),
        pool_state(node_pool("full", limits={"nodes": 1}), used={"nodes": 1}),
    ]
    waiting = pod(gpu=4, selector={keys.ZONE: "us-east-1a"})
    assert [(name, refusal.code) for name, refusal in told(waiting, *pools)] == [
        ("full", "limit-reached"),
        ("small", "no-type-fits"),
        ("elsewhere", "requirement-mismatch"),
        ("tainted", "taint-not-tolerated"),
        ("static", "pool-is-static"),
    ]


def test_equally_near_pools_are_told_by_weight_then_name() -> None:
    pools = [pool_state(node_pool(name, weight=weight)) for name, weight in (("b", 0), ("a", 0), ("heavy", 9))]
    assert [name for name, _ in told(pod(), *pools)] == ["heavy", "a", "b"]


def test_a_pod_with_an_unsupported_constraint_is_placed_nowhere() -> None:
    waiting = pod(gpu=1, unsupported=("volumes", "podAntiAffinity"))
    assert told(waiting, pool_state()) == [("", UnsupportedConstraint(("podAntiAffinity", "volumes")))]


def test_without_any_pool_a_pod_is_told_so() -> None:
    assert told(pod()) == [("", PoolNotReady("no node pool is declared"))]


def test_pods_that_are_alike_are_told_alike() -> None:
    waiting = tuple(pod(f"pod-{number}") for number in range(3))
    unplaced = solve(Problem(waiting, (), (pool_state(),))).unplaced
    assert [each.pod.name for each in unplaced] == ["pod-0", "pod-1", "pod-2"]
    assert len({each.refusals for each in unplaced}) == 1


class TestNearMisses:
    """Of several types that all lack something, the one that lacks least is told, and what would do."""

    wide = instance_type("c5.4xlarge", vcpus=16, memory_gib=32)
    tall = instance_type("r5.2xlarge", vcpus=8, memory_gib=64)
    prices: ClassVar = {**PRICES, "c5.4xlarge": "0.7", "r5.2xlarge": "0.5"}

    def test_of_types_that_lack_as_much_the_cheapest_is_told(self) -> None:
        twin = instance_type("g5a.2xlarge", vcpus=8, memory_gib=32, accelerators={"nvidia.com/gpu": 1})
        state = pool_state(types=[G5_2XLARGE, twin], prices={**PRICES, "g5a.2xlarge": "1.1"})
        told = why(pod(gpu=1, memory="40Gi"), state)
        assert told == NoTypeFits("memory", needed=40 * GIB, nearest_amount=32 * GIB, nearest_type="g5a.2xlarge")

    def test_what_else_the_nearest_type_lacks_is_told_too(self) -> None:
        told = why(pod(gpu=1, cpu="12", memory="20Gi"), pool_state(types=[G5_XLARGE]))
        assert told == NoTypeFits(
            "cpu",
            needed=12_000,
            nearest_amount=4_000,
            nearest_type="g5.xlarge",
            also=(Measured("memory", 20 * GIB, 16 * GIB),),
        )

    def test_a_type_that_lacks_one_resource_is_nearer_than_one_that_lacks_two(self) -> None:
        told = why(pod(gpu=1, cpu="8", memory="33Gi"), pool_state(types=[G5_XLARGE, G5_2XLARGE]))
        assert told == NoTypeFits("memory", needed=33 * GIB, nearest_amount=32 * GIB, nearest_type="g5.2xlarge")

    def test_where_no_single_resource_is_lacking_everywhere_the_pair_is_told(self) -> None:
        told = why(pod(cpu="16", memory="60Gi"), pool_state(types=[self.wide, self.tall], prices=self.prices))
        assert told == NoTypeFits(
            "memory",
            needed=60 * GIB,
            nearest_amount=32 * GIB,
            nearest_type="c5.4xlarge",
            also=(Measured("cpu", 16_000, 16_000),),
            only_together=True,
        )

    def test_a_type_without_the_accelerator_is_no_near_miss(self) -> None:
        state = pool_state(types=[G5_XLARGE, self.tall], prices=self.prices)
        told = why(pod(gpu=1, memory="60Gi"), state)
        assert told == NoTypeFits("memory", needed=60 * GIB, nearest_amount=16 * GIB, nearest_type="g5.xlarge")

    def test_a_type_of_the_pool_that_the_pod_itself_excludes_is_told_with_that_requirement(self) -> None:
        waiting = pod(gpu=1, memory="15510Mi", selector={keys.INSTANCE_SIZE: "xlarge"})
        state = pool_state(options=[option(allocatable={"memory": "14162Mi"}), option(G5_12XLARGE), option(G5_2XLARGE)])
        assert why(waiting, state) == NoTypeFits(
            "memory",
            needed=15510 * 2**20,
            nearest_amount=14162 * 2**20,
            nearest_type="g5.xlarge",
            would_do="g5.2xlarge",
            barred_by=f"{keys.INSTANCE_SIZE} In xlarge",
            is_barred_by_pod=True,
        )

    def test_of_numbers_offered_the_one_nearest_a_bound_is_told(self) -> None:
        small = instance_type(
            "g4dn.xlarge", vcpus=4, memory_gib=16, accelerators={"nvidia.com/gpu": 1}, gpu_memory_gib=16
        )
        state = pool_state(types=[small, G5_XLARGE], prices={**PRICES, "g4dn.xlarge": "0.5"})
        waiting = pod(gpu=1, affinity=[(requirement(keys.INSTANCE_GPU_MEMORY, "Gte", "40000"),)])
        assert why(waiting, state) == RequirementMismatch(
            keys.INSTANCE_GPU_MEMORY, wanted="at least 40000", offered="16384, 24576", nearest="24576"
        )
        waiting = pod(gpu=1, affinity=[(requirement(keys.INSTANCE_GPU_MEMORY, "Lt", "9000"),)])
        assert why(waiting, state).nearest == "16384"  # type: ignore[union-attr]
