"""Windows of a Calendar: when they are open. Cron lines on the clock of a time zone, as CronJobs read them.

A local time that daylight saving skips does not fire; one that it repeats fires twice. The duration is real time: four
hours are four hours on the night of the change too. Openings that overlap are one; where one ends as the next begins,
they are two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import groupby, takewhile
from zoneinfo import ZoneInfo

from attrs import frozen

from engine.model.rule import Window
from engine.policy.cron import fires

# As far as an opening is followed back, and how long removals are remembered: one that has lasted longer than that
# counts what went in the last eight days.
LONGEST_OPENING = timedelta(days=8)
# So long may it be until the 29th of February.
FARTHEST_OPENING = timedelta(days=8 * 366)
# No time zone sets its clock back by more than this at once.
_CLOCK_SET_BACK = timedelta(hours=3)


@frozen
class Opening:
    """Open from ``begins`` on, shut from ``ends`` on; both in UTC."""

    begins: datetime
    ends: datetime


def is_open(window: Window, at: datetime) -> bool:
    """Whether any time of the window's schedules is at most its duration, and not all of it, before ``at``."""
    # In UTC: a difference between two times of one zone's clock is no real time.
    now = _utc(at)
    return next(_begun(window, now - window.duration, now), None) is not None


def opened_at(window: Window, at: datetime) -> datetime | None:
    """When the opening that holds at ``at`` began, in UTC; None while the window is shut.

    One that has lasted for more than eight days, as by a time every hour and a duration of two, is told as if it had
    begun eight days ago.
    """
    if not is_open(window, at):
        return None
    now = _utc(at)
    earliest = now - LONGEST_OPENING
    begins = ends = earliest - window.duration
    for fire in _begun(window, begins, now):
        if fire >= ends:
            begins = fire
        ends = fire + window.duration
    return max(begins, earliest)


def opening_of(windows: Sequence[Window], at: datetime) -> datetime | None:
    """When the opening of any of the windows that holds at ``at`` began, in UTC: theirs together, where they overlap.

    None while all are shut. Followed back eight days, as `opened_at`.
    """
    found = _first_opened(windows, at)
    if found is None:
        return None
    earliest = _utc(at) - LONGEST_OPENING
    while found > earliest and (before := _first_opened(windows, found)) is not None and before < found:
        found = before
    return max(found, earliest)


def _first_opened(windows: Sequence[Window], at: datetime) -> datetime | None:
    return min((opened for each in windows if (opened := opened_at(each, at)) is not None), default=None)


def openings(window: Window, start: datetime, end: datetime) -> tuple[Opening, ...]:
    """The parts of ``[start, end)`` in which the window is open, in order; those that go beyond are cut off there."""
    first, last = _utc(start), _utc(end)
    found: list[Opening] = []
    for fire in _begun(window, first - window.duration, last):
        begins, ends = max(fire, first), min(fire + window.duration, last)
        if begins >= ends:
            continue
        if found and begins < found[-1].ends:
            found[-1] = Opening(found[-1].begins, max(ends, found[-1].ends))
        else:
            found.append(Opening(begins, ends))
    return tuple(found)


def next_opening(windows: Iterable[Window], at: datetime) -> datetime | None:
    """When the first of the windows that are shut at ``at`` opens, in UTC; None where none does within eight years."""
    now = _utc(at)
    coming = (next(_begun(window, now, now + FARTHEST_OPENING), None) for window in windows)
    return min((moment for moment in coming if moment is not None), default=None)


def _begun(window: Window, after: datetime, until: datetime) -> Iterator[datetime]:
    """The times of all schedules in ``(after, until]``, in UTC, in order and each once."""
    zone = ZoneInfo(window.time_zone)
    # Where the clock is set back, it shows a later hour for the first time before an earlier one for the second time.
    seconds: list[datetime] = []
    for clock, _ in groupby(merge(*(_local_times(line, after, until, zone) for line in window.schedules))):
        moments = [moment for moment in _moments(clock, zone) if after < moment <= until]
        if moments:
            yield from _taken(seconds, moments[0])
            yield moments[0]
            seconds += moments[1:]
    yield from seconds


def _local_times(line: str, after: datetime, until: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The times on the zone's clock that may lie in ``(after, until]``: some before it and some after it, too."""
    begin = after.astimezone(zone).replace(tzinfo=None) - _CLOCK_SET_BACK
    end = until.astimezone(zone).replace(tzinfo=None) + _CLOCK_SET_BACK
    return takewhile(lambda time: time <= end, fires(line, begin))


def _moments(clock: datetime, zone: ZoneInfo) -> list[datetime]:
    """When the clock of a zone shows this time, in UTC and in order: never, once or twice."""
    told = {clock.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(moment for moment in told if moment.astimezone(zone).replace(tzinfo=None) == clock)


def _taken(seconds: list[datetime], before: datetime) -> Iterator[datetime]:
    """Take the moments before ``before`` from the front of the list."""
    while seconds and seconds[0] < before:
        yield seconds.pop(0)


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
