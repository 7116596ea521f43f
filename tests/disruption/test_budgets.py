"""Budgets: Karpenter's arithmetic, windows in UTC, and the tightest that is open decides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from engine.disruption.budgets import changes_of, describe, is_active, said_by_pool
from engine.disruption.said import BudgetState, least_allowed
from engine.model.policy import Budget, Disruption
from engine.model.reason import DisruptionReason
from tests.builders import NOON, node_pool

EMPTY = DisruptionReason.EMPTY
HOURS = timedelta(hours=1)
# 2026-11-30 is a Monday.
OFFICE_HOURS = Budget(nodes=0, schedule="0 9 * * 1-5", duration=8 * HOURS)


def allowed(*budgets: Budget, base: int = 10, reason: DisruptionReason = EMPTY, at: datetime = NOON) -> int | None:
    pool = node_pool(disruption=Disruption(budgets=budgets))
    return least_allowed(said_by_pool(pool, reason, base, at))


@pytest.mark.parametrize(
    ("percent", "base", "expected"), [(10, 10, 1), (10, 11, 2), (10, 1, 1), (0, 10, 0), (100, 7, 7), (50, 0, 0)]
)
def test_a_percentage_is_of_the_pools_nodes_rounded_up(percent: int, base: int, expected: int) -> None:
    assert allowed(Budget(percent=percent), base=base) == expected


def test_the_least_of_several_budgets_decides() -> None:
    assert allowed(Budget(percent=50), Budget(nodes=3), Budget(nodes=4)) == 3


def test_no_budget_is_no_bound() -> None:
    assert allowed() is None


def test_a_budget_without_reasons_holds_every_reason_that_is_by_choice() -> None:
    named = {DisruptionReason.EMPTY, DisruptionReason.DRIFTED, DisruptionReason.UNDERUTILIZED, DisruptionReason.EXPIRED}
    held = {reason for reason in DisruptionReason if allowed(Budget(nodes=0), reason=reason) == 0}
    assert held == named


def test_expiry_is_held_by_budgets_that_name_it_and_not_by_those_that_name_others() -> None:
    named = Budget(nodes=1, reasons=(DisruptionReason.EXPIRED,))
    others = Budget(nodes=0, reasons=(DisruptionReason.DRIFTED, DisruptionReason.EMPTY))
    assert allowed(named, others, reason=DisruptionReason.EXPIRED) == 1
    assert allowed(others, reason=DisruptionReason.EXPIRED) is None


def test_a_budget_with_reasons_holds_only_those() -> None:
    drift_only = Budget(nodes=0, reasons=(DisruptionReason.DRIFTED,))
    assert allowed(drift_only, reason=EMPTY) is None
    assert allowed(drift_only, reason=DisruptionReason.DRIFTED) == 0


@pytest.mark.parametrize(
    ("moment", "is_open"),
    [
        (datetime(2026, 11, 30, 8, 59, 59, tzinfo=UTC), False),
        (datetime(2026, 11, 30, 9, 0, tzinfo=UTC), True),
        (datetime(2026, 11, 30, 16, 59, 59, tzinfo=UTC), True),
        (datetime(2026, 11, 30, 17, 0, tzinfo=UTC), False),
        (datetime(2026, 11, 29, 12, 0, tzinfo=UTC), False),
        # The same moment as 9:30 in UTC, told elsewhere.
        (datetime(2026, 11, 30, 4, 30, tzinfo=timezone(timedelta(hours=-5))), True),
    ],
)
def test_a_window_is_open_from_its_start_for_its_duration(moment: datetime, is_open: bool) -> None:
    assert is_active(OFFICE_HOURS, moment) is is_open


def test_a_window_may_reach_over_midnight_and_over_days() -> None:
    weekend = Budget(nodes=5, schedule="0 22 * * 5", duration=56 * HOURS)
    assert is_active(weekend, datetime(2026, 11, 30, 5, 59, tzinfo=UTC))
    assert not is_active(weekend, datetime(2026, 11, 30, 6, 0, tzinfo=UTC))


def test_karpenters_named_schedules_are_understood() -> None:
    daily = Budget(nodes=0, schedule="@daily", duration=HOURS)
    assert is_active(daily, datetime(2026, 11, 30, 0, 30, tzinfo=UTC))
    assert not is_active(daily, NOON)


def test_a_shut_window_bounds_nothing() -> None:
    assert allowed(OFFICE_HOURS, Budget(percent=20), at=NOON) == 0
    assert allowed(OFFICE_HOURS, Budget(percent=20), at=NOON + 12 * HOURS) == 2


@pytest.mark.parametrize("schedule", ["nonsense", "61 * * * *", "0 0 31 2 *"])
def test_a_schedule_that_is_none_lets_nothing_go(schedule: str) -> None:
    broken = Budget(nodes=7, schedule=schedule, duration=HOURS)
    assert allowed(broken) == 0


def test_a_budget_is_described_in_a_few_words() -> None:
    assert describe(Budget(percent=10)) == "10%"
    assert describe(OFFICE_HOURS) == '0 nodes on "0 9 * * 1-5" for 8h'


def test_a_budget_tells_its_arithmetic_and_when_it_opens() -> None:
    pool = node_pool(disruption=Disruption(budgets=(Budget(percent=10), OFFICE_HOURS)))
    tenth, office = said_by_pool(pool, EMPTY, 19, datetime(2026, 11, 28, 10, tzinfo=UTC))
    assert (tenth.allowed, tenth.arithmetic) == (2, "10% of 19 = 1.9, rounded up to 2")
    assert (office.state, office.allowed) == (BudgetState.SHUT, None)
    assert office.opens_at == datetime(2026, 11, 30, 9, tzinfo=UTC)
    (exact,) = said_by_pool(node_pool(disruption=Disruption(budgets=(Budget(percent=10),))), EMPTY, 20, NOON)
    assert exact.arithmetic == "10% of 20 = 2"


def test_a_budget_changes_where_its_window_opens_and_shuts() -> None:
    monday = datetime(2026, 11, 30, tzinfo=UTC)
    found = list(changes_of(OFFICE_HOURS, monday, monday + 48 * HOURS))
    assert found == [monday + hour * HOURS for hour in (9, 17, 33, 41)]
    assert list(changes_of(Budget(nodes=1), monday, monday + 48 * HOURS)) == []
    assert list(changes_of(OFFICE_HOURS, monday + 10 * HOURS, monday + 18 * HOURS)) == [monday + 17 * HOURS]
