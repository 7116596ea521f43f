"""Which nodes count against disruption budgets, and why. Values."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from engine.model.reason import DisruptionReason


class Counts(str, Enum):
    """Out already: ``LOST``, ``LEFT`` (let go, and may still run), ``MARKED``, ``DOOMED`` (it has to go by nobody's
    choice) and ``NOT_READY``. Going by the plan: ``AWAITS`` its replacement, or is ``MARKED_NEXT``."""

    LOST = "lost"
    LEFT = "left"
    MARKED = "marked"
    DOOMED = "doomed"
    NOT_READY = "not-ready"
    AWAITS = "awaits-replacement"
    MARKED_NEXT = "marked-next"

    @property
    def is_out(self) -> bool:
        return self not in (Counts.AWAITS, Counts.MARKED_NEXT)


@frozen
class Counted:
    """One node. ``reason`` is what it goes for, as far as that is known; ``awaits`` are the claims that are to take its
    place."""

    claim: str
    node: str | None
    counts: Counts
    reason: DisruptionReason | None = None
    awaits: tuple[str, ...] = ()
