"""When a pool's budgets limit nothing: outside their schedules, or for reasons that none of them names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

from attrs import frozen

from engine.model.diagnostic import Position
from engine.model.policy import Budget
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.rule import Window
from engine.policy.cron import fires
from engine.policy.windows import openings

_MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
_NONE, _DAY, _WEEK = timedelta(0), timedelta(days=1), timedelta(days=7)
# More than a year of weekly times, and every gap of a yearly one.
_TIMES_LOOKED_AT = 60
_FEW = 3
_NOWHERE = Position("", 1, 1)


@frozen
class Hole:
    """Reasons for which any number of nodes may go, and ``when``: ``Sat 00:00 to Mon 06:00 UTC``."""

    reasons: tuple[DisruptionReason, ...]
    when: str


def holes(budgets: Sequence[Budget]) -> tuple[Hole, ...]:
    """The times when no budget holds, for reasons that have them in common together."""
    found: dict[str, tuple[DisruptionReason, ...]] = {}
    for reason in VOLUNTARY_REASONS:
        when = _unlimited(budgets, reason)
        if when:
            found[when] = (*found.get(when, ()), reason)
    return tuple(Hole(reasons, when) for when, reasons in found.items())


def _unlimited(budgets: Sequence[Budget], reason: DisruptionReason) -> str:
    """When no budget limits the reason; empty for never."""
    asked = [budget for budget in budgets if not budget.reasons or reason in budget.reasons]
    if not asked:
        return "at any time"
    if any(_holds_always(budget) for budget in asked):
        return ""
    if all(_is_weekly(budget) for budget in asked):
        return _shown(_shut_in_a_week(asked))
    return "outside the budgets' schedules"


def _holds_always(budget: Budget) -> bool:
    if budget.schedule is None or budget.duration is None:
        return True
    times = islice(fires(budget.schedule, _MONDAY.replace(tzinfo=None)), _TIMES_LOOKED_AT)
    longest_gap = max((later - earlier for earlier, later in pairwise(times)), default=timedelta.max)
    return longest_gap <= budget.duration


def _is_weekly(budget: Budget) -> bool:
    """Whether every week is like every other: no schedule names days of the month, or months."""
    return budget.schedule is not None and budget.schedule.split()[2:4] == ["*", "*"]


def _shut_in_a_week(budgets: Sequence[Budget]) -> list[tuple[timedelta, timedelta]]:
    """From when to when after Monday 00:00 UTC no budget holds; one that spans that Monday begins before its week."""
    held = sorted(
        (opening.begins - _MONDAY, opening.ends - _MONDAY)
        for number, budget in enumerate(budgets)
        for opening in openings(_window(budget, number), _MONDAY, _MONDAY + _WEEK)
    )
    shut, until = list[tuple[timedelta, timedelta]](), timedelta(0)
    for begins, ends in held:
        if begins > until:
            shut.append((until, begins))
        until = max(until, ends)
    if until < _WEEK:
        shut.append((until, _WEEK))
    if len(shut) > 1 and shut[0][0] == _NONE and shut[-1][1] == _WEEK:
        shut = [*shut[1:-1], (shut[-1][0], _WEEK + shut[0][1])]
    return shut


def _window(budget: Budget, number: int) -> Window:
    return Window(f"budget{number}", (budget.schedule or "",), budget.duration or _NONE, position=_NOWHERE)


def _shown(shut: Sequence[tuple[timedelta, timedelta]]) -> str:
    first = shut[0] if shut else (_NONE, _NONE)
    if len(shut) == 7 and all((begins - first[0]) % _DAY == (ends - first[1]) % _DAY == _NONE for begins, ends in shut):
        return f"daily {_clock(first[0])} to {_clock(first[1])} UTC"
    spells = [f"{_weekday(begins)} to {_weekday(ends)}" for begins, ends in shut]
    more = f" and {len(spells) - _FEW} times more a week" if len(spells) > _FEW else ""
    return f"{', '.join(spells[:_FEW])} UTC{more}" if spells else ""


def _weekday(after_monday: timedelta) -> str:
    return (_MONDAY + after_monday).strftime("%a %H:%M")


def _clock(after_monday: timedelta) -> str:
    return (_MONDAY + after_monday).strftime("%H:%M")
