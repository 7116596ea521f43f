"""Calendars name windows; a window that could not open, or not as it says, is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.model.rule import Window
from tests.policy.rules.rule_texts import CALENDAR, GUARDRAIL
from tests.policy.texts import CLASS, POOL, edited, findings_of, policy_of, rules


def test_windows_are_read_in_name_order_with_utc_as_their_zone_unless_they_say_otherwise() -> None:
    second = CALENDAR.replace("office", "more").replace("business", "early").replace("quiet", "late")
    windows = policy_of(POOL, CLASS, CALENDAR, second).windows
    assert [window.name for window in windows] == ["business", "early", "late", "quiet"]
    business, quiet = windows[0], windows[3]
    assert business == Window(
        "business", ("0 9 * * 1-5",), timedelta(hours=8), "America/New_York", position=business.position
    )
    assert (business.position.file, business.position.line, business.position.column) == ("f2.yaml", 6, 13)
    assert quiet == Window("quiet", ("0 0 * * *", "0 12 * * 6"), timedelta(minutes=90), "UTC", position=quiet.position)


@pytest.mark.parametrize(
    ("old", "new", "rule", "hint"),
    [
        ("name: business", "name: busi-ness", "bad-value", ""),
        ("name: business", "name: while", "bad-name", ""),
        ("name: business", "name: quiet", "duplicate-name", ""),
        ("schedule: 0 9 * * 1-5", "schedule: 0 9 * * 1-8", "bad-schedule", ""),
        ("schedule: 0 9 * * 1-5", "schedule: 0 9 31 4 *", "bad-schedule", ""),
        ("schedule: 0 9 * * 1-5", "schedule: every day", "bad-schedule", ""),
        ("      schedule: 0 9 * * 1-5\n", "", "missing-field", ""),
        ("schedule: 0 9 * * 1-5", "schedule: 0 9 * * 1-5\n      schedules: ['@daily']", "contradiction", ""),
        ("duration: 8h", "duration: 8", "bad-duration", ""),
        ("duration: 8h", "duration: 0s", "out-of-range", ""),
        ("duration: 8h", "duration: 9000h", "out-of-range", ""),
        ("America/New_York", "America/New_Yrok", "unknown-time-zone", "did you mean America/New_York?"),
        ("America/New_York", "localtime", "unknown-time-zone", ""),
        ("timeZone:", "timezone:", "unknown-field", "did you mean timeZone?"),
    ],
)
def test_a_mistake_in_a_window_is_told_in_its_line(old: str, new: str, rule: str, hint: str) -> None:
    changed = edited(CALENDAR, old, new)
    (found,) = findings_of(POOL, CLASS, changed.text)
    assert (found.rule, found.position.file) == (rule, "f2.yaml")
    assert hint in found.hint
    if rule != "duplicate-name":
        assert changed.line - 1 <= found.position.line <= changed.line + new.count("\n")


@pytest.mark.parametrize("name", ["busi-ness", "1st", '""', "büro", "out of hours"])
def test_a_name_that_no_rule_could_read_is_told_once_while_rules_read_other_windows(name: str) -> None:
    reading = GUARDRAIL.replace("cost.hourlyAfter <=", "windows.quiet || cost.hourlyAfter <=")
    found = findings_of(POOL, CLASS, CALENDAR.replace("name: business", f"name: {name}"), reading)
    assert rules(found) == ["bad-value"]


def test_names_that_differ_in_case_and_underscores_alone_are_different_names() -> None:
    calendar = CALENDAR.replace("name: business", "name: offHours").replace("name: quiet", "name: off_hours")
    reading = GUARDRAIL.replace("cost.hourlyAfter <=", "windows.offHours != windows.off_hours || cost.hourlyAfter <=")
    assert findings_of(POOL, CLASS, calendar, reading) == ()


def test_calendars_have_names_of_their_own_and_windows() -> None:
    empty = CALENDAR[: CALENDAR.index("  windows:")] + "  windows: []\n"
    assert rules(findings_of(POOL, CLASS, empty)) == ["no-effect"]
    other = CALENDAR.replace("business", "b").replace("quiet", "q")
    assert rules(findings_of(POOL, CLASS, CALENDAR, other)) == ["duplicate-name"]


def test_a_window_may_be_read_by_every_rule_that_may_read_time() -> None:
    changed = GUARDRAIL.replace("cost.hourlyAfter <=", "windows.quiet || cost.hourlyAfter <=")
    assert rules(findings_of(POOL, CLASS, CALENDAR, changed)) == []
    (found,) = findings_of(POOL, CLASS, CALENDAR, changed.replace("windows.quiet", "windows.quite"))
    assert (found.rule, found.hint) == ("cel-unknown-name", "did you mean quiet?")
