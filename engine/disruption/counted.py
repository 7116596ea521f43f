"""Which nodes count against disruption budgets, and why."""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum

from attrs import frozen

from engine.model.plan import Plan, RemovalPhase
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement


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


def going_by(plan: Plan, out: Set[str]) -> Mapping[str, tuple[Counted, ...]]:
    """Who serves still and goes by the plan, by pool, in claim order. ``out`` are the claims that count already."""
    found: dict[str, list[Counted]] = {}
    for removal in plan.removals:
        record = removal.record
        if removal.phase is RemovalPhase.MARK and record.claim not in out:
            counted = Counted(record.claim, record.node, Counts.MARKED_NEXT, record.reason)
            found.setdefault(record.node_pool, []).append(counted)
    for kept in plan.kept:
        if isinstance(kept.reason, AwaitsReplacement) and kept.claim not in out:
            told = {f"{each.reason.value}: {each.why}": each.reason for each in kept.pending}
            goes_for = told.get(kept.reason.why)
            counted = Counted(kept.claim, kept.node, Counts.AWAITS, goes_for, kept.reason.claims)
            found.setdefault(kept.node_pool, []).append(counted)
    return {pool: tuple(sorted(found[pool], key=lambda each: each.claim)) for pool in sorted(found)}
