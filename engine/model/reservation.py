"""Capacity that is paid for ahead: On-Demand Capacity Reservations and Capacity Blocks of EC2."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum

from attrs import field, frozen

from engine.model.money import UsdPerHour

# EC2 begins to end the instances of a block 30 minutes before its end; Karpenter takes them down, and offers the block
# no more, ten minutes earlier (pkg/controllers/capacityreservation/expiration of its AWS provider).
BLOCK_CLOSES_BEFORE_END = timedelta(minutes=40)
ACTIVE = "active"


class ReservationKind(str, Enum):
    """What a reservation is, as Karpenter's label ``karpenter.k8s.aws/capacity-reservation-type`` says it."""

    DEFAULT = "default"
    CAPACITY_BLOCK = "capacity-block"


class MatchCriteria(str, Enum):
    """Which instances run in a reservation: all that match it and do not stay out, or those alone that name it."""

    OPEN = "open"
    TARGETED = "targeted"


class OpenReservations(str, Enum):
    """Whether a pool's on-demand launches may fall into open reservations that its class does not select.

    ``LEAVE`` is Karpenter's own way: EC2 is told to keep the launch out of them.
    """

    LEAVE = "leave"
    USE = "use"


@frozen
class CapacityReservation:
    """One reservation as EC2 shows it. ``total`` and ``available`` count instances; ``ends_at`` None: open end.

    ``available`` is EC2's count: launches that EC2 has not seen yet are not taken off.
    """

    id: str
    instance_type: str
    zone: str
    total: int
    available: int
    kind: ReservationKind = ReservationKind.DEFAULT
    match_criteria: MatchCriteria = MatchCriteria.TARGETED
    owner_id: str = ""
    state: str = ACTIVE
    ends_at: datetime | None = None
    tags: Mapping[str, str] = field(factory=dict)

    def is_open_at(self, now: datetime) -> bool:
        """Whether machines may still be launched in it: it is active, and does not end before they are of use."""
        if self.state != ACTIVE:
            return False
        notice = BLOCK_CLOSES_BEFORE_END if self.kind is ReservationKind.CAPACITY_BLOCK else timedelta()
        return self.ends_at is None or self.ends_at - notice > now


@frozen
class ReservationTerm:
    """One of a class's ``capacityReservationSelectorTerms``: ``id`` alone, or all of the rest; a tag's ``*`` is any."""

    id: str | None = None
    tags: Mapping[str, str] = field(factory=dict)
    owner_id: str | None = None
    match_criteria: MatchCriteria | None = None

    def selects(self, reservation: CapacityReservation) -> bool:
        """Karpenter's rule: all that the term says has to hold."""
        return (
            self.id in (None, reservation.id)
            and self.owner_id in (None, reservation.owner_id)
            and self.match_criteria in (None, reservation.match_criteria)
            and all(
                key in reservation.tags and value in ("*", "", reservation.tags[key])
                for key, value in self.tags.items()
            )
        )


class WhyIdle(str, Enum):
    """Why a reservation is not filled, the first cause that holds."""

    ENDING = "ending"
    NO_CLASS_SELECTS_IT = "no-class-selects-it"
    NO_POOL_PERMITS_IT = "no-pool-permits-it"
    REFUSED_LATELY = "refused-lately"
    NO_POD_TAKES_IT = "no-pod-takes-it"


@frozen
class IdleReservation:
    """Slots of a reservation that stay empty after a plan.

    ``node_pools`` are those that could use it: by what they select, or, where no class selects it, by the types and
    zones that they permit. ``usd_per_hour`` is what so many instances cost on demand, which is paid for nothing; None
    for a capacity block, which is paid beforehand, and where no price is known. ``used_by`` are pools, of the
    ``node_pools``, whose on-demand launches EC2 may put there.
    """

    id: str
    instance_type: str
    zone: str
    kind: ReservationKind
    match_criteria: MatchCriteria
    unused: int
    total: int
    why: WhyIdle
    node_pools: tuple[str, ...] = ()
    used_by: tuple[str, ...] = ()
    usd_per_hour: UsdPerHour | None = None
