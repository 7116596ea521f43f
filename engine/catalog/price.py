"""What a node costs an hour, its EBS volumes included."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from engine.catalog.volumes import node_volumes, volume_size_gib
from engine.model.catalog import Catalog, Offering
from engine.model.money import UsdPerHour
from engine.model.policy import BlockDevice, NodeClass

# AWS charges a month's rate by the hour of a 730-hour month.
_HOURS_A_MONTH = 730
_MICROS = 1_000_000
# What a gp3 volume has without extra charge.
_GP3_FREE_IOPS = 3000
_GP3_FREE_MIB_PER_S = 125


def node_usd_per_hour(catalog: Catalog, offering: Offering, node_class: NodeClass) -> UsdPerHour | None:
    """The instance's price and its volumes'; None when the offering has no known price."""
    if offering.usd_per_hour is None:
        return None
    return offering.usd_per_hour + ebs_usd_per_hour(catalog, node_class)


def ebs_usd_per_hour(catalog: Catalog, node_class: NodeClass) -> UsdPerHour:
    """The price of the volumes of one node of the class, rounded to a millionth once.

    A volume type without a price in the catalog costs as much as the dearest that has one.
    """
    monthly = sum((_usd_per_month(catalog, device) for device in node_volumes(node_class)), Decimal(0))
    return UsdPerHour(int((monthly * _MICROS / _HOURS_A_MONTH).to_integral_value(ROUND_HALF_UP)))


def _usd_per_month(catalog: Catalog, device: BlockDevice) -> Decimal:
    kind = device.volume_type
    rates = catalog.ebs_usd_per_gib_month
    per_gib = rates.get(kind, max(rates.values(), default=0.0))
    return volume_size_gib(device) * _exact(per_gib) + _performance_usd_per_month(catalog, device)


def _performance_usd_per_month(catalog: Catalog, device: BlockDevice) -> Decimal:
    iops, mib_per_s = device.iops or 0, device.throughput_mib_per_s or 0
    if device.volume_type == "gp3":
        extra_iops = max(0, iops - _GP3_FREE_IOPS) * _exact(catalog.ebs_usd_per_extra_iops_month)
        extra_mib = max(0, mib_per_s - _GP3_FREE_MIB_PER_S) * _exact(catalog.ebs_usd_per_extra_throughput_mib_month)
        return extra_iops + extra_mib
    return iops * _exact(catalog.ebs_usd_per_provisioned_iops_month.get(device.volume_type, 0.0))


def _exact(rate: float) -> Decimal:
    """The rate as it was written: 0.08 is 0.08."""
    return Decimal(str(rate))
