"""What is yet to happen in a simulated world, and when. Of two things at one time the one entered first comes first."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime

Happening = Callable[[], None]


class Agenda:
    """The clock of a simulated world: it stands until it is told to go on."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._entries: list[tuple[datetime, int, Happening]] = []
        self._entered = 0

    def enter(self, at: datetime, happening: Happening) -> None:
        """Let it happen then, or at once where that is past."""
        heapq.heappush(self._entries, (max(at, self.now), self._entered, happening))
        self._entered += 1

    @property
    def next_at(self) -> datetime | None:
        """When the next thing happens; None is never."""
        return self._entries[0][0] if self._entries else None

    def advance(self, until: datetime) -> int:
        """Let everything happen that is due by then, each at its own time; how much that was."""
        happened = 0
        while self._entries and self._entries[0][0] <= until:
            self.now, _, happening = heapq.heappop(self._entries)
            happening()
            happened += 1
        self.now = max(self.now, until)
        return happened
