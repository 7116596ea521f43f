"""Converging as it happens, on a terminal; silent where nobody watches, since the outcome says it all."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from engine.model.plan import Plan, RemovalPhase

_INSTANCE = "aws:ec2/instance:Instance"
_DOING: Mapping[str, str] = {
    "create": "launching",
    "import": "adopting",
    "delete": "removing",
    "update": "changing",
    "replace": "replacing",
}
_COMPONENTS = ("nodewright:index:", "pulumi:")


class ConvergeProgress:
    """A bar over the machines that come and go, and beside it what is being done. ``plan`` None: how many is unknown.

    Events are Pulumi's as converge reduces them, known here by their name and fields: ``StepStarted``, ``StepDone``
    and ``StepFailed`` have ``urn``, ``op`` and perhaps ``planning``, ``Waiting`` has a ``message``, which is shown
    where nobody watches, too. Anything else is passed over.
    """

    def __init__(self, plan: Plan | None, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=_machines(plan))
        self._running: dict[str, str] = {}

    def start(self) -> None:
        self._progress.start()

    def stop(self) -> None:
        self._progress.stop()

    def on_event(self, event: object) -> None:
        """Take one event of converging in."""
        urn, op = str(getattr(event, "urn", "")), str(getattr(event, "op", ""))
        kind = type(event).__name__
        if kind == "Waiting":
            self._progress.console.print(Text(str(getattr(event, "message", "")), style="yellow"))
        if op not in _DOING or getattr(event, "planning", False) or _type_of(urn).startswith(_COMPONENTS):
            return
        if kind == "StepStarted":
            self._running[urn] = f"{_DOING[op]} {_name_of(urn)}"
        elif kind in ("StepDone", "StepFailed"):
            self._running.pop(urn, None)
            if _type_of(urn) == _INSTANCE:
                self._progress.advance(self._task)
            if kind == "StepFailed" and not self._progress.disable:
                self._progress.console.print(Text(f"{_DOING[op]} {_name_of(urn)} failed", style="yellow"))
        self._progress.update(self._task, description=self.now_doing)

    @property
    def now_doing(self) -> str:
        """What began last and has not ended, and how much runs beside it."""
        if not self._running:
            return "converging"
        latest = next(reversed(self._running.values()))
        others = len(self._running) - 1
        return latest + (f" and {others} more" if others else "")


def _machines(plan: Plan | None) -> int | None:
    if plan is None:
        return None
    return len(plan.launches) + sum(removal.phase is RemovalPhase.RELEASE for removal in plan.removals)


def _type_of(urn: str) -> str:
    """The resource's own type: the last of those that its parents chain up."""
    parts = urn.split("::")
    return parts[2].rsplit("$", 1)[-1] if len(parts) > 2 else ""


def _name_of(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]
