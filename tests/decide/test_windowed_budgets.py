"""Budgets per opening over passes: what the ledger remembers, and what follows from its loss."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from attrs import evolve

from engine.model.ledger import Ledger
from engine.model.plan import VerdictOutcome
from engine.model.policy import Disruption
from engine.model.reason import DisruptionReason
from engine.model.rule import DisruptionBudget
from engine.model.stay import BudgetExhausted, OutsideWindow
from tests.builders import NOON, minutes, node_pool, pod
from tests.decide.world import World, policy
from tests.disruption.rule_world import rule, window

POOL = node_pool(disruption=Disruption(consolidate_after=minutes(5), budgets=()))
DAY = timedelta(days=1)


def idle_world(*rules: DisruptionBudget, nodes: int = 4, begins: datetime = NOON) -> World:
    """Nodes that came up an hour ago or so, and whose pods have finished since."""
    world = World(policy(POOL, rules=rules, windows=(window(),)))
    world.now = begins
    for number in range(nodes):
        world.pods |= {each.key: each for each in [pod(f"p{number}", gpu=1)]}
    world.rest()
    world.finish(list(world.pods.values()))
    world.turn()
    return world


def marks(world: World) -> int:
    return sum(node.is_marked for node in world.nodes.values())


def went(world: World) -> set[str]:
    return set(world.ledger.disruptions)


def test_two_go_in_each_opening_and_the_others_wait_for_the_next() -> None:
    world = idle_world(rule(most="2", windows=["day"]))
    opening = world.now.date()
    first = world.turn()
    while world.now.date() == opening and world.now.hour < 16:
        world.turn()
    assert len(went(world)) == 2
    assert len(world.running()) == 2
    assert first.removals[-1].record.budget is not None
    assert first.removals[-1].record.budget.budget == "slow-drain, in one opening of day"
    world.now = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
    assert {type(kept.reason) for kept in world.decide().kept} == {OutsideWindow}
    world.now = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
    for _ in range(6):
        world.turn()
    assert len(went(world)) == 4
    assert world.running() == []


def test_a_ledger_that_was_lost_in_an_opening_lets_nothing_go_until_the_next() -> None:
    world = idle_world(rule(most="2", windows=["day"]))
    world.ledger = Ledger()
    lost_at = world.now
    world.turn()
    plan = world.turn()
    assert plan.removals == ()
    assert {type(kept.reason) for kept in plan.kept} == {BudgetExhausted}
    assert [verdict.outcome for verdict in plan.verdicts] == [VerdictOutcome.ERROR]
    assert world.ledger.counted_since == lost_at
    world.now = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
    assert len(world.turn().removals) == 2


def test_a_clock_that_runs_days_ahead_for_a_pass_frees_no_further_removals_in_the_opening() -> None:
    world = idle_world(rule(most="2", windows=["day"]))
    while len(world.running()) > 2:
        world.turn()
    assert len(went(world)) == 2
    right = world.now
    world.now = (right + 30 * DAY).replace(hour=22)
    world.turn()
    assert went(world) == set()
    world.now = right
    plan = world.turn()
    assert plan.removals == ()
    assert [verdict.outcome for verdict in plan.verdicts] == [VerdictOutcome.ERROR]
    world.now = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
    assert len(world.turn().removals) == 2


def test_a_first_pass_knows_that_nothing_went_before_it() -> None:
    world = World(policy(POOL))
    world.turn()
    assert world.ledger.counted_since is not None
    assert world.ledger.counted_since <= NOON - 7 * DAY


def test_removals_are_remembered_with_their_reason_for_eight_days() -> None:
    world = idle_world(nodes=1)
    marked_at = world.now
    world.turn()
    (claim,) = went(world)
    begun = world.ledger.disruptions[claim]
    assert (begun.node_pool, begun.reason, begun.begun_at) == ("gpu", DisruptionReason.EMPTY, marked_at)
    world.turn()
    released = world.ledger.disruptions[claim]
    assert (released.begun_at, released.acted_at) == (marked_at, marked_at + minutes(10))
    world.now = released.acted_at + 8 * DAY
    assert set(world.turn().ledger.disruptions) == {claim}
    world.now = released.acted_at + 8 * DAY + minutes(1)
    assert world.turn().ledger.disruptions == {}


def test_what_is_lost_is_no_removal_by_choice() -> None:
    world = World(policy(POOL), [pod(gpu=1)])
    world.rest()
    world.lose(world.running()[0].claim)
    world.turn()
    assert went(world) == set()


def test_a_policy_whose_rules_are_changed_starts_from_the_same_count() -> None:
    world = idle_world()
    world.turn()
    assert len(went(world)) == 4
    world.policy = evolve(world.policy, rules=(rule(most="2", windows=["day"]),))
    plan = world.turn()
    # All four are marked; two of them may still go in this opening.
    assert len(plan.removals) == 2
