"""Offerings that refused a launch: out for longer each time, and forgotten in the end."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalog.ledger import (
    LONGEST_BACK_OFF,
    is_available,
    is_quota,
    pruned,
    with_bring_up,
    with_failed_bring_up,
    with_launch,
    with_refusal,
)
from engine.model.catalog import Offering
from engine.model.ledger import Ledger, Unavailable
from tests.builders import NOON, minutes, usd

G5 = Offering("g5.xlarge", "us-east-1a", "spot", usd(1))
ELSEWHERE = Offering("g5.xlarge", "us-east-1b", "spot", usd(1))
ICE = "InsufficientInstanceCapacity"


def refused_again_and_again(times: int) -> tuple[Ledger, datetime, list[timedelta]]:
    """Refused the moment it comes back, so many times: the ledger, the last refusal's time, each time out."""
    ledger, now, spans = Ledger(), NOON, []
    for _ in range(times):
        ledger = with_refusal(ledger, G5.key, ICE, now)
        spans.append(ledger.unavailable[G5.key].until - now)
        now = ledger.unavailable[G5.key].until
    return ledger, now, spans


def test_an_offering_that_never_refused_is_available() -> None:
    assert is_available(Ledger(), G5, NOON)


def test_a_refusal_bars_that_offering_alone_and_for_three_minutes() -> None:
    ledger = with_refusal(Ledger(), G5.key, ICE, NOON)
    assert not is_available(ledger, G5, NOON + minutes(2.99))
    assert is_available(ledger, G5, NOON + minutes(3))
    assert is_available(ledger, ELSEWHERE, NOON)
    assert ledger.unavailable[G5.key] == Unavailable(until=NOON + minutes(3), refusals=1, code=ICE)


def test_the_time_out_doubles_up_to_an_hour() -> None:
    _, _, spans = refused_again_and_again(8)
    assert [span / minutes(1) for span in spans] == [3, 6, 12, 24, 48, 60, 60, 60]


def test_many_refusals_of_one_pass_count_once() -> None:
    ledger = Ledger()
    for seconds in range(100):
        ledger = with_refusal(ledger, G5.key, ICE, NOON + timedelta(seconds=seconds))
    assert ledger.unavailable[G5.key] == Unavailable(until=NOON + minutes(3), refusals=1, code=ICE)


def test_a_launch_that_succeeds_ends_the_row() -> None:
    ledger, now, _ = refused_again_and_again(4)
    ledger = with_launch(ledger, G5.key)
    assert with_refusal(ledger, G5.key, ICE, now).unavailable[G5.key].refusals == 1


def test_the_row_is_kept_for_an_hour_after_the_offering_came_back() -> None:
    ledger, back_at, _ = refused_again_and_again(2)
    almost = back_at + LONGEST_BACK_OFF - minutes(1)
    assert with_refusal(pruned(ledger, almost), G5.key, ICE, almost).unavailable[G5.key].refusals == 3
    later = back_at + LONGEST_BACK_OFF
    assert pruned(ledger, later).unavailable == {}
    assert with_refusal(ledger, G5.key, ICE, later).unavailable[G5.key].refusals == 1


def test_pruning_keeps_all_other_memory() -> None:
    ledger = Ledger(empty_since={"claim": NOON}, instance_ids={"claim": "i-1"})
    ledger = with_refusal(ledger, G5.key, ICE, NOON)
    left = pruned(ledger, NOON + timedelta(days=1))
    assert left == Ledger(empty_since={"claim": NOON}, instance_ids={"claim": "i-1"})


@pytest.mark.parametrize(
    ("code", "expected"), [("VcpuLimitExceeded", True), ("MaxSpotInstanceCountExceeded", True), (ICE, False)]
)
def test_quotas_are_told_from_lack_of_capacity(code: str, expected: bool) -> None:
    assert is_quota(code) is expected


@given(st.lists(st.integers(0, 7200), min_size=1, max_size=40))
def test_an_offering_is_never_out_for_more_than_an_hour_and_always_for_three_minutes(gaps_s: list[int]) -> None:
    ledger, now = Ledger(), NOON
    for gap in gaps_s:
        now += timedelta(seconds=gap)
        was_available = is_available(ledger, G5, now)
        ledger = with_refusal(ledger, G5.key, ICE, now)
        left = ledger.unavailable[G5.key].until - now
        assert timedelta(0) < left <= LONGEST_BACK_OFF
        assert left >= minutes(3) or not was_available


def test_a_machine_that_did_not_come_up_bars_its_offering_though_the_next_one_launches() -> None:
    ledger = with_failed_bring_up(Ledger(), G5.key, "gpu", NOON)
    assert not is_available(ledger, G5, NOON + minutes(2))
    assert with_launch(ledger, G5.key) == ledger
    assert with_bring_up(ledger, G5.key, "gpu") == Ledger()


def test_a_pools_failures_in_a_row_are_counted_and_its_time_out_grows() -> None:
    ledger, spans = Ledger(), []
    for number in range(5):
        at = NOON + minutes(40 * number)
        ledger = with_failed_bring_up(ledger, G5.key, "gpu", at)
        spans.append(ledger.bring_ups["gpu"].until - at)
    assert ledger.bring_ups["gpu"].failures == 5
    assert spans == [minutes(span) for span in (3, 6, 12, 24, 48)]
    assert with_bring_up(ledger, "another/offering/spot", "other").bring_ups == ledger.bring_ups


def test_a_pools_failures_are_forgotten_with_time() -> None:
    ledger = with_failed_bring_up(Ledger(), G5.key, "gpu", NOON)
    assert pruned(ledger, NOON + timedelta(hours=6)).bring_ups == ledger.bring_ups
    assert pruned(ledger, NOON + timedelta(hours=6, minutes=3)) == Ledger()
