"""Instance types and their offerings. catalog/ makes them from the data file and live answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from attrs import field, frozen

from engine.model.money import UsdPerHour
from engine.model.quantity import Resources


@frozen
class InstanceType:
    """An EC2 instance type.

    ``memory_bytes`` is nominal. ``accelerators`` holds whole devices by Kubernetes resource (``nvidia.com/gpu``): a
    fractional GPU (g6f) is not in it, and ``is_accelerated`` still says true, so that CPU-only pods stay away.
    ``labels`` are the well-known labels that Karpenter gives the type, zone and capacity type apart. ``has_nvlink``: it
    has several GPUs, all of them joined by NVLink.
    """

    name: str
    arch: str
    vcpus: int
    memory_bytes: int
    accelerators: Resources
    is_accelerated: bool
    accelerator_memory_bytes: int
    local_nvme_bytes: int
    max_pods: int
    network_gbps: float
    efa_interfaces: int
    labels: Mapping[str, str]
    has_nvlink: bool = False


def offering_key(instance_type: str, zone: str, capacity_type: str, reservation_id: str = "") -> str:
    """TYPE/ZONE/CAPACITY-TYPE, and /RESERVATION where there is one."""
    return "/".join((instance_type, zone, capacity_type, *([reservation_id] if reservation_id else ())))


@frozen
class Offering:
    """One instance type in one zone at one capacity type. ``usd_per_hour`` None: no known price, so never bought.

    The price is the instance's alone; a node's price adds its EBS volumes. A reserved one is of one ``reservation_id``,
    and costs nothing more: the reservation is paid for whether it is used or not.
    """

    instance_type: str
    zone: str
    capacity_type: str
    usd_per_hour: UsdPerHour | None
    reservation_id: str = ""

    @property
    def key(self) -> str:
        """The ledger's key: the same on write and on read. A fourth part is the reservation."""
        return offering_key(self.instance_type, self.zone, self.capacity_type, self.reservation_id)


@frozen
class Catalog:
    """What one environment can buy. ``source`` names the data and ``as_of`` its date; ``digest`` is of the content.

    ``ebs_usd_per_gib_month`` etc. price a node's volumes; the extra ones are gp3's, ``provisioned`` io1's and io2's.
    ``zone_ids`` maps the zone's name to its id. ``notes`` are what a person should know of the data.
    """

    region: str
    source: str
    as_of: date
    instance_types: tuple[InstanceType, ...]
    offerings: tuple[Offering, ...]
    zone_ids: Mapping[str, str]
    ebs_usd_per_gib_month: Mapping[str, float]
    ebs_usd_per_extra_iops_month: float
    ebs_usd_per_extra_throughput_mib_month: float
    digest: str
    ebs_usd_per_provisioned_iops_month: Mapping[str, float] = field(factory=dict)
    notes: tuple[str, ...] = ()

    def instance_type(self, name: str) -> InstanceType | None:
        return next((found for found in self.instance_types if found.name == name), None)
