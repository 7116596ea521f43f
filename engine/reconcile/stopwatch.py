"""How far a pass has come, and when."""

from __future__ import annotations

from collections.abc import Callable

from engine.report.summary import PassPhase


class Stopwatch:
    """Seconds from its making, by phase."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self.seconds: dict[str, float] = {}

    def reached(self, phase: PassPhase) -> None:
        self.seconds[phase.value] = self.total

    @property
    def total(self) -> float:
        return self._monotonic() - self._began
