"""How many of a new node's GPUs may be of no use (case 8: a pod with one GPU where only larger types are permitted)."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import NodePool
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.refusal import Refusal
from engine.model.spare_refusal import GpuWaste
from engine.report.waste_words import waste_lines
from engine.report.words import refusal_words
from engine.scheduling.waste import exceeds_waste, wasted
from tests.builders import (
    G5_12XLARGE,
    G5_XLARGE,
    M5_LARGE,
    NOON,
    P5_48XLARGE,
    catalog,
    instance_type,
    node_pool,
    option,
    pod,
    requirement,
)
from tests.decide.world import World, policy

TWO = instance_type("g5.8xlarge", vcpus=32, memory_gib=128, accelerators={NVIDIA_GPU: 2})
PRICES = {"g5.xlarge": "1.0", "g5.8xlarge": "2.4", "g5.12xlarge": "5.7", "p5.48xlarge": "98"}
SOLD = catalog([TWO, G5_12XLARGE, P5_48XLARGE], prices=PRICES, capacity_types=[keys.ON_DEMAND])
LARGE_ONLY = requirement(keys.INSTANCE_GPU_COUNT, "In", "2", "4", "8")


def pool(waste: str | None = None, **more: object) -> NodePool:
    allowed = Decimal(waste) if waste is not None else None
    return node_pool(requirements=(LARGE_ONLY,), max_gpu_waste=allowed, **more)  # type: ignore[arg-type]


def plan_for(pods: list[Pod], *pools: NodePool, sold: Catalog = SOLD) -> Plan:
    return World(policy(*pools), pods, sold=sold).decide()


def types(plan: Plan) -> list[str]:
    return sorted(launch.claim.inputs.instance_type for launch in plan.launches)


def refusals(plan: Plan) -> list[Refusal]:
    return [each.refusal for unplaced in plan.unplaced for each in unplaced.refusals]


def pods(count: int, gpu: int = 1, name: str = "pod") -> list[Pod]:
    return [pod(f"{name}-{number}", gpu=gpu) for number in range(count)]


def test_case_8_by_itself_the_smallest_type_is_bought_and_its_waste_is_told() -> None:
    plan = plan_for(pods(1), pool())
    assert types(plan) == ["g5.8xlarge"]
    assert [launch.gpus_wasted for launch in plan.launches] == [1]
    [line] = waste_lines(plan.launches)
    assert "gpu: 1 of 2 GPUs unused on 1 g5.8xlarge" in line


def test_case_8_where_no_waste_is_accepted_the_pod_waits_with_that_reason() -> None:
    plan = plan_for(pods(1), pool("0"))
    assert plan.launches == ()
    [refusal] = refusals(plan)
    assert refusal == GpuWaste(NVIDIA_GPU, requested=1, smallest=2, smallest_type="g5.8xlarge", allowed=Decimal("0"))
    assert "1 of 2 nvidia.com/gpu of g5.8xlarge" in refusal_words(refusal, NOON)
    assert "at most 0%" in refusal_words(refusal, NOON)


@pytest.mark.parametrize(("allowed", "launched"), [("0.49", 0), ("0.5", 1), ("1", 1)])
def test_the_share_that_is_accepted_is_exact(allowed: str, launched: int) -> None:
    assert len(plan_for(pods(1), pool(allowed)).launches) == launched


def test_pods_that_fill_a_node_together_waste_nothing() -> None:
    plan = plan_for([*pods(1, name="a"), pod("b", gpu=1, cpu="2")], pool("0"))
    assert types(plan) == ["g5.8xlarge"]
    assert [launch.gpus_wasted for launch in plan.launches] == [0]


def test_of_three_pods_two_get_a_full_node_and_the_third_waits() -> None:
    plan = plan_for(pods(3), pool("0"))
    assert types(plan) == ["g5.8xlarge"]
    assert [type(each) for each in refusals(plan)] == [GpuWaste]


def test_a_pool_without_a_bound_takes_what_another_would_waste() -> None:
    strict, easy = pool("0", name="strict", weight=10), pool(name="easy")
    [launch] = plan_for(pods(1), strict, easy).launches
    assert launch.claim.node_pool == "easy"


def test_pods_without_a_gpu_start_no_gpu_node_where_waste_is_bounded() -> None:
    open_pool = pool("0.5", open_to_all_pods=True)
    assert plan_for([pod("plain")], open_pool).launches == ()
    assert plan_for([pod("plain")], pool(open_to_all_pods=True)).launches


def test_base_capacity_is_no_waste() -> None:
    plan = plan_for([], pool("0", min_nodes=1))
    assert len(plan.launches) == 1
    assert [launch.gpus_wasted for launch in plan.launches] == [0]


def test_a_dearer_type_that_is_used_whole_comes_before_a_cheap_one_that_is_not() -> None:
    cheap_large = catalog(
        [G5_XLARGE, TWO], prices={"g5.xlarge": "1", "g5.8xlarge": "0.1"}, capacity_types=["on-demand"]
    )
    strict = node_pool(max_gpu_waste=Decimal(0))
    assert types(plan_for(pods(1), strict, sold=cheap_large)) == ["g5.xlarge"]
    assert types(plan_for(pods(1), node_pool(), sold=cheap_large)) == ["g5.8xlarge"]


def test_the_share_is_of_devices_and_a_device_with_two_names_is_in_use_by_either() -> None:
    neuron = instance_type(
        "inf2.24xlarge",
        vcpus=96,
        memory_gib=384,
        accelerators={"aws.amazon.com/neuron": 6, "aws.amazon.com/neuroncore": 12},
    )
    half = Resources({"aws.amazon.com/neuroncore": 6})
    assert wasted(option(neuron, price="1"), half) == Fraction(1, 2)
    assert wasted(option(G5_12XLARGE), Resources({NVIDIA_GPU: 3})) == Fraction(1, 4)
    assert wasted(option(M5_LARGE), Resources()) == 0
    assert exceeds_waste(pool("0.2"), option(G5_12XLARGE), Resources({NVIDIA_GPU: 3}))
    assert not exceeds_waste(pool(), option(G5_12XLARGE), Resources())
