"""What AWS says ahead of taking a machine away."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum

from attrs import frozen

_NEVER = datetime.max.replace(tzinfo=UTC)


class InterruptionKind(str, Enum):
    """In order of what weighs most: EC2 takes the machine within minutes, its slot of a reservation is taken back, its
    host is worked on, or it is only more likely to be taken than others.

    ``STATE_CHANGE`` says that a machine stops or ends already: EC2 itself is asked about that, the message only hastens
    it.
    """

    SPOT = "spot-interruption"
    RESERVATION = "reservation-interruption"
    MAINTENANCE = "scheduled-maintenance"
    REBALANCE = "rebalance-recommendation"
    STATE_CHANGE = "state-change"


@frozen
class Interruption:
    """One message about one instance: ``at`` is when it was sent, ``deadline`` when the machine goes, where that is
    told. ``detail`` is AWS's own word for what happens."""

    kind: InterruptionKind
    instance_id: str
    at: datetime
    deadline: datetime | None = None
    detail: str = ""

    @property
    def order(self) -> tuple[int, datetime, datetime, str]:
        """The first of several about one instance is the one that counts."""
        return (_RANK[self.kind], self.deadline or _NEVER, self.at, self.detail)


_RANK = {kind: rank for rank, kind in enumerate(InterruptionKind)}


def decisive(told: Iterable[Interruption]) -> Interruption | None:
    """The one that counts, however many there are and in whatever order they came."""
    return min(told, key=lambda each: each.order, default=None)
