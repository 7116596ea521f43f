"""Case 45 (core#1866, #1939, #2183, #3074): how Karpenter's budgets read, Monday and Saturday at 10:00 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.disruption.budgets import said_by_pool
from engine.disruption.said import BudgetState, least_allowed
from engine.model.policy import Budget, Disruption
from engine.model.reason import DisruptionReason
from tests.builders import node_pool
from tests.policy.texts import CLASS, POOL, findings_of, pool_of

HOURS = timedelta(hours=1)
EMPTY, DRIFTED, UNDERUTILIZED = DisruptionReason.EMPTY, DisruptionReason.DRIFTED, DisruptionReason.UNDERUTILIZED
MONDAY = datetime(2026, 11, 30, 10, tzinfo=UTC)
SATURDAY = datetime(2026, 11, 28, 10, tzinfo=UTC)
ALL = "{nodes: '100%'}"
MORNINGS = "{nodes: '0', schedule: '0 9 * * 1-5', duration: 8h, reasons: [Underutilized]}"
TENTH = "{nodes: '10%'}"


def allowed(budgets: str, reason: DisruptionReason, at: datetime, base: int = 19) -> int | None:
    pool = pool_of(POOL.replace("consolidateAfter: 5m", f"budgets: [{budgets}]"))
    return least_allowed(said_by_pool(pool, reason, base, at))


@pytest.mark.parametrize(
    ("reason", "at", "expected"),
    [
        (UNDERUTILIZED, MONDAY, 0),
        (EMPTY, MONDAY, 19),
        (DRIFTED, MONDAY, 19),
        (UNDERUTILIZED, SATURDAY, 19),
        (EMPTY, SATURDAY, 19),
        (DRIFTED, SATURDAY, 19),
    ],
)
def test_a_scheduled_budget_holds_its_reason_in_its_window_and_nothing_else(
    reason: DisruptionReason, at: datetime, expected: int
) -> None:
    assert allowed(f"{ALL}, {MORNINGS}", reason, at) == expected


@pytest.mark.parametrize("at", [MONDAY, SATURDAY])
def test_ten_percent_of_nineteen_are_two(at: datetime) -> None:
    assert {allowed(TENTH, reason, at) for reason in (EMPTY, DRIFTED, UNDERUTILIZED)} == {2}


def test_ten_percent_and_a_shut_morning_are_two_but_for_the_reason_that_is_shut() -> None:
    both = f"{TENTH}, {MORNINGS}"
    assert [allowed(both, reason, MONDAY) for reason in (EMPTY, DRIFTED, UNDERUTILIZED)] == [2, 2, 0]
    assert [allowed(both, reason, SATURDAY) for reason in (EMPTY, DRIFTED, UNDERUTILIZED)] == [2, 2, 2]


@pytest.mark.parametrize("half", ["schedule: '0 9 * * 1-5'", "duration: 8h"])
def test_a_schedule_without_a_duration_is_refused_and_the_other_way_round(half: str) -> None:
    text = POOL.replace("consolidateAfter: 5m", f"budgets: [{{nodes: '0', {half}}}]")
    assert "bad-budget" in {found.rule for found in findings_of(CLASS, text)}


def test_a_list_of_budgets_that_are_all_shut_is_no_limit() -> None:
    assert allowed(MORNINGS, UNDERUTILIZED, SATURDAY) is None
    assert allowed(MORNINGS, DRIFTED, MONDAY) is None


def test_a_budget_that_is_broken_allows_nothing_while_others_would() -> None:
    broken = Budget(nodes=7, schedule="never at all", duration=HOURS)
    pool = node_pool(disruption=Disruption(budgets=(Budget(percent=100), broken)))
    said = said_by_pool(pool, EMPTY, 19, MONDAY)
    assert least_allowed(said) == 0
    assert [(each.state, bool(each.error)) for each in said] == [
        (BudgetState.ACTIVE, False),
        (BudgetState.ACTIVE, True),
    ]
