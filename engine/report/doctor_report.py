"""What is here, what is missing and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text

from engine.report.tables import Screen, table

# Every other state is a warning: it works, and a person should know how.
_STYLES = {"ok": "green", "missing": "red"}


class Finding(Protocol):
    """One thing that was looked for. ``state`` is an enumeration whose value is the word that is shown."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> Enum: ...

    @property
    def detail(self) -> str: ...

    @property
    def hint(self) -> str: ...


def render_doctor(findings: Iterable[Finding]) -> RenderableType:
    """A row for each finding, what to do beneath those that need it."""
    every = tuple(findings)
    rows = table("what", "state", "~found")
    for finding in every:
        word = str(finding.state.value)
        found = Text(finding.detail)
        if finding.hint:
            found.append(f"\n→ {finding.hint}", style="dim")
        rows.add(_name(finding), Text(word, style=_STYLES.get(word, "yellow")), found)
    missing = [finding.name for finding in every if finding.state.value == "missing"]
    ending = (
        Text(f"Missing: {', '.join(missing)}", style="bold red")
        if missing
        else Text("All is here.", style="bold green")
    )
    return Screen(rows, Text(""), ending)


def _name(finding: Finding) -> str:
    """``sandbox`` for the sandbox of an environment that has this name too."""
    return " ".join(dict.fromkeys(finding.name.split()))
