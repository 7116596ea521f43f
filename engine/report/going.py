"""Who is on the way out, or is to be: for the screens of what stands."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from attrs import frozen
from rich.console import RenderableType
from rich.text import Text

from engine.model.canonical import to_plain
from engine.model.plan import Plan, Removal, RemovalPhase
from engine.model.snapshot import Snapshot
from engine.report.pending_words import deadline_words
from engine.report.removal_words import Targets, going_words, targets_of
from engine.report.stay_words import stay_words
from engine.report.tables import heading, indented, table
from engine.report.words import counted

_STEPS = {RemovalPhase.MARK: "drains", RemovalPhase.RELEASE: "is let go"}
_WAITS = "waits"
_STYLES = {"is let go": "red", "drains": "yellow"}


@frozen
class Going:
    """One machine: ``step`` is what is done about it, ``reasons`` what it goes for, ``words`` what it waits for."""

    claim: str
    node: str | None
    step: str
    reasons: tuple[str, ...]
    words: str
    drained_by: datetime | None


def going(plan: Plan, snapshot: Snapshot) -> tuple[Going, ...]:
    """Those that leave by this plan, and then those that are to go and that something keeps, each in claim order.

    Of machines that the published document of ``snapshot`` still has: it may be newer than the plan.
    """
    document, now = snapshot.document, plan.decided_at
    standing = {claim.name for claim in document.claims} if document is not None else set()
    targets = targets_of(plan)
    leaving = sorted((_leaving(each, targets, now) for each in plan.removals), key=lambda one: one.claim)
    waiting = sorted(
        (
            Going(
                claim=kept.claim,
                node=kept.node,
                step=_WAITS,
                reasons=tuple(dict.fromkeys(each.reason.value for each in kept.pending)),
                words=_with_deadline(stay_words(kept.reason, now), kept.drained_by, now),
                drained_by=kept.drained_by,
            )
            for kept in plan.kept
            if kept.pending or kept.drained_by is not None
        ),
        key=lambda one: one.claim,
    )
    return tuple(one for one in (*leaving, *waiting) if one.claim in standing)


def going_section(plan: Plan, snapshot: Snapshot, *, most: int) -> Iterator[RenderableType]:
    """Nothing where nobody is to go; ``most`` rows."""
    every = going(plan, snapshot)
    if not every:
        return
    yield heading(f"To go {counted(len(every), 'node')}")
    rows = table("node", "for", "step", "~what it waits for")
    for one in every[:most]:
        rows.add(one.claim, ", ".join(one.reasons), Text(one.step, style=_STYLES.get(one.step, "")), one.words or "–")
    yield indented(rows)
    if len(every) > most:
        yield indented(Text(f"and {len(every) - most:,} more: nodewright plan --details", style="dim"))


def going_plain(plan: Plan, snapshot: Snapshot) -> list[dict[str, Any]]:
    """The same for programs."""
    return [to_plain(one) for one in going(plan, snapshot)]


def _leaving(removal: Removal, targets: Targets, now: datetime) -> Going:
    record, words = removal.record, going_words(removal, targets, now)
    return Going(
        claim=record.claim,
        node=record.node,
        step=_STEPS[removal.phase],
        reasons=(record.reason.value,),
        words=_with_deadline(words, removal.drained_by, now),
        drained_by=removal.drained_by,
    )


def _with_deadline(words: str, by: datetime | None, now: datetime) -> str:
    return "; ".join(filter(None, (words, deadline_words(by, now) if by is not None else "")))
