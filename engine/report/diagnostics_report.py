"""Findings in files that people write: place, rule, message, the line with a caret, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from engine.model.diagnostic import Diagnostic, Severity
from engine.report.words import counted

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}
_LONGEST_LINE = 160
_BEFORE_THE_CARET = 60


def render_diagnostics(findings: Iterable[Diagnostic], checked: Sequence[str] = ()) -> RenderableType:
    """Each as ``FILE:LINE:COLUMN: SEVERITY RULE: MESSAGE``; ``checked`` are environments, named in the last line."""
    every = tuple(findings)
    lines = [line for finding in every for line in _lines(finding)]
    return Group(*lines, _ending(every, checked))


def _lines(finding: Diagnostic) -> Iterator[Text]:
    place = finding.position
    yield Text.assemble(
        (f"{place.file}:{place.line}:{place.column}: ", "bold"),
        (finding.severity.value, _STYLES[finding.severity]),
        f" {finding.rule}: {finding.message}",
    )
    if place.source_line.strip():
        yield from _excerpt(place.source_line, max(place.column, 1))
    if finding.hint:
        yield Text(f"  → {finding.hint}")


def _excerpt(source_line: str, column: int) -> Iterator[Text]:
    """The source line and a caret under the column; of a long line the part around it."""
    written = source_line.rstrip("\r\n")
    start = max(0, column - _BEFORE_THE_CARET) if len(written) > _LONGEST_LINE else 0
    shown = written[start : start + _LONGEST_LINE]
    # A tab stays a tab in both lines, so that the caret stands where the reader's terminal puts the column.
    before = "".join("\t" if character == "\t" else " " for character in shown[: column - 1 - start])
    yield Text(f"  | {shown}", style="dim", no_wrap=True, overflow="ignore")
    yield Text(f"  | {before}^", style="cyan", no_wrap=True, overflow="ignore")


def _ending(findings: Sequence[Diagnostic], checked: Sequence[str]) -> Text:
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    of = f"{', '.join(checked)}: " if checked else ""
    if not findings:
        return Text(f"{of}no findings", style="bold green")
    style = "bold red" if errors else "bold yellow"
    return Text(f"{of}{counted(errors, 'error')}, {counted(warnings, 'warning')}", style=style)
