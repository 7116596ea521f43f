"""A node that came to take another's place says whose, and for which pods, until those are on it."""

from __future__ import annotations

from attrs import evolve

from engine.model.plan import Kept, Plan
from engine.model.pod import PodKey
from engine.model.policy import Budget
from engine.model.replacement import AwaitsReplacement, NotQuiet, StandsIn
from engine.model.stay import BelowConsolidateAfter, BudgetExhausted, NotInitialized
from engine.report.stay_words import stay_words
from tests.builders import minutes
from tests.disruption.going_world import GoingWorld, marks, of, served, steady

LLM = PodKey("default", "llm")


def drifting() -> GoingWorld:
    one = of(served("llm")).started()
    one.new_image()
    return one


def of_claim(plan: Plan, claim: str) -> Kept:
    return next(each for each in plan.kept if each.claim == claim)


def test_on_its_way_and_up_it_says_whose_place_it_takes_and_for_whom() -> None:
    one = drifting()
    [old], [node] = one.running(), one.nodes
    [launch] = one.decide().launches
    new = launch.claim.name
    one.apply(one.decide())
    coming = of_claim(one.decide(), new).reason
    assert isinstance(coming, NotInitialized)
    assert coming.stands_in == StandsIn((old.claim,), (node,), (LLM,))

    one.settle()
    one.now += minutes(10)
    plan = one.decide()
    assert [each.record.claim for each in marks(plan)] == [old.claim]
    standing = of_claim(plan, new)
    assert standing.reason == StandsIn((old.claim,), (node,), (LLM,))
    assert stay_words(standing.reason, one.now) == f"takes the place of {node}, for its 1 pod: default/llm"


def test_once_the_pods_are_on_it_it_is_a_node_like_any() -> None:
    one = drifting()
    one.rest()
    [kept] = one.decide().kept
    assert isinstance(kept.reason, NotQuiet), "its pod came to it"


def test_while_it_is_needed_it_is_to_go_for_nothing_that_a_node_without_pods_goes_for() -> None:
    at_once = evolve(steady().disruption, consolidate_after=minutes(0), budgets=(Budget(nodes=1),))
    one = of(served("llm"), pool=steady(disruption=at_once)).started()
    one.new_image()
    [launch] = one.turn().launches
    kept = of_claim(one.decide(), launch.claim.name)
    assert (type(kept.reason), kept.pending) == (StandsIn, ())


def test_it_says_so_while_the_other_drains() -> None:
    one = of(served("llm"), stays=lambda pod: True).started()
    one.new_image()
    [launch] = one.turn().launches
    one.turn()
    plan = one.decide()
    assert len(marks(plan)) == 1, "its pod does not leave yet"
    assert of_claim(plan, launch.claim.name).reason.code == "stands-in"


def test_one_that_nothing_goes_to_any_more_counts_its_idle_time_as_any_other() -> None:
    one = drifting()
    one.turn()
    held = evolve(steady().disruption, budgets=(Budget(nodes=0),))
    one.policy = evolve(one.policy, node_pools=(steady(disruption=held),))
    kept = {type(each.reason) for each in one.decide().kept}
    assert kept == {BudgetExhausted, BelowConsolidateAfter}


def test_the_node_that_waits_names_the_same_pair_the_other_way_round() -> None:
    one = drifting()
    one.apply(one.decide())
    plan = one.decide()
    [waits] = [each for each in plan.kept if isinstance(each.reason, AwaitsReplacement)]
    [comes] = [each for each in plan.kept if isinstance(each.reason, NotInitialized)]
    assert isinstance(waits.reason, AwaitsReplacement)
    assert isinstance(comes.reason, NotInitialized)
    assert waits.reason.claims == (comes.claim,)
    assert comes.reason.stands_in is not None
    assert comes.reason.stands_in.claims == (waits.claim,)
