"""Waiting as the AWS plugin waits, at the sandbox's pace: the same steps, fifty times shorter by default."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import field, frozen

REAL_WAITS_VARIABLE = "NODEWRIGHT_STANDIN_REAL_WAITS"
SANDBOX_SCALE = 1 / 50

# Polls grow from the first of these to the second, as the plugin's do.
FIRST_POLL_SECONDS = 0.1
LONGEST_POLL_SECONDS = 10.0

LEAST_TIMEOUT_SECONDS = 10.0

MISSES_TOLERATED = 20


class WaitError(Exception):
    """A thing did not come to the state that was waited for; worded as the AWS plugin words it."""


@frozen
class Pace:
    """How long waits take: every pause and every timeout is multiplied by `scale`."""

    scale: float
    stopped: threading.Event = field(factory=threading.Event)

    def deadline(self, timeout_seconds: float) -> float:
        """When to give up, on the monotonic clock; a short pace leaves a slow endpoint some seconds all the same."""
        scaled = timeout_seconds * self.scale
        return time.monotonic() + max(scaled, min(timeout_seconds, LEAST_TIMEOUT_SECONDS))

    @classmethod
    def chosen_by(cls, environment: Mapping[str, str] = os.environ) -> "Pace":
        """Real times when NODEWRIGHT_STANDIN_REAL_WAITS is 1, the sandbox's otherwise."""
        return cls(1.0 if environment.get(REAL_WAITS_VARIABLE) == "1" else SANDBOX_SCALE)

    def pause(self, seconds: float) -> None:
        """Raises WaitError when the engine cancels meanwhile."""
        if self.stopped.wait(seconds * self.scale):
            raise WaitError("context canceled")


@frozen
class Wait:
    """One kind of wait: a first delay, a least time between polls, and when to give up; all in seconds."""

    timeout_seconds: float
    delay_seconds: float = 0
    least_poll_seconds: float = 0
    misses: int = MISSES_TOLERATED

    def until(self, pace: Pace, target: str, look: Callable[[], str | None], pending: tuple[str, ...] = ()) -> None:
        """Poll `look` (a state, None while the thing is not found) until `target`.

        With `pending` given, any other state fails at once. Raises WaitError.
        """
        deadline = pace.deadline(self.timeout_seconds)
        pace.pause(self.delay_seconds)
        poll_seconds, missed, state = FIRST_POLL_SECONDS, 0, None
        while True:
            state = look()
            if state == target:
                return
            if state is None:
                missed += 1
                if missed > self.misses:
                    raise WaitError(f"couldn't find resource ({missed} retries)")
            elif pending and state not in pending:
                raise WaitError(f"unexpected state '{state}', wanted target '{target}'")
            if time.monotonic() > deadline:
                raise WaitError(
                    f"timeout while waiting for state to become '{target}' (last state: '{state or ''}', "
                    f"timeout: {self.timeout_seconds:g}s)"
                )
            pace.pause(max(poll_seconds, self.least_poll_seconds))
            poll_seconds = min(poll_seconds * 2, LONGEST_POLL_SECONDS)

    def until_gone(self, pace: Pace, look: Callable[[], str | None], target: str = "gone") -> None:
        """Poll until `look` finds nothing, or finds the thing in the state `target`. Raises WaitError."""
        self.until(pace, target, lambda: look() or target)

    def until_found(self, pace: Pace, look: Callable[[], str | None], times: int = 1) -> None:
        """Poll until the thing has been found `times` times running, against answers that lag. Raises WaitError."""
        seen = 0

        def found() -> str | None:
            nonlocal seen
            seen = seen + 1 if look() is not None else 0
            return None if seen == 0 else ("found" if seen >= times else "seen")

        self.until(pace, "found", found)


T = TypeVar("T")


def patiently(pace: Pace, seconds: float, passing: Callable[[Exception], bool], perform: Callable[[], T]) -> T:
    """Perform, and again for `seconds` while it fails with an error that is `passing`; then that error is raised."""
    deadline = pace.deadline(seconds)
    poll_seconds = FIRST_POLL_SECONDS
    while True:
        try:
            return perform()
        except Exception as error:
            if not passing(error) or time.monotonic() > deadline:
                raise
        pace.pause(poll_seconds)
        poll_seconds = min(poll_seconds * 2, LONGEST_POLL_SECONDS)
