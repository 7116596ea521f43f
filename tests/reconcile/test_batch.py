"""When a pass begins after changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.reconcile.batch import wait_for_batch

IDLE, LONGEST = 0.05, 1.0


class Changes:
    """Changes at known times; waiting is going to the next of them."""

    def __init__(self, times: list[float]) -> None:
        self.times, self.now = sorted(times), 0.0

    def monotonic(self) -> float:
        return self.now

    def revision(self) -> int:
        return sum(time <= self.now for time in self.times)

    def wait_for_change(self, after: int, timeout_seconds: float) -> int:
        until = self.now + timeout_seconds
        ahead = [time for time in self.times if self.now < time <= until]
        if self.revision() <= after:
            self.now = ahead[0] if ahead else until
        return self.revision()

    def batch(self, decided: int, until: float = float("inf"), *, urgent_at: float = float("inf")) -> int:
        return wait_for_batch(
            self,
            decided,
            self.monotonic,
            until=until,
            is_urgent=lambda: self.now >= urgent_at,
            idle_seconds=IDLE,
            longest_seconds=LONGEST,
        )


@given(st.lists(st.floats(min_value=0.001, max_value=20.0), min_size=1, max_size=60))
def test_every_change_is_decided_on_within_the_longest_time(times: list[float]) -> None:
    changes, decided = Changes(times), 0

    while decided < len(times):
        waiting = changes.times[decided]
        revision = changes.batch(decided)
        assert revision > decided, "a batch holds the change that began it"
        assert changes.now - waiting <= LONGEST + 1e-6
        decided = revision


def test_a_single_change_waits_for_the_idle_time_only() -> None:
    changes = Changes([3.0])

    assert changes.batch(0) == 1
    assert abs(changes.now - 3.0 - IDLE) < 1e-9


def test_a_burst_is_one_batch() -> None:
    changes = Changes([1.0 + number * 0.004 for number in range(200)])

    assert changes.batch(0) == 200


def test_changes_that_never_pause_end_at_the_longest_time() -> None:
    changes = Changes([1.0 + number * 0.01 for number in range(1000)])

    changes.batch(0)

    assert abs(changes.now - 2.0) < 0.02


def test_without_a_change_it_ends_when_it_has_to() -> None:
    changes = Changes([50.0])

    assert changes.batch(0, until=7.0) == 0
    assert changes.now == 7.0


def test_what_is_urgent_waits_for_no_batch() -> None:
    changes = Changes([1.0, 1.02])

    assert changes.batch(0, urgent_at=1.0) == 1
    assert changes.now == 1.0
