"""What a new node holds and costs, from Karpenter's published figures (reference, 16.3 to 16.5) and EBS's prices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from engine.model.catalog import Catalog, InstanceType, Offering
from engine.model.environment import Environment
from engine.model.policy import NodeClass

_MIB, _GIB = 2**20, 2**30


def is_plain(node_class: NodeClass) -> bool:
    """Whether this file knows all that bears on the node: an Amazon Linux image, and no kubelet settings of its own."""
    kubelet = node_class.kubelet
    own = (
        kubelet.max_pods,
        kubelet.pods_per_core,
        kubelet.system_reserved,
        kubelet.kube_reserved,
        kubelet.eviction_hard,
        node_class.instance_store_raid0,
    )
    return node_class.ami_family.value == "AL2023" and not any(own)


def capacity_of(kind: InstanceType, node_class: NodeClass, environment: Environment) -> Mapping[str, int]:
    """Nominal memory less the hypervisor's share (64 MiB more on arm), the root volume, the rest as it is sold."""
    mib = kind.memory_bytes // _MIB - (64 if kind.arch == "arm64" else 0)
    mib -= math.ceil(mib * Fraction(str(environment.vm_memory_overhead_percent)))
    amounts = {
        "cpu": kind.vcpus * 1000,
        "memory": mib * _MIB,
        "ephemeral-storage": _root_gib(node_class) * _GIB,
        "pods": kind.max_pods,
        **kind.accelerators,
    }
    if kind.efa_interfaces:
        amounts["vpc.amazonaws.com/efa"] = kind.efa_interfaces
    return amounts


def allocatable_of(capacity: Mapping[str, int]) -> Mapping[str, int]:
    """Less kube-reserved (6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of the rest; 255 MiB and
    11 MiB a pod; 1 GiB of storage) and the eviction thresholds (100 MiB; a tenth of the storage)."""
    cores, reserved = capacity["cpu"], 0
    for start, end, share in ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, cores, 25)):
        reserved += max(0, min(cores, end) - start) * share // 10_000
    storage = capacity["ephemeral-storage"]
    less = {
        "cpu": reserved,
        "memory": (255 + 11 * capacity["pods"] + 100) * _MIB,
        "ephemeral-storage": _GIB + math.ceil(storage / 10),
    }
    return {resource: max(0, amount - less.get(resource, 0)) for resource, amount in capacity.items()}


def usd_micros_of(offering: Offering, node_class: NodeClass, catalog: Catalog) -> int:
    """The offering's price and its gp3 volumes', by a month of 730 hours; the image's 20 GiB where none is declared."""
    rate = Fraction(str(catalog.ebs_usd_per_gib_month.get("gp3", 0)))
    monthly = sum(_volume_gibs(node_class)) * rate
    volumes = math.floor(monthly * 1_000_000 / 730 + Fraction(1, 2))
    return (offering.usd_per_hour.micros if offering.usd_per_hour else 0) + volumes


def _volume_gibs(node_class: NodeClass) -> list[int]:
    declared = [device.volume_size_gib or 20 for device in node_class.block_devices]
    has_root = any(each.is_root or each.device_name == "/dev/xvda" for each in node_class.block_devices)
    return declared if has_root else [*declared, 20]


def _root_gib(node_class: NodeClass) -> int:
    roots = [each for each in node_class.block_devices if each.is_root or each.device_name == "/dev/xvda"]
    return (roots[0].volume_size_gib or 20) if roots else 20
