"""That a file which a loop goes by has changed, noticed while nothing else happens. Only stamps are looked at."""

from __future__ import annotations

from collections.abc import Callable

from engine.model.fault import Fault
from engine.reconcile.ports import Ports

_LOOK_SECONDS = 2.0
# An editor or a checkout may still be at other files; and rules.py looks again only after this time.
_SETTLED_SECONDS = 1.0
_NEVER = float("inf")


class FileWatch:
    """``read_at`` is when a pass should begin on account of changed files, on the monotonic clock; else infinity."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._look_at = monotonic()
        self._stamp: str | None = None
        self.read_at = _NEVER

    def due_at(self) -> float:
        return min(self._look_at, self.read_at)

    def look(self, ports: Ports) -> None:
        """Compare the stamps with those of the last look, when it is time to."""
        now = self._monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        try:
            stamp = ports.workspace.stamp(ports.environment)
        except (Fault, OSError) as missing:
            # The pass that it begins tells.
            stamp = str(missing)
        if self._stamp is not None and stamp != self._stamp:
            self.read_at = now + _SETTLED_SECONDS
        self._stamp = stamp

    def pass_begins(self) -> None:
        """A pass reads what has changed."""
        if self._monotonic() >= self.read_at:
            self.read_at = _NEVER
