"""Instance types at one capacity type each, as requirement rules are asked about them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from engine.model import labels as keys
from engine.model.catalog import Catalog, InstanceType
from engine.model.money import FREE, UsdPerHour
from engine.policy.facts.values import Facts, instance_type_facts
from engine.policy.rules.ruling import TypeAt


@frozen
class SoldType:
    """A type at one capacity type: its price in the cheapest zone, volumes apart, and the zones that have a price."""

    kind: InstanceType
    capacity_type: str
    usd_per_hour: UsdPerHour
    zones: tuple[str, ...]

    @property
    def facts(self) -> Facts:
        return instance_type_facts(self.kind, self.capacity_type, self.usd_per_hour, self.zones)


def sold_types(catalog: Catalog) -> Mapping[TypeAt, SoldType]:
    """All that has a price somewhere, in the order of names. What has none is never bought, so no rule is asked.

    Any type may be reserved, wherever it is sold: a launch there costs nothing more.
    """
    kinds = {kind.name: kind for kind in catalog.instance_types}
    prices: dict[TypeAt, dict[str, UsdPerHour]] = {}
    for each in catalog.offerings:
        if each.instance_type in kinds:
            prices.setdefault((each.instance_type, keys.RESERVED), {})[each.zone] = FREE
            if each.usd_per_hour is not None:
                prices.setdefault((each.instance_type, each.capacity_type), {})[each.zone] = each.usd_per_hour
    return {
        type_at: SoldType(
            kind=kinds[type_at[0]],
            capacity_type=type_at[1],
            usd_per_hour=min(in_zones.values(), key=lambda price: price.micros),
            zones=tuple(sorted(in_zones)),
        )
        for type_at, in_zones in sorted(prices.items())
    }
