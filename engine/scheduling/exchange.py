"""Nodes that go together with what is bought for their pods, and whether that is worth it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from attrs import frozen

from engine.model import labels as keys
from engine.model.money import UsdPerHour, total
from engine.model.stay import NotWorthVacating, RepaidTooLate, SavesTooLittle
from engine.scheduling.movable import SECONDS_OF_AN_HOUR, MovableNode, MoveCost


@frozen(eq=False)
class Exchange:
    """``going`` for ``coming``, neither of which has anything to do with other nodes that go or come."""

    going: tuple[MovableNode, ...]
    coming: tuple[MovableNode, ...]

    @property
    def saving(self) -> UsdPerHour:
        """Below nothing where what comes is dearer."""
        return total(each.usd_per_hour for each in self.going) - total(each.usd_per_hour for each in self.coming)

    def least_saving(self, cost: MoveCost) -> UsdPerHour:
        """What it must save an hour, restarts apart."""
        price = total(each.usd_per_hour for each in self.going)
        return max(cost.least_saving, price.scaled(self._share(cost)))

    def objection(self, cost: MoveCost) -> NotWorthVacating | None:
        """The first thing that the exchange falls short of."""
        least = self.least_saving(cost)
        if self.saving < least:
            return SavesTooLittle(self.saving, least)
        restart = sum(each.restart_micros for each in self.going)
        repaid_in = restart * SECONDS_OF_AN_HOUR // self.saving.micros if restart else 0
        if repaid_in > cost.repaid_within_seconds:
            return RepaidTooLate(restart, self.saving, repaid_in, cost.repaid_within_seconds)
        return None

    def _share(self, cost: MoveCost) -> Decimal:
        spot = (any(each.capacity_type == keys.SPOT for each in nodes) for nodes in (self.going, self.coming))
        return cost.spot_share if all(spot) else cost.least_share


def exchanges(going: Sequence[MovableNode], coming: Sequence[MovableNode]) -> tuple[Exchange, ...]:
    """All of them, parted as finely as can be: those whose pods a new node gets go together.

    In the order of the nodes that go. New nodes for nobody's pods keep up their pool's base capacity: each comes for
    another of those that go of the pool, the dearest first.
    """
    of_pod = {pod.key: number for number, node in enumerate(going) for pod in node.pods}
    parts = _Parts(len(going))
    source: list[int] = []
    idle: Counter[str] = Counter()
    for node in coming:
        linked = [of_pod[pod.key] for pod in node.pods if pod.key in of_pod]
        if not linked:
            linked = [_dearest(going, node.node_pool, idle[node.node_pool])]
            idle[node.node_pool] += 1
        for each in linked[1:]:
            parts.join(linked[0], each)
        source.append(linked[0])
    found: dict[int, tuple[list[MovableNode], list[MovableNode]]] = {}
    for number, node in enumerate(going):
        found.setdefault(parts.of(number), ([], []))[0].append(node)
    for node, number in zip(coming, source, strict=True):
        found[parts.of(number)][1].append(node)
    return tuple(Exchange(tuple(gone), tuple(come)) for gone, come in found.values())


def _dearest(going: Sequence[MovableNode], pool: str, place: int) -> int:
    """The one at this place from the dearest of the pool; those of other pools come last."""
    ranked = sorted(
        range(len(going)), key=lambda at: (going[at].node_pool != pool, -going[at].usd_per_hour.micros, going[at].claim)
    )
    return ranked[min(place, len(ranked) - 1)]


class _Parts:
    """Numbers that belong together, by the least of them."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def of(self, number: int) -> int:
        while self._above[number] != number:
            self._above[number] = self._above[self._above[number]]
            number = self._above[number]
        return number

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.of(one), self.of(other)))
        self._above[second] = first
