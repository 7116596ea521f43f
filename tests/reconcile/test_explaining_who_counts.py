"""``explain budget`` counts who goes by the next pass as that pass does, and says who counts and why."""

from __future__ import annotations

import json
from datetime import timedelta

from attrs import evolve

from engine.disruption.counted import Counts
from engine.disruption.explained import BudgetExplanation
from engine.model.node import InstanceState
from engine.model.policy import Budget
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement
from engine.model.stay import BudgetExhausted
from engine.model.upkeep import Upkeep
from engine.reconcile.explaining import Asked
from engine.reconcile.explaining_budgets import explain_budget
from engine.report.budget_report import render_budgets
from engine.report.explain_report_json import budgets_json
from tests.decide.world import policy
from tests.disruption.going_world import GoingWorld, kept, served, steady
from tests.disruption.rule_world import rule, window
from tests.report.golden_text import printed

DRIFTED = DisruptionReason.DRIFTED
ONE = evolve(steady().disruption, budgets=(Budget(nodes=1),))


def drifting(count: int = 3, **more: object) -> GoingWorld:
    """Nodes with another image than their pool's today, of which one may be out."""
    pool = steady(disruption=ONE, upkeep=Upkeep(canaries=0))
    one = GoingWorld(policy(pool, **more), [served(f"llm-{number}") for number in range(count)])
    one.started().new_image()
    return one


def asked(one: GoingWorld) -> Asked:
    return Asked(one.environment, one.policy, one.catalog, one.snapshot())


def explained(of: Asked, name: str = "gpu") -> BudgetExplanation:
    [found] = explain_budget(of.policy, of.environment, name, DRIFTED, of.snapshot, plan=of.plan)
    return found


def text(found: BudgetExplanation) -> str:
    return printed(render_budgets([found]), 200)


def test_a_node_that_waits_for_a_replacement_that_is_not_published_yet_counts_as_going() -> None:
    of = asked(drifting())
    [waiting] = kept(of.plan, AwaitsReplacement)
    [new] = of.plan.launches

    found = explained(of)
    assert (found.base, found.out, found.going, found.left) == (3, 0, 1, 0)
    [counted] = found.counted
    assert (counted.claim, counted.counts, counted.reason) == (waiting.claim, Counts.AWAITS, DRIFTED)
    assert len(kept(of.plan, BudgetExhausted)) == 2, "as the pass itself counts"

    told = text(found)
    assert "3 nodes, 0 out, 1 going" in told
    assert f"counts: {waiting.node} waits for {new.claim.name} to take its place (Drifted)" in told
    assert "The least is 1 node: 1 of 1 used; no more may go now." in told


def test_it_counts_until_it_is_gone_and_once_only() -> None:
    one = drifting()
    one.turn()
    marked = asked(one)
    found = explained(marked)
    assert (found.out, found.going, found.left) == (0, 1, 0)
    assert [each.counts for each in found.counted] == [Counts.MARKED_NEXT]
    assert "is marked by the next pass (Drifted)" in text(found)

    one.stays = lambda pod: True
    one.turn(timedelta(0))
    found = explained(asked(one))
    assert (found.out, found.going, found.left) == (1, 0, 0)
    assert [each.counts for each in found.counted] == [Counts.MARKED]
    assert "is marked, and drains" in text(found)


def test_a_node_that_is_lost_is_out_and_named() -> None:
    one = drifting()
    gone = min(one.instances)
    one.instances[gone] = evolve(one.instances[gone], state=InstanceState.TERMINATED)
    found = explained(asked(one))
    assert (found.out, found.left) == (1, 0)
    assert [each.counts for each in found.counted] == [Counts.LOST]
    assert f"{min(found.counted, key=lambda each: each.claim).node} is lost (Lost)" in text(found)


def test_who_goes_counts_towards_an_opening_where_the_rule_is_about_its_reason() -> None:
    day = window("day", lasts=timedelta(hours=23))
    about = rule("slow", windows=("day",), most="2", reasons=(DRIFTED,))
    found = explained(asked(drifting(rules=(about,), windows=(day,))), "slow")
    [said] = [each for each in found.said if each.rule == "slow"]
    assert len(said.begun) == 1
    assert "1 of 2 have gone in this opening" in text(found)


def test_programs_get_who_counts_with_words() -> None:
    of = asked(drifting())
    [told] = json.loads(budgets_json([explained(of)]))["budgets"]
    assert (told["out"], told["going"], told["left"]) == (0, 1, 0)
    [counted] = told["counted"]
    assert (counted["counts"], counted["reason"]) == ("awaits-replacement", "Drifted")
    assert counted["awaits"] == [of.plan.launches[0].claim.name]
    assert counted["words"].endswith("to take its place (Drifted)")
