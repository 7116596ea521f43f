"""A number that grows with each change, and a thread that waits for it."""

from __future__ import annotations

import threading


class Board:
    """For many writers and one that waits. ``lock`` guards whatever the number counts the changes of."""

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.RLock())
        self._revision = 0
        self._woken = False

    @property
    def lock(self) -> threading.Condition:
        return self._condition

    @property
    def revision(self) -> int:
        with self._condition:
            return self._revision

    def changed(self) -> None:
        """Something that a decision could depend on is another."""
        with self._condition:
            self._revision += 1
            self._condition.notify_all()

    def wake(self) -> None:
        """Let the one that waits look, though the number stays; also the one that waits next."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def wait(self, after: int, timeout_seconds: float) -> int:
        """The number, once it is more than ``after``, or on ``wake``, or when the time is over."""
        with self._condition:
            self._condition.wait_for(lambda: self._revision > after or self._woken, timeout_seconds)
            self._woken = False
            return self._revision
