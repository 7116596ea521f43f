"""Waiting longer after each failure in a row, and never all runners at the same moment."""

from __future__ import annotations

from engine.reconcile.host import Host

_FIRST_SECONDS = 1.0
_MOST_SECONDS = 60.0
_JITTER = 0.2


class BackOff:
    """``is_due`` again 1 s after the first failure, then 2 s, 4 s … 60 s, each up to a fifth longer."""

    def __init__(self, host: Host, first_seconds: float = _FIRST_SECONDS, most_seconds: float = _MOST_SECONDS) -> None:
        self._host, self._first, self._most = host, first_seconds, most_seconds
        self.failures = 0
        self.due_at = host.monotonic()

    @property
    def is_due(self) -> bool:
        return self._host.monotonic() >= self.due_at

    def failed(self) -> float:
        """Note one more failure; how many seconds to wait now."""
        # The exponent is bounded: after a night of failures 2.0 ** n is no float any more.
        wait = min(self._most, self._first * 2.0 ** min(self.failures, 30)) * (1 + _JITTER * self._host.chance())
        self.failures += 1
        self.due_at = self._host.monotonic() + wait
        return wait

    def succeeded(self) -> None:
        self.failures = 0
        self.due_at = self._host.monotonic()

    def hurry(self) -> None:
        """Something has changed, so another try is worth it now; the count stays."""
        self.due_at = self._host.monotonic()
