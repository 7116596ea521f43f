"""Reserved capacity that nobody uses, and why: it is paid for all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from engine.catalog.ledger import standing
from engine.decide.options import Market
from engine.decide.question import Seen
from engine.decide.reserved import Places, is_selected, places
from engine.model import labels as keys
from engine.model.catalog import Offering
from engine.model.money import UsdPerHour
from engine.model.plan import Launch
from engine.model.policy import NodeClass, NodePool
from engine.model.reservation import (
    ACTIVE,
    CapacityReservation,
    IdleReservation,
    MatchCriteria,
    OpenReservations,
    ReservationKind,
    WhyIdle,
)


def idle_reservations(seen: Seen, launches: Iterable[Launch]) -> tuple[IdleReservation, ...]:
    """What stays empty of each reservation once these launches are done, in id order.

    Told are those that a class selects, and of the others those of a type and zone that some pool permits: an account
    may have many more, of other people.
    """
    if not seen.snapshot.cloud.reservations:
        return ()
    account = _Account(seen)
    taken = Counter(each.claim.inputs.capacity_reservation_id for each in launches)
    told = (account.told(each, taken[each.id]) for each in seen.snapshot.cloud.reservations if each.state == ACTIVE)
    return tuple(sorted((each for each in told if each is not None), key=lambda each: each.id))


class _Account:
    """One snapshot's reservations, beside what the pools permit."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._market = Market(seen.catalog, seen.environment, seen.snapshot, seen.learned)
        self._open = {each.reservation.id: each for each in places(seen.snapshot)}
        found = ((pool, seen.policy.node_class(pool.node_class)) for pool in seen.policy.node_pools)
        pools = [(pool, node_class) for pool, node_class in found if node_class is not None]
        self._pools = sorted(pools, key=lambda pair: pair[0].name)

    def told(self, reservation: CapacityReservation, taken: int) -> IdleReservation | None:
        """None: it is full, or nothing of this environment's."""
        is_open = reservation.id in self._open
        left = (self._open[reservation.id].left if is_open else reservation.available) - taken
        selecting = [each for each in self._seen.policy.node_classes if is_selected(reservation, each)]
        offering = Places(reservation, left).offering
        reserved = [(pool, of) for pool, of in self._pools if of in selecting and self._permits(pool, of, reservation)]
        on_demand = (
            [] if selecting else [pair for pair in self._pools if self._permits(*pair, reservation, open_to=True)]
        )
        if left <= 0 or not (selecting or on_demand):
            return None
        return IdleReservation(
            id=reservation.id,
            instance_type=reservation.instance_type,
            zone=reservation.zone,
            kind=reservation.kind,
            match_criteria=reservation.match_criteria,
            unused=left,
            total=reservation.total,
            why=self._why(offering, is_open=is_open, is_selected=bool(selecting), users=reserved),
            node_pools=tuple(pool.name for pool, _ in reserved or on_demand),
            used_by=tuple(pool.name for pool, _ in on_demand if _falls_into(pool, reservation)),
            usd_per_hour=self._price(reservation, left),
        )

    def _why(
        self, offering: Offering, *, is_open: bool, is_selected: bool, users: list[tuple[NodePool, NodeClass]]
    ) -> WhyIdle:
        if not is_open:
            return WhyIdle.ENDING
        if not is_selected:
            return WhyIdle.NO_CLASS_SELECTS_IT
        if not users:
            return WhyIdle.NO_POOL_PERMITS_IT
        learned, now = self._seen.learned, self._seen.snapshot.taken_at
        stands = [standing(learned, offering, node_class.name, now) for _, node_class in users]
        if all(each is not None and each.barred for each in stands):
            return WhyIdle.REFUSED_LATELY
        return WhyIdle.NO_POD_TAKES_IT

    def _permits(
        self, pool: NodePool, node_class: NodeClass, reservation: CapacityReservation, *, open_to: bool = False
    ) -> bool:
        """Whether the pool may make a node in it: as reserved, or, ``open_to`` it without its class selecting it, also
        as what else it might buy there on demand."""
        of = Places(reservation, 0)
        as_reserved = self._market.permits(pool, node_class, of.offering, of.labels)
        bought = Offering(reservation.instance_type, reservation.zone, keys.ON_DEMAND, None)
        return as_reserved or (open_to and self._market.permits(pool, node_class, bought, {}))

    def _price(self, reservation: CapacityReservation, count: int) -> UsdPerHour | None:
        if reservation.kind is ReservationKind.CAPACITY_BLOCK:
            return None
        node = {
            keys.INSTANCE_TYPE: reservation.instance_type,
            keys.ZONE: reservation.zone,
            keys.CAPACITY_TYPE: keys.ON_DEMAND,
        }
        each = self._market.usd_per_hour(node)
        return UsdPerHour(each.micros * count) if each.micros else None


def _falls_into(pool: NodePool, reservation: CapacityReservation) -> bool:
    return reservation.match_criteria is MatchCriteria.OPEN and pool.open_reservations is OpenReservations.USE
