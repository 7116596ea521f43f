"""Who watches ``nodewright run``: a terminal, where the line of a quiet pass is written over, a log, or a program."""

from __future__ import annotations

import sys

from engine.cli.terminal import err
from engine.model.fault import Fault
from engine.report.summary import PassReport, report_json, summary_line


class LineAudience:
    """One line a pass on standard output. Quiet passes show only on a terminal, each over the one before."""

    def __init__(self) -> None:
        self._err = err()
        self._is_terminal = sys.stdout.isatty()
        self._status = ""

    def say(self, line: str) -> None:
        self._clear()
        self._err.print(line, style="dim", markup=False)

    def warn(self, fault: Fault) -> None:
        self._clear()
        self._err.print(f"warning: {fault}", style="yellow", markup=False)
        for hint in fault.hints:
            self._err.print(f"  → {hint}", markup=False)

    def pass_ended(self, report: PassReport, *, is_quiet: bool) -> None:
        line = summary_line(report)
        self._clear()
        if not is_quiet:
            sys.stdout.write(line + "\n")
        elif self._is_terminal:
            self._status = line
            sys.stdout.write(line)
        sys.stdout.flush()

    def on_event(self, event: object) -> None:
        """A line a pass is enough, but for a wait; ``--verbose`` tells what became of each claim."""
        if type(event).__name__ == "Waiting":
            self._err.print(f"warning: {getattr(event, 'message', '')}", style="yellow", markup=False)

    def _clear(self) -> None:
        if self._status:
            sys.stdout.write("\r\x1b[2K")
            sys.stdout.flush()
            self._status = ""


class JsonAudience(LineAudience):
    """One JSON object a pass that did something, and each heartbeat."""

    def pass_ended(self, report: PassReport, *, is_quiet: bool) -> None:
        if not is_quiet:
            sys.stdout.write(report_json(report) + "\n")
            sys.stdout.flush()
