"""What a pool's requirements permit of a catalog, and which requirement stands in the way of the rest."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from engine.model import labels
from engine.model.catalog import Catalog, InstanceType
from engine.model.constraint import Requirement
from engine.model.money import UsdPerHour
from engine.model.policy import NodePool


@frozen
class Sold:
    """One offering with all labels that a node of it would have. ``usd_per_hour`` None is never bought."""

    instance_type: InstanceType
    labels: Mapping[str, str]
    usd_per_hour: UsdPerHour | None


@frozen
class PoolView:
    """A pool beside a catalog. ``barred_by`` are, for each thing sold, the requirements that it does not meet.

    ``may_reserve``: its class selects reservations.
    """

    pool: NodePool
    sold: tuple[Sold, ...]
    barred_by: tuple[frozenset[int], ...]
    may_reserve: bool = False

    @property
    def permitted(self) -> tuple[Sold, ...]:
        return tuple(sold for sold, barred in zip(self.sold, self.barred_by, strict=True) if not barred)

    def permitted_but_for(self, index: int) -> tuple[Sold, ...]:
        """What would be permitted if that requirement were not there."""
        return tuple(sold for sold, barred in zip(self.sold, self.barred_by, strict=True) if barred <= {index})


def sold_in(catalog: Catalog) -> tuple[Sold, ...]:
    """Every offering with its labels."""
    types = {each.name: each for each in catalog.instance_types}
    return tuple(
        Sold(
            instance_type=types[offering.instance_type],
            labels={
                **types[offering.instance_type].labels,
                labels.CAPACITY_TYPE: offering.capacity_type,
                labels.ZONE: offering.zone,
                labels.ZONE_ID: catalog.zone_ids.get(offering.zone, ""),
                labels.REGION: catalog.region,
            },
            usd_per_hour=offering.usd_per_hour,
        )
        for offering in catalog.offerings
    )


def as_reserved(sold: tuple[Sold, ...]) -> tuple[Sold, ...]:
    """What is sold on demand, as reserved capacity: which of it there is, no catalog tells."""
    return tuple(
        Sold(each.instance_type, {**each.labels, labels.CAPACITY_TYPE: labels.RESERVED}, each.usd_per_hour)
        for each in sold
        if each.labels[labels.CAPACITY_TYPE] == labels.ON_DEMAND
    )


def pool_view(pool: NodePool, sold: tuple[Sold, ...], *, may_reserve: bool = False) -> PoolView:
    """The pool's view of what is sold. Requirements on labels that the pool itself defines are not looked at."""
    requirements = [(index, each) for index, each in enumerate(pool.requirements) if _is_of_types(each)]
    barred_by = tuple(
        frozenset(index for index, each in requirements if not each.admits(item.labels.get(each.key))) for item in sold
    )
    return PoolView(pool, sold, barred_by, may_reserve)


def _is_of_types(requirement: Requirement) -> bool:
    return requirement.key in labels.WELL_KNOWN - labels.OF_RESERVATIONS
