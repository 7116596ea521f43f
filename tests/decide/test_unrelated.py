"""Pods that have nothing to do with each other are answered each in the way that is best for them."""

from __future__ import annotations

from engine.model import labels as keys
from engine.model.pod import Pod
from tests.builders import G5_12XLARGE, G5_XLARGE, catalog, instance_type, node_pool, pod, requirement, usd
from tests.decide.world import World, policy

CPU_TYPES = tuple(instance_type(f"m{size}.x", vcpus=4 * size, memory_gib=16 * size) for size in (1, 2, 4))
PRICES = {"m1.x": "0.20", "m2.x": "0.36", "m4.x": "0.60", "g5.xlarge": "1", "g5.12xlarge": "5.7"}
SOLD = catalog((*CPU_TYPES, G5_XLARGE, G5_12XLARGE), capacity_types=[keys.ON_DEMAND], prices=PRICES)
CPU = node_pool("cpu", requirements=[requirement(keys.INSTANCE_TYPE, "In", *(each.name for each in CPU_TYPES))])
GPU = node_pool(
    "gpu",
    requirements=[requirement(keys.INSTANCE_TYPE, "In", "g5.xlarge", "g5.12xlarge")],
    limits={"nvidia.com/gpu": 4},
)


def _pods(name: str, count: int, *, priority: int, gpu: int | None = None) -> list[Pod]:
    pool = {keys.NODE_POOL: "cpu" if gpu is None else "gpu"}
    return [pod(f"{name}-{each}", cpu="1", gpu=gpu, priority=priority, selector=pool) for each in range(count)]


def test_a_limit_in_one_pool_makes_the_nodes_of_another_no_dearer() -> None:
    """One after another by priority is best for the GPUs, where not all have room; together for the others."""
    of_cpu = [*_pods("first", 7, priority=10), *_pods("second", 7, priority=0)]
    alone = World(policy(CPU, GPU), of_cpu, sold=SOLD).decide()
    assert [each.claim.inputs.instance_type for each in alone.launches] == ["m4.x"]
    of_gpu = [*_pods("large", 1, priority=10, gpu=4), *_pods("small", 2, priority=0, gpu=1)]
    plan = World(policy(CPU, GPU), [*of_cpu, *of_gpu], sold=SOLD).decide()
    assert sorted(each.claim.inputs.instance_type for each in plan.launches) == ["g5.12xlarge", "m4.x"]
    assert [each.pod.name for each in plan.unplaced] == ["small-0", "small-1"]
    assert plan.usd_per_hour_after == usd("6.3")
