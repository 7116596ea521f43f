"""The calendar of a pool: spells in which nothing changes, cut where something does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.disruption.budget_rules import BudgetRules
from engine.disruption.budgets import PoolStanding, said_by_pool
from engine.disruption.said import UNLIMITED, least_allowed
from engine.disruption.timetable import PoolTimetable, Spell, timetable
from engine.model.policy import Budget, Disruption, NodePool
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.rule import DisruptionBudget, Enforcement, Window
from tests.builders import NOON, minutes, node_pool
from tests.disruption.rule_world import HOUR, asked, rule, window
from tests.disruption.test_allowance_properties import WINDOWS, budgets, rules

MONDAY = datetime(2026, 11, 30, tzinfo=UTC)
WEEK = timedelta(days=7)
EMPTY, UNDERUTILIZED = DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED
MORNINGS = Budget(nodes=0, schedule="0 9 * * 1-5", duration=8 * HOUR, reasons=(UNDERUTILIZED,))


def pool_with(*own: Budget) -> NodePool:
    return node_pool(disruption=Disruption(budgets=own))


def table_of(
    pool: NodePool,
    *acting: DisruptionBudget,
    windows: tuple[Window, ...] = (),
    nodes: int = 19,
    start: datetime = MONDAY,
    length: timedelta = WEEK,
) -> PoolTimetable:
    def rules_at(moment: datetime) -> BudgetRules:
        return asked(*acting, windows=windows, at=moment)

    return timetable(pool, nodes, 0, rules_at, windows, start, start + length)


def spells(found: PoolTimetable, reason: DisruptionReason) -> tuple[Spell, ...]:
    (row,) = [row for row in found.rows if reason in row.reasons]
    return row.spells


def test_a_pool_whose_budget_never_changes_has_one_spell_for_all_reasons() -> None:
    (row,) = table_of(pool_with(Budget(percent=10))).rows
    assert row.reasons == VOLUNTARY_REASONS
    assert row.spells == (Spell(MONDAY, MONDAY + WEEK, 2, "10%"),)


def test_case_45_is_cut_where_the_morning_begins_and_ends() -> None:
    found = table_of(pool_with(Budget(percent=100), MORNINGS), length=timedelta(days=1))
    assert [(spell.begins.hour, spell.allowed) for spell in spells(found, UNDERUTILIZED)] == [(0, 19), (9, 0), (17, 19)]
    assert [spell.allowed for spell in spells(found, EMPTY)] == [19]


def test_times_without_any_budget_are_unlimited() -> None:
    found = table_of(pool_with(MORNINGS))
    friday = MONDAY + timedelta(days=4, hours=17)
    assert spells(found, UNDERUTILIZED)[-1] == Spell(friday, MONDAY + WEEK, None, UNLIMITED)
    assert [spell.allowed for spell in spells(found, EMPTY)] == [None]


def test_a_rules_windows_cut_on_the_clock_of_their_zone_over_the_change_of_daylight_saving() -> None:
    night = window("night", "0 22 * * *", zone="Europe/Berlin")
    start = datetime(2026, 10, 24, tzinfo=UTC)
    found = table_of(
        pool_with(), rule(windows=["night"], budget="3"), windows=(night,), start=start, length=2 * timedelta(days=1)
    )
    assert found.zones == ("Europe/Berlin",)
    assert [(f"{spell.begins:%d %H:%M}", spell.allowed) for spell in spells(found, EMPTY)] == [
        ("24 00:00", 3),
        ("24 04:00", 0),
        ("24 20:00", 3),
        ("25 04:00", 0),
        ("25 21:00", 3),
    ]
    assert spells(found, EMPTY)[1].budget == "slow-drain, outside window night"


def test_what_may_go_per_opening_stands_beside_what_may_be_out_at_once() -> None:
    found = table_of(
        pool_with(Budget(percent=50)), rule(windows=["day"], most="4"), windows=(window(),), length=12 * HOUR
    )
    shut, opened = spells(found, EMPTY)
    assert (shut.allowed, shut.per_opening) == (0, ())
    assert (opened.allowed, opened.budget) == (10, "50%")
    (most,) = opened.per_opening
    assert (most.budget, most.allowed, most.opened_at) == ("slow-drain", 4, MONDAY + 9 * HOUR)


def test_a_rule_that_reads_the_time_is_looked_at_each_hour() -> None:
    found = table_of(pool_with(), rule(budget="now.getHours() < 6 ? 1 : 2"), length=12 * HOUR)
    assert [(spell.begins.hour, spell.allowed) for spell in spells(found, EMPTY)] == [(0, 1), (6, 2)]


def test_what_only_warns_limits_nothing_here_either() -> None:
    found = table_of(pool_with(), rule(budget="0", enforcement=Enforcement.WARN))
    assert [spell.allowed for spell in spells(found, EMPTY)] == [None]


@settings(max_examples=25, deadline=None)
@given(
    own=st.lists(budgets(), max_size=3),
    acting=st.tuples(rules("a"), rules("b")),
    at=st.integers(0, 14 * 24).map(lambda hour: NOON + hour * HOUR),
)
def test_at_every_moment_the_calendar_says_what_the_budgets_say(
    own: list[Budget], acting: tuple[DisruptionBudget, ...], at: datetime
) -> None:
    pool = pool_with(*own)
    found = table_of(pool, *acting, windows=WINDOWS, nodes=7, start=at, length=3 * timedelta(days=1))
    standing = PoolStanding(pool, 7, 0, 7)
    for reason in VOLUNTARY_REASONS:
        row = spells(found, reason)
        assert (row[0].begins, row[-1].ends) == (at, at + timedelta(days=3))
        assert all(earlier.ends == later.begins for earlier, later in pairwise(row))
        for step in range(0, 3 * 24 * 60, 125):
            moment = at + step * minutes(1)
            (spell,) = [each for each in row if each.begins <= moment < each.ends]
            about = [each for each in asked(*acting, windows=WINDOWS, at=moment).on(standing) if each.is_about(reason)]
            said = (*said_by_pool(pool, reason, 7, moment), *(each.said for each in about))
            assert spell.allowed == least_allowed(said)
