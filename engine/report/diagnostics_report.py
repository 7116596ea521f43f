"""Findings in files that people write: place, rule, message, the line with a caret, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from engine.model.diagnostic import Diagnostic, Severity
from engine.report.words import counted

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}
_LONGEST_LINE = 160
_BEFORE_THE_CARET = 60
_LEAST_SHOWN = 20
_MARGIN = "  | "
# A file's control characters are orders to a terminal. Each is shown as one picture, so that carets stay in place.
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: "\u2421"}
_PICTURES |= dict.fromkeys([*range(0x80, 0xA0), 0x2028, 0x2029], "\ufffd")


def render_diagnostics(findings: Iterable[Diagnostic], checked: Sequence[str] = ()) -> RenderableType:
    """Each as ``FILE:LINE:COLUMN: SEVERITY RULE: MESSAGE``; ``checked`` are environments, named in the last line."""
    every = tuple(findings)
    lines = [line for finding in every for line in _lines(finding)]
    return Group(*lines, _ending(every, checked))


def _lines(finding: Diagnostic) -> Iterator[RenderableType]:
    place = finding.position
    yield Text.assemble(
        (f"{place.file}:{place.line}:{place.column}: ", "bold"),
        (finding.severity.value, _STYLES[finding.severity]),
        f" {finding.rule}: {harmless(finding.message)}",
    )
    if place.source_line.strip():
        yield Excerpt(place.source_line, max(place.column, 1) - 1)
    if finding.hint:
        yield Text(f"  → {harmless(finding.hint)}")


def harmless(text: str) -> str:
    """The text with a picture in place of each character that a terminal would obey rather than show."""
    return text.translate(_PICTURES)


@frozen
class Excerpt:
    """The source line and a caret under the column. Of a line that does not fit the part around the column is shown,
    with ``…`` where it was cut; the column counts from 0.
    """

    source_line: str
    column: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Tabs become the blanks that a terminal would show, so that the caret stands beneath its character.
        written = harmless(self.source_line.rstrip("\r\n")).expandtabs()
        caret = len(self.source_line[: self.column].expandtabs())
        # A pipe has no edge at which a line ends.
        edge = _LONGEST_LINE if options.no_wrap else min(options.max_width, _LONGEST_LINE)
        room = max(edge - len(_MARGIN), _LEAST_SHOWN)
        start = 0 if len(written) <= room or caret < room - 1 else caret - min(_BEFORE_THE_CARET, room // 2)
        shown = written[start : start + room]
        if start:
            shown = "…" + shown[1:]
        if start + room < len(written):
            shown = shown[:-1] + "…"
        yield Text(f"{_MARGIN}{shown}", style="dim", no_wrap=True, overflow="ignore")
        yield Text(f"{_MARGIN}{' ' * (caret - start)}^", style="cyan", no_wrap=True, overflow="ignore")


def _ending(findings: Sequence[Diagnostic], checked: Sequence[str]) -> Text:
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    of = f"{', '.join(checked)}: " if checked else ""
    if not findings:
        return Text(f"{of}no findings", style="bold green")
    style = "bold red" if errors else "bold yellow"
    return Text(f"{of}{counted(errors, 'error')}, {counted(warnings, 'warning')}", style=style)
