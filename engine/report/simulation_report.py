"""Simulated runs beside each other: on the screen, as Markdown, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from engine.model.canonical import to_plain
from engine.report.simulation_rows import Section, sections, title_of
from engine.report.tables import Screen, heading, indented, table
from engine.simulate.record import Run

# A field that changes its meaning or goes makes a new version; a new field does not.
SIMULATION_SCHEMA = "nodewright.dev/simulation/v1"
_VIOLATIONS_SHOWN = 10


def render_simulation(runs: Sequence[Run], notes: Sequence[str] = ()) -> RenderableType:
    """Tables with a column for each run; ``notes`` say what was supposed."""
    parts: list[RenderableType] = [
        heading(f"Simulated {title_of(runs)}", f"{sum(run.passes for run in runs):,} passes")
    ]
    parts += [Text(note, style="dim") for note in notes]
    for section in sections(runs):
        parts += [Text(), _table(section, runs)]
    found = tuple(_violations(runs))
    if found:
        parts.append(Text("What must never happen did, which is a fault in nodewright:", style="bold red"))
        parts += [indented(Text(line)) for line in found]
    return Screen(*parts)


def simulation_markdown(runs: Sequence[Run], notes: Sequence[str] = (), picture: str = "") -> str:
    """The same for a pull request or a page; ``picture`` is a file beside it."""
    lines = [f"# Simulated {title_of(runs)}", ""]
    lines += [f"{note}" for note in notes] + ([""] if notes else [])
    if picture:
        lines += [f"![cost, waiting pods, idle GPUs and leaving nodes over time]({picture})", ""]
    for section in sections(runs):
        lines += [f"## {section.title}", "", "| | " + " | ".join(_cell(run.name) for run in runs) + " |"]
        lines.append("|---|" + "---:|" * len(runs))
        lines += [f"| {_cell(row.name.strip())} | " + " | ".join(map(_cell, row.cells)) + " |" for row in section.rows]
        lines.append("")
    found = tuple(_violations(runs))
    if found:
        lines += ["## What must never happen did", "", *(f"- {line}" for line in found), ""]
    return "\n".join(lines)


def simulation_json(runs: Sequence[Run], notes: Sequence[str] = ()) -> str:
    """Everything, for programs. Prices are dollars as text, times ISO 8601, waits seconds."""
    report = {
        "schema": SIMULATION_SCHEMA,
        "notes": list(notes),
        "runs": [to_plain(run) for run in runs],
    }
    return json.dumps(report, indent=2, ensure_ascii=False)


def _table(section: Section, runs: Sequence[Run]) -> RenderableType:
    rows = table(f"~{section.title}", *(f">{run.name}" for run in runs))
    for row in section.rows:
        rows.add(row.name, *row.cells)
    return rows


def _violations(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        for each in run.violations[:_VIOLATIONS_SHOWN]:
            yield f"{run.name}, {each.at:%Y-%m-%d %H:%M:%S}: {each.rule}: {each.what}"
        if len(run.violations) > _VIOLATIONS_SHOWN:
            yield f"{run.name}: and {len(run.violations) - _VIOLATIONS_SHOWN} more"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
