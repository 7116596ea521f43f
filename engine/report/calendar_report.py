"""The calendar of disruption budgets: how many nodes may be out when, and when there is no limit at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from attrs import frozen
from rich.console import RenderableType
from rich.text import Text

from engine.disruption.timetable import PoolTimetable, ReasonsTimetable, Spell
from engine.model.canonical import to_plain
from engine.report.tables import Screen, heading, indented, table
from engine.report.words import counted

CALENDAR_SCHEMA = "nodewright.dev/calendar/v1"
_UNLIMITED = "unlimited"
_SHOWN_HOLES = 4


@frozen
class CalendarScreen:
    """One environment's calendar: ``sizes`` tells where the numbers of nodes come from."""

    environment: str
    start: datetime
    end: datetime
    sizes: str
    pools: tuple[PoolTimetable, ...]


def render_calendars(calendars: Iterable[CalendarScreen]) -> RenderableType:
    """All of them on one screen."""
    lines: list[RenderableType] = []
    for calendar in calendars:
        lines += [Text(""), *_calendar(calendar)] if lines else list(_calendar(calendar))
    return Screen(*lines)


def calendar_markdown(calendars: Iterable[CalendarScreen]) -> str:
    """The same for a pull request: a table for each pool, what has no limit in bold."""
    return "\n".join(line for calendar in calendars for line in _markdown(calendar)) + "\n"


def calendar_json(calendars: Iterable[CalendarScreen]) -> str:
    """The same for programs: times in UTC; ``allowed`` null is no limit."""
    report = {"schema": CALENDAR_SCHEMA, "calendars": [_plain(calendar) for calendar in calendars]}
    return json.dumps(report, indent=2, ensure_ascii=False)


def holes_of(pool: PoolTimetable) -> tuple[tuple[ReasonsTimetable, tuple[Spell, ...]], ...]:
    """The spells in which nothing limits how many nodes go, with the reasons that they are about."""
    found = ((row, tuple(spell for spell in row.spells if spell.allowed is None)) for row in pool.rows)
    return tuple((row, spells) for row, spells in found if spells)


def _calendar(calendar: CalendarScreen) -> Iterator[RenderableType]:
    span = f"{_stamp(calendar.start)} to {_stamp(calendar.end)} UTC"
    yield heading(calendar.environment, f"nodes that may be out at once, {span}")
    yield Text(calendar.sizes, style="dim")
    for pool in calendar.pools:
        yield Text("")
        yield heading(pool.node_pool, counted(pool.nodes, "node"))
        for row in pool.rows:
            yield indented(Text(_reasons(row)))
            yield indented(_spells(row.spells, pool.zones), by=4)
    holes = [line for pool in calendar.pools for line in _hole_lines(pool)]
    yield Text("")
    if not holes:
        yield Text("At every time there is a limit.")
        return
    yield Text("NO LIMIT: any number of nodes may go at once", style="bold red")
    for line in holes:
        yield indented(Text(line, style="red"))


def _spells(spells: Sequence[Spell], zones: Sequence[str]) -> RenderableType:
    rows = table("from (UTC)", "to", *zones, ">allowed", "~by")
    for spell in spells:
        allowed = Text(_allowed(spell), style="bold red" if spell.allowed is None else "")
        local = [_local(spell, zone) for zone in zones]
        rows.add(_stamp(spell.begins), _stamp(spell.ends), *local, allowed, _by(spell))
    return rows


def _hole_lines(pool: PoolTimetable) -> Iterator[str]:
    for row, spells in holes_of(pool):
        shown = [f"{_stamp(spell.begins)} to {_stamp(spell.ends)}" for spell in spells[:_SHOWN_HOLES]]
        more = f" and {len(spells) - _SHOWN_HOLES} times more" if len(spells) > _SHOWN_HOLES else ""
        yield f"{pool.node_pool}, {_reasons(row)}: {', '.join(shown)} UTC{more}"


def _markdown(calendar: CalendarScreen) -> Iterator[str]:
    yield f"## {_cell(calendar.environment)}: nodes that may be out at once"
    yield ""
    yield f"{_stamp(calendar.start)} to {_stamp(calendar.end)} UTC; {_cell(calendar.sizes)}."
    yield ""
    for pool in calendar.pools:
        yield f"### {_cell(pool.node_pool)}, {counted(pool.nodes, 'node')}"
        yield ""
        yield f"| reasons | from (UTC) | to | {''.join(f'{zone} | ' for zone in pool.zones)}allowed | by |"
        yield f"|---|---|---|{'---|' * len(pool.zones)}---:|---|"
        for row in pool.rows:
            for spell in row.spells:
                allowed = f"**{_UNLIMITED}**" if spell.allowed is None else _allowed(spell)
                local = "".join(f"{_local(spell, zone)} | " for zone in pool.zones)
                times = f"{_stamp(spell.begins)} | {_stamp(spell.ends)} | {local}"
                yield f"| {_reasons(row)} | {times}{allowed} | {_cell(_by(spell))} |"
        yield ""
    holes = [line for pool in calendar.pools for line in _hole_lines(pool)]
    if holes:
        yield "**No limit: any number of nodes may go at once**"
        yield ""
        yield from (f"- {_cell(line)}" for line in holes)
        yield ""


def _plain(calendar: CalendarScreen) -> dict[str, Any]:
    return {
        "environment": calendar.environment,
        "from": to_plain(calendar.start),
        "to": to_plain(calendar.end),
        "sizes": calendar.sizes,
        "pools": [
            {
                "node_pool": pool.node_pool,
                "nodes": pool.nodes,
                "zones": list(pool.zones),
                "has_holes": bool(holes_of(pool)),
                "rows": [
                    {
                        "reasons": [reason.value for reason in row.reasons],
                        "spells": [
                            {
                                "from": to_plain(spell.begins),
                                "to": to_plain(spell.ends),
                                "allowed": spell.allowed,
                                "budget": spell.budget,
                                "per_opening": to_plain(spell.per_opening),
                                "error": spell.error,
                            }
                            for spell in row.spells
                        ],
                    }
                    for row in pool.rows
                ],
            }
            for pool in calendar.pools
        ],
    }


def _reasons(row: ReasonsTimetable) -> str:
    return ", ".join(reason.value for reason in row.reasons)


def _allowed(spell: Spell) -> str:
    return _UNLIMITED if spell.allowed is None else str(spell.allowed)


def _by(spell: Spell) -> str:
    """The least budget, why it gives no number where it errs, and what openings allow on top."""
    told = f"{spell.budget}: cannot be evaluated: {spell.error}" if spell.error else spell.budget
    for each in spell.per_opening:
        by = "" if spell.budget.partition(",")[0] == each.budget else f" by {each.budget}"
        told += f"; {each.allowed} in this opening{by}"
    return told


def _local(spell: Spell, zone: str) -> str:
    """``Mon 10:00 to 18:00``, or with the day where it ends on another."""
    begins, ends = (moment.astimezone(ZoneInfo(zone)) for moment in (spell.begins, spell.ends))
    same_day = begins.date() == ends.date()
    return f"{begins:%a %H:%M} to {ends:%H:%M}" if same_day else f"{begins:%a %H:%M} to {ends:%a %H:%M}"


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%a %d %b %H:%M}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
