"""What a node holds, against figures worked out by hand from Karpenter's rules."""

from __future__ import annotations

from decimal import Decimal

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from engine.catalog.build import build_catalog
from engine.catalog.node_shape import NodeShape, node_shape
from engine.model.catalog import InstanceType
from engine.model.environment import Pricing
from engine.model.policy import AmiFamily, BlockDevice, Kubelet, NodeClass
from engine.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, QuantityError, Resources
from engine.observe.catalog_source import read_catalog_data
from tests import builders

MIB = 2**20
GIB = 2**30
TYPES = {each.name: each for each in build_catalog("us-east-1", {}, read_catalog_data(), Pricing()).instance_types}
ENVIRONMENT = builders.environment()


def shape(of: InstanceType | str, node_class: NodeClass | None = None) -> NodeShape:
    kind = TYPES[of] if isinstance(of, str) else of
    return node_shape(kind, node_class or builders.node_class(), ENVIRONMENT)


def kubelet(**fields: object) -> NodeClass:
    return builders.node_class(kubelet=Kubelet(**fields))  # type: ignore[arg-type]


def device(name: str, size_gib: int | None, *, is_root: bool = False) -> BlockDevice:
    return BlockDevice(device_name=name, volume_size_gib=size_gib, is_root=is_root)


@pytest.mark.parametrize(
    ("name", "cpu_milli", "memory_mib", "pods"),
    [
        # 16384 − ⌈1228.8⌉ − (11×58 + 255) − 100; 60 + 10 + 10 m of CPU
        ("g5.xlarge", 3920, 14162, 58),
        # 8192 − ⌈614.4⌉ − (11×29 + 255) − 100; 60 + 10 m
        ("m5.large", 1930, 6903, 29),
        # arm: 8192 − 64, less ⌈609.6⌉, then as g5.xlarge
        ("g5g.xlarge", 3920, 6525, 58),
        # 2097152 − ⌈157286.4⌉ − (11×100 + 255) − 100; 80 + 470 m
        ("p5.48xlarge", 191450, 1938410, 100),
    ],
)
def test_allocatable_is_what_karpenter_computes(name: str, cpu_milli: int, memory_mib: int, pods: int) -> None:
    left = shape(name).allocatable
    assert (left[CPU], left[MEMORY], left[PODS]) == (cpu_milli, memory_mib * MIB, pods)


def test_capacity_is_before_reservations() -> None:
    assert shape("g5.xlarge").capacity == Resources(
        {CPU: 4000, MEMORY: 15155 * MIB, PODS: 58, EPHEMERAL_STORAGE: 20 * GIB, "nvidia.com/gpu": 1}
    )


def test_accelerators_and_fabric_adapters_are_left_whole() -> None:
    left = shape("p5.48xlarge").allocatable
    assert left["nvidia.com/gpu"] == 8
    assert left["vpc.amazonaws.com/efa"] == 32


def test_a_fractional_gpu_offers_none() -> None:
    assert "nvidia.com/gpu" not in shape("g6f.large").allocatable


def test_storage_loses_a_gibibyte_and_a_tenth() -> None:
    assert shape("g5.xlarge").allocatable[EPHEMERAL_STORAGE] == 20 * GIB - GIB - 2 * GIB


@pytest.mark.parametrize(
    ("family", "devices", "size_gib"),
    [
        (AmiFamily.AL2023, (device("/dev/xvda", 100),), 100),
        (AmiFamily.AL2023, (device("/dev/sda1", 100),), 20),
        (AmiFamily.AL2023, (device("/dev/sda1", 100, is_root=True),), 100),
        (AmiFamily.AL2023, (device("/dev/xvda", None),), 20),
        (AmiFamily.BOTTLEROCKET, (device("/dev/xvda", 8), device("/dev/xvdb", 300)), 300),
        (AmiFamily.CUSTOM, (device("/dev/sda1", 50), device("/dev/sdb", 70)), 70),
        (AmiFamily.CUSTOM, (), 20),
    ],
)
def test_pods_write_to_the_volume_of_the_image_family(
    family: AmiFamily, devices: tuple[BlockDevice, ...], size_gib: int
) -> None:
    node_class = builders.node_class(ami_family=family, block_devices=devices)
    assert shape("g5.xlarge", node_class).capacity[EPHEMERAL_STORAGE] == size_gib * GIB


def test_raid0_takes_the_local_disks_where_there_are_any() -> None:
    raid0 = builders.node_class(instance_store_raid0=True)
    assert shape("g5.xlarge", raid0).capacity[EPHEMERAL_STORAGE] == 250 * 10**9
    assert shape("m5.large", raid0).capacity[EPHEMERAL_STORAGE] == 20 * GIB


def test_kubelet_max_pods_counts_in_pods_and_in_reserved_memory() -> None:
    left = shape("g5.xlarge", kubelet(max_pods=110)).allocatable
    assert (left[PODS], left[MEMORY]) == (110, (15155 - (11 * 110 + 255) - 100) * MIB)


def test_pods_per_core_only_lowers_and_bottlerocket_ignores_it() -> None:
    assert shape("g5.xlarge", kubelet(pods_per_core=5)).capacity[PODS] == 20
    assert shape("g5.xlarge", kubelet(pods_per_core=50)).capacity[PODS] == 58
    rocket = evolve(kubelet(pods_per_core=5), ami_family=AmiFamily.BOTTLEROCKET)
    assert shape("g5.xlarge", rocket).capacity[PODS] == 58


def test_kube_reserved_replaces_only_what_it_names() -> None:
    left = shape("g5.xlarge", kubelet(kube_reserved={"cpu": "500m"})).allocatable
    assert (left[CPU], left[MEMORY]) == (3500, 14162 * MIB)


def test_system_reserved_is_on_top() -> None:
    left = shape("g5.xlarge", kubelet(system_reserved=Resources.parse({"cpu": "100m", "memory": "1Gi"}))).allocatable
    assert (left[CPU], left[MEMORY]) == (3820, (14162 - 1024) * MIB)


@pytest.mark.parametrize(
    ("threshold", "evicted_bytes"),
    [("500Mi", 500 * MIB), ("5%", -(-15155 * MIB * 5 // 100)), ("100%", 0)],
)
def test_a_memory_eviction_threshold_is_an_amount_or_a_share(threshold: str, evicted_bytes: int) -> None:
    left = shape("g5.xlarge", kubelet(eviction_hard={"memory.available": threshold})).allocatable
    assert left[MEMORY] == (15155 - 893) * MIB - evicted_bytes


def test_a_storage_eviction_threshold_replaces_the_tenth() -> None:
    left = shape("g5.xlarge", kubelet(eviction_hard={"nodefs.available": "15%"})).allocatable
    assert left[EPHEMERAL_STORAGE] == 20 * GIB - GIB - 3 * GIB


def test_a_threshold_that_is_no_quantity_is_refused() -> None:
    with pytest.raises(QuantityError, match="many"):
        shape("g5.xlarge", kubelet(eviction_hard={"memory.available": "many%"}))


def test_memory_overhead_is_the_environments() -> None:
    bare = builders.environment(vm_memory_overhead_percent=Decimal(0))
    assert node_shape(TYPES["g5.xlarge"], builders.node_class(), bare).capacity[MEMORY] == 16 * GIB


def machine(vcpus: int, memory_mib: int, max_pods: int, arch: str) -> InstanceType:
    plain = builders.instance_type("x1.large", vcpus=vcpus, memory_gib=1, max_pods=max_pods, arch=arch)
    gpus = Resources({"nvidia.com/gpu": vcpus % 9})
    return evolve(plain, memory_bytes=memory_mib * MIB, accelerators=gpus, local_nvme_bytes=max_pods * 10**9)


machines = st.builds(
    machine,
    st.integers(1, 896),
    st.integers(512, 32 * 2**20),
    st.integers(4, 737),
    st.sampled_from(["amd64", "arm64"]),
)
classes = st.builds(
    lambda pods, size, raid0, evict: builders.node_class(
        kubelet=Kubelet(max_pods=pods, eviction_hard={"memory.available": f"{evict}%"}),
        block_devices=(device("/dev/xvda", size),),
        instance_store_raid0=raid0,
    ),
    st.none() | st.integers(0, 1000),
    st.integers(1, 16384),
    st.booleans(),
    st.integers(0, 99),
)


@given(machines, classes)
def test_allocatable_is_never_negative_nor_above_capacity(kind: InstanceType, node_class: NodeClass) -> None:
    found = shape(kind, node_class)
    assert set(found.allocatable) == set(found.capacity)
    assert all(0 <= amount <= found.capacity[name] for name, amount in found.allocatable.items())


@given(machines, classes, st.integers(1, 64), st.integers(1, 2**20))
def test_a_bigger_machine_never_holds_less(
    kind: InstanceType, node_class: NodeClass, more_vcpus: int, more_mib: int
) -> None:
    bigger = evolve(kind, vcpus=kind.vcpus + more_vcpus, memory_bytes=kind.memory_bytes + more_mib * MIB)
    small, big = shape(kind, node_class).allocatable, shape(bigger, node_class).allocatable
    assert all(big[name] >= amount for name, amount in small.items())
