"""What a plan leaves to time, in a sentence: machines that come up, that drain, and that wait to go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from engine.model.drain_stay import DetachesVolumes, Drains
from engine.model.duration import format_duration
from engine.model.plan import Plan
from engine.model.replacement import AwaitsReplacement, RolloutWaits
from engine.model.stay import BelowConsolidateAfter, BudgetExhausted, NotInitialized, OutsideWindow, StayReason
from engine.report.words import counted


def later_words(plan: Plan) -> str:
    """What waits, and until when as far as that is known; empty where nothing waits that time alone brings on."""
    reasons, now = [kept.reason for kept in plan.kept], plan.decided_at
    coming = len(plan.launches) + _count(reasons, NotInitialized)
    leaving = sum(bool(removal.pods or removal.forced) for removal in plan.removals)
    leaving += _count(reasons, Drains, DetachesVolumes)
    awaiting = _count(reasons, AwaitsReplacement)
    parts = [
        _nodes(coming, "comes up", "come up"),
        _nodes(leaving, "drains", "drain"),
        _nodes(awaiting, "waits for another in its place", "wait for others in their place"),
        _nodes(_count(reasons, BudgetExhausted), "waits for a budget", "wait for a budget"),
        *_with_times(reasons, now),
    ]
    return ", ".join(filter(None, parts))


def _with_times(reasons: Sequence[StayReason], now: datetime) -> Iterator[str]:
    trials = [each for each in reasons if isinstance(each, RolloutWaits)]
    proven = _soonest((each.until for each in trials), now)
    on_trial = _nodes(len(trials), "waits for a trial", "wait for a trial")
    yield f"{on_trial}, for {proven} at least" if proven and on_trial else on_trial
    outside = [each for each in reasons if isinstance(each, OutsideWindow) and each.opens is not None]
    opens = _soonest((each.opens for each in outside), now)
    yield _nodes(
        len(outside), f"waits for a window that opens in {opens}", f"wait for windows, the first opens in {opens}"
    )
    idle = [each for each in reasons if isinstance(each, BelowConsolidateAfter)]
    goes = _soonest((each.until for each in idle), now)
    yield _nodes(len(idle), f"stands empty, for {goes} yet", f"stand empty, the first for {goes} yet")


def _nodes(count: int, one: str, several: str) -> str:
    """`2 nodes wait`; empty for none."""
    return f"{counted(count, 'node')} {one if count == 1 else several}" if count else ""


def _count(reasons: Iterable[StayReason], *kinds: type) -> int:
    return sum(isinstance(reason, kinds) for reason in reasons)


def _soonest(moments: Iterable[datetime | None], now: datetime) -> str:
    """How long it is until the first of them; empty where none is known."""
    first = min((moment for moment in moments if moment is not None), default=None)
    return format_duration(first - now) if first is not None else ""
