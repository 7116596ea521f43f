"""Kinds of node that pools make, and what they are to a class of pods."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.constraint import HostPort
from engine.model.money import FREE, UsdPerHour
from engine.model.quantity import Resources
from engine.model.reservation import ReservationKind
from engine.policy.rules.ruling import TypeAt
from engine.scheduling.problem import NodeOption
from engine.scheduling.requirements import canonical_labels

# Custom labels that were left to choose, in name order.
AddedLabels = tuple[tuple[str, str], ...]


# Label values that a node must have, in key order.
Pin = tuple[tuple[str, str], ...]


# Type, capacity type, reservation, price, capacity, room, overhead, added labels, probes, daemons' ports.
class Make:
    """What a node of a kind is, whatever options it may be made from: one object for the same of one pool."""

    __slots__ = ()


@frozen(eq=False)
class Kind:
    """Options of one pool that differ in nothing but the zone; those on probation are apart from the others, and each
    reservation is a kind of its own, of which ``most`` more nodes can be had, of all pools together.

    ``capacity`` is what counts against limits, one ``nodes`` included; ``room`` is allocatable less daemons, which
    take ``overhead``. ``cost`` is what it is chosen by: its price and what the pool says a node costs besides; free
    where it has no price. ``added_labels`` are the pool's custom labels that were left to choose. ``buyable`` are the
    options that have a price and refused no launch lately, or may be tried again: then, for each of the ``probes``, one
    launch. ``order`` decides where prices are equal.
    """

    pool: str
    instance_type: InstanceType
    capacity_type: str
    usd_per_hour: UsdPerHour | None
    capacity: Resources
    room: Resources
    overhead: Resources
    added_labels: AddedLabels
    options: tuple[NodeOption, ...]
    node_cost: UsdPerHour = FREE
    daemon_ports: frozenset[HostPort] = frozenset()
    make: Make = field(factory=Make)
    probes: tuple[str, ...] = ()
    buyable: tuple[NodeOption, ...] = field(init=False)
    order: tuple[object, ...] = field(init=False)
    cost: UsdPerHour = field(init=False)
    reservation: str = field(init=False)
    most: int | None = field(init=False)
    _shown: dict[int, Mapping[str, str]] = field(init=False, factory=dict)
    _pins: dict[tuple[object, ...], Mapping[Pin, Mapping[str, str]]] = field(init=False, factory=dict)

    @buyable.default
    def _priced_and_available(self) -> tuple[NodeOption, ...]:
        return tuple(
            each for each in self.options if each.usd_per_hour is not None and each.is_available and each.available != 0
        )

    @order.default
    def _fewest_accelerators_then_names(self) -> tuple[object, ...]:
        devices = sum(self.instance_type.accelerators.values())
        name = (self.instance_type.name, self.capacity_type, *_reservation_order(self.options[0]))
        return devices, self.pool, *name, self.added_labels, self.probes

    @cost.default
    def _price_and_node_cost(self) -> UsdPerHour:
        return self.usd_per_hour + self.node_cost if self.usd_per_hour is not None else FREE

    @reservation.default
    def _that_of_its_options(self) -> str:
        return self.options[0].offering.reservation_id

    @most.default
    def _places_of_the_reservation(self) -> int | None:
        return self.options[0].available

    def labels_of(self, option: NodeOption) -> Mapping[str, str]:
        """Those that a node will have once it is up that is made from this one of its options."""
        if id(option) not in self._shown:
            self._shown[id(option)] = {**canonical_labels(option.labels_once_up), **dict(self.added_labels)}
        return self._shown[id(option)]

    def pins(self, options: tuple[NodeOption, ...], keys: tuple[str, ...]) -> Mapping[Pin, Mapping[str, str]]:
        """The values of these keys that nodes of some of its options have, each with the labels of the first such."""
        # Who offers them puts them together anew in each pass, and a kind lives through many.
        asked = (keys, *map(id, options))
        if asked not in self._pins:
            found: dict[Pin, Mapping[str, str]] = {}
            for option in options:
                labels = self.labels_of(option)
                found.setdefault(tuple((key, labels[key]) for key in keys if key in labels), labels)
            self._pins[asked] = found
        return self._pins[asked]

    @property
    def type_at(self) -> TypeAt:
        """What rules know it by."""
        return self.instance_type.name, self.capacity_type


# Nobody changes one. That it is not frozen makes tens of thousands of them in a third of the time.
@define(eq=False)
class Offer:
    """A kind of node that holds ``pods_per_node`` of a class, and has a price. ``tier`` 0 is asked first.

    ``options`` can be bought now; there may be none. ``preference`` is what rules give it, for this class. ``fillable``
    is the part of the kind's room that packing may fill as it likes.
    """

    tier: int
    kind: Kind
    usd_per_hour: UsdPerHour
    pods_per_node: int
    options: tuple[NodeOption, ...]
    preference: float = 0.0
    fillable: Resources = field()

    @fillable.default
    def _all_of_the_room(self) -> Resources:
        return self.kind.room

    def cost(self, pods: int, pods_per_node: int) -> tuple[int, float, float, int, tuple[object, ...]]:
        """The smaller the better for so many pods: tier, what rules prefer, price for each pod served, then more of
        them on one node. So inside a tier the most preferred offering wins at any price; price decides among equals.

        ``pods_per_node`` may differ from the offer's where a real node has other room than was foretold.
        """
        served = min(pods_per_node, pods)
        return self.tier, -self.preference, self.kind.cost.micros / served, -served, self.kind.order


# Offers that a class would as soon have, but for their price.
Rung = tuple[Offer, ...]
# Pool, instance type, capacity type, zone.
OfferingName = tuple[str, str, str, str]


def _reservation_order(option: NodeOption) -> tuple[bool, str]:
    """Karpenter's (pkg/providers/instance/filter of its AWS provider): a reservation without end before a block."""
    is_block = option.labels.get(keys.CAPACITY_RESERVATION_TYPE) == ReservationKind.CAPACITY_BLOCK.value
    return is_block, option.offering.reservation_id
