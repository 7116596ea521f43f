"""CatalogData and an environment's prices to the Catalog of its region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from attrs import frozen

from engine.catalog.catalog_digest import catalog_digest
from engine.catalog.data import CatalogData, TypeFacts
from engine.catalog.interconnect import has_nvlink
from engine.catalog.price_file import PriceFile, read_price_file
from engine.catalog.type_labels import accelerators, kubernetes_arch, type_labels
from engine.model import labels
from engine.model.catalog import Catalog, InstanceType, Offering
from engine.model.environment import Pricing
from engine.model.money import UsdPerHour

_MIB = 2**20
_GB = 10**9
_CAPACITY_TYPES = (labels.ON_DEMAND, labels.SPOT)


def build_catalog(
    region: str,
    zone_ids: Mapping[str, str],
    data: CatalogData,
    pricing: Pricing,
    price_file: bytes | None = None,
) -> Catalog:
    """What can be bought in the region's zones, and for how much.

    ``zone_ids`` maps zone names to zone ids, since the mapping differs between accounts. ``price_file`` is the content
    of ``pricing.file``. A price is an override, which is final; else the price file's or the list's, less the
    discount. Each type is offered on demand where it is sold, with a price of None when none is known, and on spot
    where a spot price is known. Order of ``data`` changes nothing. Raises InvalidInput for a broken price file.
    """
    file = read_price_file(pricing.file or "price file", price_file, region) if price_file is not None else None
    price_list = _PriceList(pricing=pricing, file=file)
    known = sorted(data.types, key=lambda facts: facts.name)
    types = tuple(_instance_type(facts) for facts in known)
    offerings = tuple(
        offering
        for facts in known
        for zone, zone_id in sorted(zone_ids.items())
        if data.is_sold(facts, region, zone_id)
        for offering in price_list.offerings(facts, zone, zone_id)
    )
    ebs_per_gib = {volume: float(usd) for volume, usd in data.ebs.storage.items()}
    ebs_per_iops = {volume: float(usd) for volume, usd in data.ebs.iops.items() if volume != "gp3"}
    unmarked = Catalog(
        region=region,
        source=_source(region, data, file),
        as_of=data.as_of,
        instance_types=types,
        offerings=offerings,
        zone_ids=dict(sorted(zone_ids.items())),
        ebs_usd_per_gib_month=ebs_per_gib,
        ebs_usd_per_extra_iops_month=float(data.ebs.iops.get("gp3", 0)),
        ebs_usd_per_extra_throughput_mib_month=float(data.ebs.throughput.get("gp3", 0)),
        digest="",
        ebs_usd_per_provisioned_iops_month=ebs_per_iops,
        notes=(*data.notes, *_unknown_overrides(pricing, known)),
    )
    return catalog_digest(unmarked)


def _instance_type(facts: TypeFacts) -> InstanceType:
    carried, told = accelerators(facts), type_labels(facts)
    return InstanceType(
        name=facts.name,
        arch=kubernetes_arch(facts),
        vcpus=facts.vcpus,
        memory_bytes=facts.memory_mib * _MIB,
        accelerators=carried,
        is_accelerated=facts.is_accelerated,
        accelerator_memory_bytes=facts.accelerator_memory_mib * _MIB,
        local_nvme_bytes=facts.local_nvme_gb * _GB,
        max_pods=facts.max_pods,
        network_gbps=facts.network_mbps / 1000,
        efa_interfaces=facts.efa_interfaces,
        labels=told,
        has_nvlink=has_nvlink(told, carried),
    )


@frozen
class _PriceList:
    """One environment's prices: its overrides and discounts over its price file over the list."""

    pricing: Pricing
    file: PriceFile | None

    def offerings(self, facts: TypeFacts, zone: str, zone_id: str) -> Iterator[Offering]:
        for capacity_type, listed in zip(_CAPACITY_TYPES, (facts.on_demand, facts.spot), strict=True):
            price = self._price(facts.name, capacity_type, zone, zone_id, listed)
            # Spot without a price is not known to exist; on demand without one is sold, at a price that we do not know.
            if price is not None or capacity_type == labels.ON_DEMAND:
                yield Offering(facts.name, zone, capacity_type, price)

    def _price(
        self, instance_type: str, capacity_type: str, zone: str, zone_id: str, listed: UsdPerHour | None
    ) -> UsdPerHour | None:
        override = self._override(instance_type, capacity_type)
        if override is not None:
            return override
        filed = self.file.price(instance_type, capacity_type, zone, zone_id) if self.file is not None else None
        price = listed if filed is None else filed
        discount = self.pricing.discounts.get(capacity_type)
        return price.scaled(Decimal(1) - discount) if price is not None and discount is not None else price

    def _override(self, instance_type: str, capacity_type: str) -> UsdPerHour | None:
        overrides = self.pricing.overrides
        named = overrides.get(f"{instance_type}/{capacity_type}")
        return named if named is not None or capacity_type != labels.ON_DEMAND else overrides.get(instance_type)


def _source(region: str, data: CatalogData, file: PriceFile | None) -> str:
    """Where the catalog's facts and prices come from, and the warning when the prices are another region's."""
    parts = [data.source]
    if file is not None:
        parts.append(f"prices of {len(file.prices)} offerings from {file.name}")
    if region != data.prices_of:
        others = "the other prices are" if file is not None and file.prices else "prices are"
        parts.append(f"{others} those of {data.prices_of}, not of {region}: name a price file in pricing.file")
    return "; ".join(parts)


def _unknown_overrides(pricing: Pricing, known: list[TypeFacts]) -> Iterator[str]:
    names = {facts.name for facts in known}
    for key in sorted(pricing.overrides):
        instance_type = key.partition("/")[0]
        if instance_type not in names:
            yield f"pricing.overrides names {key}, but the catalog has no instance type {instance_type}"
