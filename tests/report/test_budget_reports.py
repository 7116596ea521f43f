"""The calendar and the explanation of budgets, as people and programs get them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from engine.disruption.explained import BudgetExplanation
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.policy import Budget, Disruption, Policy
from engine.model.reason import DisruptionReason
from engine.model.rule import Enforcement, Selection
from engine.reconcile.calendar import calendar_of
from engine.reconcile.explaining_budgets import explain_budget, explain_supposed_budget
from engine.report.budget_report import budgets_plain, render_budgets
from engine.report.calendar_report import calendar_json, calendar_markdown, render_calendars
from tests.builders import claim, document, environment, node_pool, snapshot
from tests.disruption.rule_world import HOUR, gone_at, policy, rule, window
from tests.report.golden_text import assert_golden, printed

MONDAY = datetime(2026, 11, 30, 10, tzinfo=UTC)
SATURDAY = datetime(2026, 11, 28, 10, tzinfo=UTC)
UNDERUTILIZED, DRIFTED = DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED
MORNINGS = Budget(nodes=0, schedule="0 9 * * 1-5", duration=8 * HOUR, reasons=(UNDERUTILIZED,))
NIGHT = window("night", "0 22 * * 1-5", zone="Europe/Berlin")


def rules() -> Policy:
    elastic = node_pool("elastic", disruption=Disruption(budgets=(Budget(percent=10), MORNINGS)))
    holed = node_pool("holed", disruption=Disruption(budgets=(MORNINGS,)))
    at_night = rule(
        "at-night",
        windows=["night"],
        budget="nodePool.nodes * 15 / 100",
        most="4",
        reasons=(DRIFTED,),
        match=Selection(node_pools=("elastic",)),
    )
    watched = rule("watched", budget="1", enforcement=Enforcement.WARN, match=Selection(node_pools=("elastic",)))
    return policy((elastic, holed), (at_night, watched), (NIGHT,))


def test_the_calendar_shows_each_spell_and_cries_out_where_nothing_limits() -> None:
    found = calendar_of(rules(), environment(), None, at=MONDAY, length=timedelta(days=2), nodes=19)
    assert_golden("calendar.txt", printed(render_calendars([found])))
    assert_golden("calendar.md", calendar_markdown([found]))


def test_the_calendar_for_programs_has_null_for_no_limit() -> None:
    found = calendar_of(rules(), environment(), None, at=MONDAY, length=timedelta(days=1), pool="holed", nodes=19)
    told = json.loads(calendar_json([found]))
    assert told["schema"] == "nodewright.dev/calendar/v1"
    (pool,) = told["calendars"][0]["pools"]
    assert (pool["node_pool"], pool["nodes"], pool["has_holes"]) == ("holed", 19, True)
    allowed = {reason: row["spells"][0]["allowed"] for row in pool["rows"] for reason in row["reasons"]}
    assert allowed == {"Empty": None, "Underutilized": 0, "Drifted": None, "Expired": None}


def test_pools_are_as_large_as_the_published_document_has_them() -> None:
    published = document(*(claim(f"elastic-{number}", pool=rules().node_pools[0]) for number in range(21)))
    found = calendar_of(rules(), environment(), published, at=MONDAY)
    assert {pool.node_pool: pool.nodes for pool in found.pools} == {"elastic": 21, "holed": 0}
    assert found.pools[0].rows[0].spells[0].allowed == 3
    assert "published document" in found.sizes


def test_without_a_document_a_size_is_supposed_and_said() -> None:
    found = calendar_of(rules(), environment(), None, at=MONDAY)
    assert {pool.nodes for pool in found.pools} == {10}
    assert "each pool supposed to have 10 nodes" in found.sizes
    assert "--nodes" in found.sizes


def test_a_pool_that_is_not_there_is_a_fault_that_names_those_that_are() -> None:
    with pytest.raises(Fault, match="there is no node pool elastc"):
        calendar_of(rules(), environment(), None, at=MONDAY, pool="elastc")


def supposed(name: str, at: datetime, reason: DisruptionReason | None = None) -> tuple[BudgetExplanation, ...]:
    return explain_supposed_budget(rules(), environment(), name, reason, at, base=19, out=1)


def test_a_pools_budgets_are_explained_with_their_arithmetic() -> None:
    assert_golden("explain-budget-pool.txt", printed(render_budgets(supposed("elastic", MONDAY))))
    assert_golden("explain-budget-weekend.txt", printed(render_budgets(supposed("holed", SATURDAY))))


def test_what_is_left_is_the_least_less_what_is_out() -> None:
    by_reason = {each.reason.value: each.left for each in supposed("elastic", MONDAY)}
    assert by_reason == {"Empty": 1, "Underutilized": 0, "Drifted": 0, "Expired": 1}
    assert {each.left for each in supposed("holed", SATURDAY)} == {None}


def test_a_rule_is_explained_for_the_pools_and_reasons_that_it_is_about() -> None:
    found = supposed("at-night", MONDAY + 12 * HOUR)
    assert [(each.node_pool, each.reason) for each in found] == [("elastic", DRIFTED)]
    assert found[0].least is not None
    assert (found[0].least.budget, found[0].left) == ("10%", 1)
    (told,) = budgets_plain(found)
    assert told["budgets"][1]["words"].startswith(
        "active since Mon 30 Nov 21:00 UTC: nodePool.nodes * 15 / 100 = 2; 0 of 4"
    )


def test_from_a_snapshot_the_nodes_are_counted_and_so_is_what_went() -> None:
    at = MONDAY + 12 * HOUR
    ledger = Ledger(disruptions={f"gone-{n}": gone_at(at, "elastic", DRIFTED) for n in range(4)}, counted_since=MONDAY)
    (found,) = explain_budget(rules(), environment(), "at-night", None, snapshot(taken_at=at, ledger=ledger))
    assert (found.base, found.out, found.left) == (0, 0, 0)
    assert [len(each.begun) for each in found.said if each.rule == "at-night"] == [4]


def test_a_name_that_is_neither_pool_nor_budget_is_a_fault() -> None:
    with pytest.raises(Fault, match="no node pool and no DisruptionBudget"):
        supposed("elasitc", MONDAY)
