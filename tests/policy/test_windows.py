"""When windows are open: on the clock of their zone, over both changes of daylight saving, against a minute walk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.rule import Window
from engine.policy.cron import fires
from engine.policy.windows import Opening, is_open, next_opening, opened_at, openings
from tests.builders import SOMEWHERE

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
# In 2026 Berlin's clock goes from 2:00 to 3:00 on 29 March and from 3:00 to 2:00 on 25 October, at 1:00 UTC both times;
# New York's from 2:00 to 3:00 on 8 March (7:00 UTC) and from 2:00 to 1:00 on 1 November (6:00 UTC).


def window(*schedules: str, lasts: timedelta = HOUR, zone: str = "UTC") -> Window:
    return Window(name="quiet", schedules=schedules, duration=lasts, time_zone=zone, position=SOMEWHERE)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def opening(text: str) -> Opening:
    """``2026-03-28 01:30 + 60m``."""
    begins, _, length = text.partition(" + ")
    return Opening(utc(begins), utc(begins) + int(length.removesuffix("m")) * MINUTE)


@pytest.mark.parametrize(
    ("zone", "schedule", "day", "expected"),
    [
        # Before, on and after the day whose 2:30 is skipped.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28", ["2026-03-28 01:30 + 60m"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", []),
        ("Europe/Berlin", "30 2 * * *", "2026-03-30", ["2026-03-30 00:30 + 60m"]),
        ("Europe/Berlin", "0 3 * * *", "2026-03-29", ["2026-03-29 01:00 + 60m"]),
        ("Europe/Berlin", "59 1 * * *", "2026-03-29", ["2026-03-29 00:59 + 60m"]),
        # 2:30 comes twice; 3:00 once.
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", ["2026-10-25 00:30 + 60m", "2026-10-25 01:30 + 60m"]),
        ("Europe/Berlin", "0 3 * * *", "2026-10-25", ["2026-10-25 02:00 + 60m"]),
        ("Europe/Berlin", "59 1 * * *", "2026-10-25", ["2026-10-24 23:59 + 60m"]),
        ("America/New_York", "30 2 * * *", "2026-03-07", ["2026-03-07 07:30 + 60m"]),
        ("America/New_York", "30 2 * * *", "2026-03-08", []),
        ("America/New_York", "0 3 * * *", "2026-03-08", ["2026-03-08 07:00 + 60m"]),
        ("America/New_York", "30 1 * * *", "2026-11-01", ["2026-11-01 05:30 + 60m", "2026-11-01 06:30 + 60m"]),
        ("America/New_York", "0 2 * * *", "2026-11-01", ["2026-11-01 07:00 + 60m"]),
    ],
)
def test_a_skipped_time_does_not_fire_and_a_repeated_one_fires_twice(
    zone: str, schedule: str, day: str, expected: list[str]
) -> None:
    here = ZoneInfo(zone)
    start = datetime.fromisoformat(day).replace(tzinfo=here)
    end = (datetime.fromisoformat(day) + timedelta(days=1)).replace(tzinfo=here)
    assert openings(window(schedule, zone=zone), start, end) == tuple(opening(text) for text in expected)


def test_a_duration_is_real_time_on_the_night_of_the_change() -> None:
    night = window("0 22 * * *", lasts=8 * HOUR, zone="Europe/Berlin")
    assert openings(night, utc("2026-03-28 12:00"), utc("2026-03-29 12:00")) == (opening("2026-03-28 21:00 + 480m"),)
    # It shut at 7 by the clock, not at 6.
    assert is_open(night, datetime(2026, 3, 29, 6, 59, tzinfo=ZoneInfo("Europe/Berlin")))
    assert not is_open(night, datetime(2026, 3, 29, 7, 0, tzinfo=ZoneInfo("Europe/Berlin")))


def test_a_window_is_open_from_its_time_up_to_but_without_its_end() -> None:
    nine = window("0 9 * * 1-5", lasts=8 * HOUR)
    moments = {text: is_open(nine, utc(f"2026-11-{text}")) for text in ("30 08:59", "30 09:00", "30 16:59", "30 17:00")}
    assert moments == {"30 08:59": False, "30 09:00": True, "30 16:59": True, "30 17:00": False}
    assert not is_open(nine, utc("2026-11-29 12:00"))


def test_openings_that_overlap_are_one_and_such_as_touch_are_two() -> None:
    overlapping = window("0 1 * * *", "30 1 * * *", lasts=HOUR)
    touching = window("0 1 * * *", "0 2 * * *", lasts=HOUR)
    day = utc("2026-11-30 00:00"), utc("2026-12-01 00:00")
    assert openings(overlapping, *day) == (opening("2026-11-30 01:00 + 90m"),)
    assert openings(touching, *day) == (opening("2026-11-30 01:00 + 60m"), opening("2026-11-30 02:00 + 60m"))
    assert opened_at(overlapping, utc("2026-11-30 02:15")) == utc("2026-11-30 01:00")
    assert opened_at(touching, utc("2026-11-30 02:15")) == utc("2026-11-30 02:00")


def test_an_opening_is_cut_off_where_the_question_ends() -> None:
    weekend = window("0 22 * * 5", lasts=56 * HOUR)
    asked = utc("2026-11-28 00:00"), utc("2026-11-29 00:00")
    assert openings(weekend, *asked) == (Opening(*asked),)
    assert opened_at(weekend, utc("2026-11-28 00:00")) == utc("2026-11-27 22:00")


def test_a_shut_window_was_not_opened() -> None:
    assert opened_at(window("0 9 * * *"), utc("2026-11-30 10:00")) is None


def test_an_opening_without_an_end_is_followed_back_eight_days_and_no_further() -> None:
    always = window("0 * * * *", lasts=2 * HOUR)
    assert opened_at(always, utc("2026-11-30 12:00")) == utc("2026-11-22 12:00")


def test_the_next_opening_is_the_first_of_all_windows() -> None:
    at = utc("2026-11-30 12:00")
    assert next_opening([window("0 9 * * *"), window("0 22 * * *", zone="Europe/Berlin")], at) == utc(
        "2026-11-30 21:00"
    )
    assert next_opening([window("0 0 29 2 *")], at) == utc("2028-02-29 00:00")
    assert next_opening([], at) is None


@pytest.mark.parametrize(
    ("line", "days"),
    [
        # 1 December 2026 is a Tuesday. Both restricted: one is enough.
        ("0 0 1 * 1", [1, 7, 14]),
        # A step through all days restricts them, for robfig/cron; so any odd day or any Monday.
        ("0 0 */2 * 1", [1, 3, 5, 7, 9, 11, 13, 14, 15]),
        ("0 0 */1 * 1", [7, 14]),
        ("0 0 * * */2", [1, 3, 5, 6, 8, 10, 12, 13, 15]),
        ("0 0 1,* * 1", [7, 14]),
        ("@weekly", [6, 13]),
    ],
)
def test_days_are_read_as_karpenter_reads_them(line: str, days: list[int]) -> None:
    # On a clock without a zone, as cron lines are read.
    times = fires(line, datetime(2026, 11, 30))  # noqa: DTZ001
    assert [next(times).day for _ in days] == days


@st.composite
def cron_lines(draw: st.DrawFn) -> str:
    minute = draw(st.sampled_from(["0", "30", "*/20", "15,45"]))
    hour = draw(st.sampled_from(["*", "1", "2", "3", "*/6", "22", "1-3"]))
    weekday = draw(st.sampled_from(["*", "1-5", "0", "6"]))
    return f"{minute} {hour} * * {weekday}"


CHANGES = [utc("2026-03-29 01:00"), utc("2026-10-25 01:00"), utc("2026-03-08 07:00"), utc("2026-11-01 06:00")]


def by_minutes(of: Window, start: datetime, end: datetime) -> list[bool]:
    """Look at the zone's clock each minute: where it shows a time of a schedule, it opens for its duration."""
    zone = ZoneInfo(of.time_zone)
    told: list[bool] = []
    open_until = start
    moment = start - of.duration
    while moment < end:
        clock = moment.astimezone(zone)
        if any(_shows(clock, line) for line in of.schedules):
            open_until = max(open_until, moment + of.duration)
        if moment >= start:
            told.append(moment < open_until)
        moment += MINUTE
    return told


def _shows(clock: datetime, line: str) -> bool:
    minute, hour, _, _, weekday = line.split()
    day = clock.isoweekday() % 7
    days = {"*": True, "1-5": 1 <= day <= 5, "0": day == 0, "6": day == 6}
    return _in(minute, clock.minute) and _in(hour, clock.hour) and days[weekday]


def _in(field: str, value: int) -> bool:
    if field == "*":
        return True
    if field.startswith("*/"):
        return value % int(field[2:]) == 0
    if "-" in field:
        low, high = field.split("-")
        return int(low) <= value <= int(high)
    return value in {int(part) for part in field.split(",")}


@settings(max_examples=25, deadline=None)
@given(
    lines=st.lists(cron_lines(), min_size=1, max_size=2),
    lasts=st.sampled_from([20, 45, 60, 90, 240, 1440]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    change=st.sampled_from(CHANGES),
    offset=st.integers(-30, 0),
)
def test_openings_are_what_a_walk_by_minutes_finds(
    lines: list[str], lasts: int, zone: str, change: datetime, offset: int
) -> None:
    of = window(*lines, lasts=lasts * MINUTE, zone=zone)
    start = change + offset * HOUR
    end = start + 30 * HOUR
    found = openings(of, start, end)
    minutes = [start + at * MINUTE for at in range(30 * 60)]
    expected = by_minutes(of, start, end)
    assert [any(one.begins <= minute < one.ends for one in found) for minute in minutes] == expected
    assert [is_open(of, minute) for minute in minutes[::13]] == expected[::13]
    for minute, is_within in list(zip(minutes, expected, strict=True))[::61]:
        opened = opened_at(of, minute)
        assert (opened is not None) == is_within
        assert opened is None or (is_open(of, opened) and opened <= minute)
    assert list(found) == sorted(found, key=lambda one: one.begins)
    assert all(earlier.ends <= later.begins for earlier, later in pairwise(found))
