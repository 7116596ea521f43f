"""A node that somebody asked to be replaced goes as one that drifted: another first, and under budgets."""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import evolve

from engine.model.plan import LaunchReason
from engine.model.policy import Budget, NodePool
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement, RolloutWaits
from engine.model.stay import BudgetExhausted, DoNotDisrupt
from engine.model.upkeep import Upkeep
from tests.builders import NOON, minutes
from tests.disruption.going_world import GoingWorld, kept, marks, of, releases, served, stay, steady

ONE_AT_A_TIME = evolve(steady().disruption, budgets=(Budget(nodes=1),))


def asked(one: GoingWorld, node: str, at: datetime | None = NOON) -> None:
    one.nodes[node] = evolve(one.nodes[node], replace_asked=True, replace_asked_at=at)


def withdrawn(one: GoingWorld, node: str) -> None:
    one.nodes[node] = evolve(one.nodes[node], replace_asked=False, replace_asked_at=None)


def several(count: int, pool: NodePool | None = None) -> GoingWorld:
    return of(*(served(f"llm-{number}") for number in range(count)), pool=pool).started()


def test_another_is_launched_first_and_then_the_node_goes_and_the_world_rests() -> None:
    one = several(1)
    [old], [node] = one.running(), one.nodes
    asked(one, node)

    first = one.turn()
    assert first.removals == ()
    [launch] = first.launches
    assert (launch.reason, launch.claim.replaces) == (LaunchReason.REPLACEMENT, (old.claim,))
    [mark] = marks(one.turn())
    assert mark.record.reason is DisruptionReason.DRIFTED
    assert mark.record.rule == f"gpu: replacement of {node} was asked for by annotation at 2026-11-30 12:00:00Z"
    assert mark.record.since == NOON
    [release] = releases(one.turn())
    assert release.record.claim == old.claim
    assert one.rest().is_empty
    assert [each.claim for each in one.running()] == [launch.claim.name]
    assert one.homeless == []


def test_only_the_node_that_was_named_goes() -> None:
    one = several(3)
    before, name = {each.claim for each in one.running()}, min(one.nodes)
    asked(one, name)
    one.rest()
    assert name not in one.nodes
    assert len(before & {each.claim for each in one.running()}) == 2


def test_the_pools_budget_holds_it_and_says_so() -> None:
    one = several(1, steady(disruption=evolve(ONE_AT_A_TIME, budgets=(Budget(nodes=0),))))
    [node] = one.nodes
    asked(one, node)
    assert isinstance(stay(one.decide(), node), BudgetExhausted)


def test_a_budget_of_one_makes_one_node_ahead_of_two_that_were_asked_for_the_earlier_first() -> None:
    one = several(2, steady(disruption=ONE_AT_A_TIME))
    early, late = sorted(one.nodes, reverse=True)
    asked(one, early, NOON)
    asked(one, late, NOON + minutes(1))
    plan = one.decide()
    assert len(plan.launches) == 1
    assert isinstance(stay(plan, early), AwaitsReplacement)
    assert isinstance(stay(plan, late), BudgetExhausted)


def test_what_a_person_named_goes_before_what_drifted_longer_ago() -> None:
    one = several(3, steady(disruption=ONE_AT_A_TIME, upkeep=Upkeep(canaries=0)))
    one.new_image()
    named = max(one.nodes)
    asked(one, named, one.now)
    plan = one.decide()
    assert isinstance(stay(plan, named), AwaitsReplacement)
    assert len(plan.launches) == 1


def test_a_pod_that_must_not_be_disrupted_holds_the_node() -> None:
    one = of(served("llm", do_not_disrupt=True)).started()
    [node] = one.nodes
    asked(one, node)
    assert isinstance(stay(one.decide(), node), DoNotDisrupt)
    assert one.turn().launches == ()


def test_a_rollout_that_waits_for_its_first_node_does_not_hold_what_was_asked_for() -> None:
    one = several(4, steady(upkeep=Upkeep(soak=timedelta(hours=9))))
    one.new_image()
    one.turn()
    held = [each.node for each in kept(one.turn(), RolloutWaits)]
    asked(one, held[0] or "")

    plan = one.decide()
    assert isinstance(stay(plan, held[0] or ""), AwaitsReplacement)
    assert [each.node for each in kept(plan, RolloutWaits)] == held[1:]


def test_a_request_that_is_withdrawn_before_the_mark_leaves_the_node_where_it_is() -> None:
    one = several(1)
    [old], [node] = one.running(), one.nodes
    asked(one, node)
    one.turn()
    withdrawn(one, node)
    for _ in range(5):
        assert marks(one.turn()) == []
    assert old.claim in {each.claim for each in one.running()}
    assert one.evicted == []


def test_after_the_mark_a_withdrawal_comes_too_late() -> None:
    one = of(served("llm"), stays=lambda pod: True).started()
    [old], [node] = one.running(), one.nodes
    asked(one, node)
    one.turn()
    assert len(marks(one.turn())) == 1
    withdrawn(one, node)
    one.stays = lambda pod: False
    one.rest()
    assert old.claim not in {each.claim for each in one.running()}


def test_a_request_without_a_time_counts_from_when_it_was_first_seen() -> None:
    one = several(1, steady(disruption=evolve(ONE_AT_A_TIME, budgets=(Budget(nodes=0),))))
    [node] = one.nodes
    asked(one, node, None)
    seen = one.now
    one.turn(minutes(10))
    one.turn(minutes(10))
    one.policy = evolve(one.policy, node_pools=(steady(upkeep=Upkeep(surge=0)),))
    [mark] = marks(one.decide())
    assert mark.record.since == seen
    assert mark.record.rule == f"gpu: replacement of {node} was asked for by annotation"


def test_where_policy_says_so_the_node_goes_before_another_comes() -> None:
    one = several(1, steady(upkeep=Upkeep(surge=0)))
    [node] = one.nodes
    asked(one, node)
    [mark] = marks(one.decide())
    assert mark.delete_first is not None
