"""What a node of a type and class can hold: its capacity, and what of it is left for pods.

Source of the rules: karpenter-provider-aws, pkg/providers/instancetype/types.go (computeCapacity,
kubeReservedResources, evictionThreshold). All amounts are whole base units; nothing is a float.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from attrs import frozen

from engine.catalog.volumes import GIB, ephemeral_storage_bytes
from engine.model.catalog import InstanceType
from engine.model.environment import Environment
from engine.model.policy import AmiFamily, Kubelet, NodeClass
from engine.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources, base_units, parse_quantity

EFA = "vpc.amazonaws.com/efa"

_MIB = 2**20
_MILLICORES = 1000
# Graviton machines keep 64 MiB for contiguous allocation that Linux never hands out.
_ARM_RESERVED_MIB = 64
# kube-reserved CPU: of each range of millicores, so many hundredths of a percent.
_CPU_RESERVED = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, 1 << 31, 25))
_RESERVED_MIB_PER_POD = 11
_RESERVED_MIB = 255
_RESERVED_STORAGE_BYTES = GIB
_EVICTION_MEMORY_BYTES = 100 * _MIB
_MEMORY_SIGNAL = "memory.available"
_STORAGE_SIGNAL = "nodefs.available"


@frozen
class NodeShape:
    """``capacity`` counts against a pool's limits; ``allocatable`` is for pods and daemons, and never more."""

    capacity: Resources
    allocatable: Resources


def node_shape(instance_type: InstanceType, node_class: NodeClass, environment: Environment) -> NodeShape:
    """The node's resources: cpu, memory, ephemeral-storage, pods, accelerators and EFA interfaces.

    ``allocatable`` is capacity less kube-reserved, system-reserved and the hard eviction thresholds, at least zero.
    Raises QuantityError when the class's kubelet holds an amount that is no quantity.
    """
    capacity = _capacity(instance_type, node_class, environment.vm_memory_overhead_percent)
    reserved = (
        _kube_reserved(capacity, node_class.kubelet)
        + node_class.kubelet.system_reserved
        + _eviction_threshold(capacity, node_class.kubelet)
    )
    left = ((name, max(0, amount - reserved.amount(name))) for name, amount in capacity.items())
    return NodeShape(capacity=capacity, allocatable=Resources(left))


def _capacity(instance_type: InstanceType, node_class: NodeClass, vm_overhead: Decimal) -> Resources:
    amounts = {
        CPU: instance_type.vcpus * _MILLICORES,
        MEMORY: _memory_bytes(instance_type, vm_overhead),
        EPHEMERAL_STORAGE: _storage_bytes(instance_type, node_class),
        PODS: _pod_count(instance_type, node_class),
        **instance_type.accelerators,
    }
    if instance_type.efa_interfaces:
        amounts[EFA] = instance_type.efa_interfaces
    return Resources(amounts)


def _memory_bytes(instance_type: InstanceType, vm_overhead: Decimal) -> int:
    """Nominal memory less what the hypervisor takes, which is rounded up to a MiB."""
    mib = instance_type.memory_bytes // _MIB
    if instance_type.arch == "arm64":
        mib -= _ARM_RESERVED_MIB
    return (mib - int((mib * vm_overhead).to_integral_value(ROUND_CEILING))) * _MIB


def _storage_bytes(instance_type: InstanceType, node_class: NodeClass) -> int:
    if node_class.instance_store_raid0 and instance_type.local_nvme_bytes:
        return instance_type.local_nvme_bytes
    return ephemeral_storage_bytes(node_class)


def _pod_count(instance_type: InstanceType, node_class: NodeClass) -> int:
    """The network interfaces' limit or kubelet's maxPods, podsPerCore on top; Bottlerocket knows no podsPerCore."""
    kubelet = node_class.kubelet
    count = instance_type.max_pods if kubelet.max_pods is None else kubelet.max_pods
    if kubelet.pods_per_core and node_class.ami_family is not AmiFamily.BOTTLEROCKET:
        return min(count, kubelet.pods_per_core * instance_type.vcpus)
    return count


def _kube_reserved(capacity: Resources, kubelet: Kubelet) -> Resources:
    """What the class reserves, resource by resource, else Karpenter's figures."""
    millicores = capacity.amount(CPU)
    cpu = sum(
        # Each range is rounded down by itself.
        (min(millicores, end) - start) * share // 10_000
        for start, end, share in _CPU_RESERVED
        if millicores >= start
    )
    memory_mib = _RESERVED_MIB_PER_POD * capacity.amount(PODS) + _RESERVED_MIB
    amounts = {CPU: cpu, MEMORY: memory_mib * _MIB, EPHEMERAL_STORAGE: _RESERVED_STORAGE_BYTES}
    return Resources({**amounts, **Resources.parse(kubelet.kube_reserved)})


def _eviction_threshold(capacity: Resources, kubelet: Kubelet) -> Resources:
    """The hard eviction thresholds: the class's, else 100 MiB of memory and a tenth of the storage."""
    memory = kubelet.eviction_hard.get(_MEMORY_SIGNAL)
    storage = kubelet.eviction_hard.get(_STORAGE_SIGNAL)
    tenth = -(-capacity.amount(EPHEMERAL_STORAGE) // 10)
    return Resources(
        {
            MEMORY: _EVICTION_MEMORY_BYTES if memory is None else _signal(MEMORY, memory, capacity),
            EPHEMERAL_STORAGE: tenth if storage is None else _signal(EPHEMERAL_STORAGE, storage, capacity),
        }
    )


def _signal(resource: str, threshold: str, capacity: Resources) -> int:
    """A threshold in bytes. A percentage is of capacity, rounded up; 100 % turns the signal off, as in kubelet."""
    if not threshold.endswith("%"):
        return base_units(resource, threshold)
    percent = parse_quantity(threshold[:-1])
    if percent == 100:
        return 0
    share = capacity.amount(resource) * percent / 100
    return -(-share.numerator // share.denominator)
