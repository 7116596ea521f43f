"""Unhealthy nodes: the clock of each condition, and who goes for it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from attrs import evolve

from engine.disruption.unhealthy import illnesses, unhealthy
from engine.model.ledger import Illness, Ledger
from engine.model.node import Node, NodeCondition
from engine.model.plan import RemovalPhase
from engine.model.policy import Budget, Disruption, UnhealthyLimit
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason
from engine.model.stay import TooManyUnhealthy
from tests.builders import NOON, minutes
from tests.decide.taken import TakingWorld, again, condition, replicas, running

ACCELERATED = "AcceleratedHardwareReady"
NOBODY_GOES = Disruption(consolidate_after=None, budgets=(Budget(nodes=0),))


def clocked(readings: list[tuple[float, str, float]], kind: str = "Ready") -> tuple[Mapping[str, Illness], Node]:
    """The clocks after passes at ``minute``, each of which saw ``status`` since another minute."""
    clocks: Mapping[str, Illness] = {}
    node = Node("node", Resources({}), NOON)
    for minute, status, since in readings:
        node = evolve(node, conditions=(NodeCondition(kind, status, NOON + minutes(since)),), ready=status == "True")
        clocks = illnesses(clocks, node, NOON + minutes(minute))
    return clocks, node


def at(minute: float) -> datetime:
    return NOON + minutes(minute)


@pytest.mark.parametrize(
    ("kind", "status", "tolerated"),
    [
        ("Ready", "False", 30),
        ("Ready", "Unknown", 30),
        (ACCELERATED, "False", 10),
        ("StorageReady", "False", 30),
        ("NetworkingReady", "False", 30),
        ("KernelReady", "False", 30),
        ("ContainerRuntimeReady", "False", 30),
    ],
)
def test_each_condition_is_borne_for_its_own_time(kind: str, status: str, tolerated: int) -> None:
    clocks, node = clocked([(0, status, 0)], kind)
    assert unhealthy(clocks, node, at(tolerated) - timedelta(seconds=1)) is None
    cause = unhealthy(clocks, node, at(tolerated))
    assert cause is not None
    assert cause.rule == f"{kind} {status} for longer than {tolerated}m"


def test_unknown_is_no_illness_where_only_false_is() -> None:
    clocks, _ = clocked([(0, "Unknown", 0)], ACCELERATED)
    assert not clocks


def test_a_transition_time_that_is_set_anew_resets_nothing() -> None:
    flapping = [(minute, "False" if minute % 2 else "Unknown", minute) for minute in range(31)]
    clocks, node = clocked(flapping)  # type: ignore[arg-type]
    assert clocks["Ready"].since == NOON
    assert unhealthy(clocks, node, at(30)) is not None


def test_a_moment_of_health_resets_nothing_and_a_while_of_it_does() -> None:
    clocks, node = clocked([(0, "False", 0), (10, "True", 10), (14.9, "True", 10), (14.95, "False", 14.95)])
    assert clocks["Ready"] == Illness(NOON)
    assert unhealthy(clocks, node, at(30)) is not None
    cured, node = clocked([(0, "False", 0), (10, "True", 10), (15, "True", 10), (16, "False", 16)])
    assert cured["Ready"] == Illness(at(16))
    assert unhealthy(cured, node, at(30)) is None


def test_a_node_that_is_well_when_its_time_is_over_stays() -> None:
    clocks, node = clocked([(0, "False", 0), (29, "True", 29)])
    assert unhealthy(clocks, node, at(32)) is None


def test_a_lost_ledger_starts_from_the_conditions_own_time() -> None:
    clocks, node = clocked([(45, "Unknown", 3)])
    assert clocks["Ready"].since == at(3)
    assert unhealthy(clocks, node, at(45)) is not None


def test_a_clock_of_the_cluster_that_runs_ahead_starts_no_illness_in_the_future() -> None:
    clocks, _ = clocked([(0, "False", 60)])
    assert clocks["Ready"].since == NOON


def test_a_condition_that_is_not_shown_keeps_its_clock() -> None:
    clocks, node = clocked([(0, "False", 0)])
    assert illnesses(clocks, evolve(node, conditions=()), at(9)) == clocks


def test_whatever_the_pattern_a_clock_begins_after_the_last_spell_of_health_that_was_long_enough() -> None:
    chance = random.Random(3)
    seen_running = 0
    for _ in range(300):
        readings: list[tuple[float, str, float]] = []
        minute = 0.0
        began: float | None = None
        well_from: float | None = None
        for _ in range(40):
            status = chance.choice(["True", "True", "False", "Unknown"])
            readings.append((minute, status, minute))
            if status == "True":
                well_from = minute if well_from is None else well_from
                began = None if minute - well_from >= 5 else began
            else:
                began, well_from = minute if began is None else began, None
            minute += chance.choice([0.5, 1, 3])
        clocks, _ = clocked(readings)
        assert [each.since for each in clocks.values()] == ([] if began is None else [at(began)])
        seen_running += bool(clocks)
    assert 0 < seen_running < 300


# --- who goes


def ill(world: TakingWorld, instance: str, kind: str = "Ready", status: str = "Unknown") -> None:
    world.ails[instance] = condition(kind, status, world.now)
    world.show_ails()


def test_a_node_that_is_silent_for_half_an_hour_is_replaced_whatever_budgets_say() -> None:
    world = running(replicas(5), disruption=NOBODY_GOES)
    world.evicts = False
    sick = sorted(world.instances)[0]
    ill(world, sick)
    plans = again(world, 29)
    assert all(not plan.removals for plan in plans)
    plans = again(world, 4)
    gone = world.instances[sick].claim
    acts = [(removal.record.claim, removal.phase) for plan in plans for removal in plan.removals]
    # Its kubelet answers nobody, so no pod can be seen to leave it.
    assert acts == [(gone, RemovalPhase.MARK), (gone, RemovalPhase.RELEASE)]
    assert [removal.record.reason for plan in plans for removal in plan.removals] == [DisruptionReason.UNHEALTHY] * 2
    assert sum(len(plan.launches) for plan in plans) == 1


def test_a_node_with_broken_gpus_is_emptied_before_it_goes() -> None:
    world = running(replicas(5))
    sick = sorted(world.instances)[0]
    ill(world, sick, ACCELERATED, "False")
    plans = again(world, 14)
    gone = world.instances[sick].claim
    assert [removal.phase for plan in plans for removal in plan.removals if removal.record.claim == gone] == [
        RemovalPhase.MARK,
        RemovalPhase.RELEASE,
    ]
    marked = next(plan for plan in plans if plan.removals)
    assert len(marked.removals[0].pods) == 1
    assert len(marked.launches) == 1
    assert len(world.running()) == 5


def test_where_more_than_a_fifth_of_the_pool_is_ill_none_goes_and_the_numbers_are_told() -> None:
    world = running(replicas(6))
    for instance in sorted(world.instances)[:3]:
        ill(world, instance, ACCELERATED, "False")
    plans = again(world, 15)
    assert all(not plan.removals for plan in plans)
    told = [kept.reason for kept in plans[-1].kept if isinstance(kept.reason, TooManyUnhealthy)]
    assert told == [TooManyUnhealthy(f"{ACCELERATED} False for longer than 10m", 3, 6, 2)] * 3


def test_a_fifth_of_the_pool_rounded_up_may_go() -> None:
    world = running(replicas(6))
    for instance in sorted(world.instances)[:2]:
        ill(world, instance, ACCELERATED, "False")
    plans = again(world, 15)
    assert len({removal.record.claim for plan in plans for removal in plan.removals}) == 2


def test_nodes_that_come_up_are_held_to_their_deadlines_and_not_to_their_health() -> None:
    world = running(replicas(1))
    for instance in sorted(world.instances):
        ill(world, instance, "Ready", "False")
    world.ledger = Ledger()
    world.finish(list(world.pods.values()))
    assert not world.decide().ledger.illnesses


def test_a_marked_node_that_is_well_again_goes_all_the_same() -> None:
    world = running(replicas(5))
    world.evicts = False
    sick = sorted(world.instances)[0]
    ill(world, sick, ACCELERATED, "False")
    again(world, 12)
    assert world.nodes[f"node-{sick}"].is_marked
    world.ails[sick] = condition(ACCELERATED, "True", world.now)
    world.show_ails()
    plans = again(world, 10)
    assert all([removal.record.reason for removal in plan.removals] == [DisruptionReason.UNHEALTHY] for plan in plans)


def test_in_a_small_pool_sick_nodes_go_one_at_a_time_instead_of_never() -> None:
    world = running(replicas(3))
    sick = sorted(world.instances)[:2]
    for instance in sick:
        ill(world, instance, ACCELERATED, "False")
    plans = again(world, 11)
    told = [kept.reason for plan in plans for kept in plan.kept if isinstance(kept.reason, TooManyUnhealthy)]
    assert told[0] == TooManyUnhealthy(f"{ACCELERATED} False for longer than 10m", 2, 3, 1)
    assert len({removal.record.claim for plan in plans for removal in plan.removals}) == 1
    plans += again(world, 9)
    marked = [
        [removal.record.claim for removal in plan.removals if removal.phase is RemovalPhase.MARK] for plan in plans
    ]
    assert max(map(len, marked)) == 1
    assert {claim for each in marked for claim in each} == {world.instances[instance].claim for instance in sick}
    assert len(world.running()) == 3


def test_beyond_the_limit_the_next_waits_until_what_replaces_the_one_before_is_up() -> None:
    world = running(replicas(5))
    for instance in sorted(world.instances)[:3]:
        ill(world, instance, ACCELERATED, "False")
    world.registers = lambda claim: claim.name in {each.claim for each in list(world.instances.values())[:5]}
    plans = again(world, 25)
    assert len({removal.record.claim for plan in plans for removal in plan.removals if removal.record.node}) == 1


@pytest.mark.parametrize(("limit", "gone"), [(UnhealthyLimit(nodes=3), 3), (UnhealthyLimit(nodes=0), 0)])
def test_the_limit_is_the_pools(limit: UnhealthyLimit, gone: int) -> None:
    world = running(replicas(6), unhealthy_limit=limit)
    for instance in sorted(world.instances)[:3]:
        ill(world, instance, ACCELERATED, "False")
    plans = again(world, 15)
    assert len({removal.record.claim for plan in plans for removal in plan.removals}) == gone
