"""When a pass begins: once it has been quiet for a moment after a change, and never later than a set time after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Waited(Protocol):
    """What tells of changes: its revision grows with each."""

    def revision(self) -> int: ...

    def wait_for_change(self, after: int, timeout_seconds: float) -> int: ...


def wait_for_batch(
    live: Waited,
    decided: int,
    monotonic: Callable[[], float],
    *,
    until: float,
    is_urgent: Callable[[], bool],
    idle_seconds: float,
    longest_seconds: float,
) -> int:
    """Wait until the changes after revision ``decided`` are a batch; the revision then.

    Ends at ``until`` on the monotonic clock when nothing changes, and at once when ``is_urgent``.
    """
    revision = live.revision()
    while revision <= decided:
        left = until - monotonic()
        if left <= 0 or is_urgent():
            return revision
        revision = live.wait_for_change(decided, left)
    first = monotonic()
    while not is_urgent():
        left = first + longest_seconds - monotonic()
        if left <= 0:
            break
        newer = live.wait_for_change(revision, min(idle_seconds, left))
        if newer == revision:
            break
        revision = newer
    return revision
