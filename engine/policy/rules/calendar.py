"""Calendars: the windows that rules name, read from their files."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated

from attrs import frozen
from cronsim import CronSim
from pydantic import Field, PlainValidator, ValidationInfo

from engine.model.policy import CRON_MACROS
from engine.model.rule import Window
from engine.policy.budgets import cron_problem
from engine.policy.fields import read_duration, read_text, refuse
from engine.policy.findings import ObjectFindings, did_you_mean
from engine.policy.located import Fields, Items, Path, find
from engine.policy.rules.parts import Identifier, RuleDocumentPart
from engine.policy.schema import Part, validated
from engine.policy.shapes import shaped, text_like

WINDOWS: Path = ("spec", "windows")
_LONGEST = timedelta(days=366)
_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
# Names that many machines' time zone folders have beside IANA's.
_THIS_MACHINES_OWN = {"localtime", "posixrules"}
_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)


@shaped(text_like(r"([0-9]+(s|m|h))+"))
def _read_window_length(value: object) -> timedelta:
    length = read_duration(value)
    if not timedelta(minutes=1) <= length <= _LONGEST:
        refuse("out-of-range", "a window is open for a minute at least and 366 days at most", "write such as 8h")
    return length


@shaped({"type": "string", "minLength": 1})
def _read_schedule(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    line = CRON_MACROS.get(text.strip(), text.strip()).replace("?", "*")
    problem = cron_problem(line) or _never_fires(line)
    if problem:
        hint = 'write five fields: minute, hour, day, month, weekday, such as "0 22 * * 1-5"; or @daily'
        refuse("bad-schedule", f"{text[:60]!r} is no schedule: {problem}", hint)
    return line


def _never_fires(line: str) -> str:
    return "" if next(CronSim(line, _ANY_DAY), None) is not None else "no day is like that"


@cache
def _time_zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones()) - _THIS_MACHINES_OWN


@shaped(text_like(_ZONE_NAME.pattern))
def _read_time_zone(value: object, info: ValidationInfo) -> str:
    name = read_text(value, info)
    known = _time_zones()
    if not _ZONE_NAME.fullmatch(name) or name not in known:
        hint = did_you_mean(name, known) or "write an IANA name such as America/New_York, or UTC"
        refuse("unknown-time-zone", f"{name[:60]!r} is no time zone", hint)
    return name


Schedule = Annotated[str, PlainValidator(_read_schedule)]


class WindowPart(Part):
    name: Identifier
    schedule: Schedule | None = None
    schedules: list[Schedule] = Field(default_factory=list)
    duration: Annotated[timedelta, PlainValidator(_read_window_length)]
    time_zone: Annotated[str, PlainValidator(_read_time_zone)] = "UTC"


class CalendarSpecPart(Part):
    windows: list[WindowPart]


class CalendarPart(RuleDocumentPart):
    spec: CalendarSpecPart


@frozen
class CalendarRead:
    """``unread`` are the names of windows that are there and could not be read."""

    windows: tuple[Window, ...]
    unread: frozenset[str]


def read_calendar(findings: ObjectFindings) -> CalendarRead:
    """The windows of a calendar that could be read; all that is wrong goes to ``findings``."""
    named = _named(findings)
    part = validated(CalendarPart, findings)
    if part is None:
        return CalendarRead((), named)
    if not part.spec.windows and not findings.lacks_part(WINDOWS):
        findings.error_at_key(WINDOWS, "no-effect", "this calendar has no window", "name one, or remove the calendar")
    windows = tuple(_window(each, (*WINDOWS, index), findings) for index, each in enumerate(part.spec.windows))
    return CalendarRead(windows, named - {window.name for window in windows})


def _named(findings: ObjectFindings) -> frozenset[str]:
    items = find(findings.root, WINDOWS)
    parts = items.items if isinstance(items, Items) else []
    names = [part.fields.get("name") for part in parts if isinstance(part, Fields)]
    return frozenset(getattr(name, "text", "") for name in names if name is not None)


def _window(part: WindowPart, path: Path, findings: ObjectFindings) -> Window:
    schedules = part.schedules + ([part.schedule] if part.schedule is not None else [])
    if part.schedule is not None and part.schedules:
        message = f"the window {part.name} has schedule and schedules"
        findings.error_at_key((*path, "schedule"), "contradiction", message, "keep one of them")
    if not schedules and not findings.lacks_part(path):
        message = f"the window {part.name} has no schedule, so it would never open"
        findings.error((*path, "name"), "missing-field", message, 'add schedule: "0 22 * * 1-5"')
    return Window(part.name, tuple(schedules), part.duration, part.time_zone, position=findings.at((*path, "name")))
