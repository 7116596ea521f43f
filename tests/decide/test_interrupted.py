"""Interrupted machines: marked at once, replaced in the same pass, let go once their pods have left."""

from __future__ import annotations

import random

import pytest
from attrs import evolve

from engine.model.canonical import canonical_json, from_json
from engine.model.interruption import Interruption, InterruptionKind
from engine.model.ledger import Ledger
from engine.model.node import InstanceState
from engine.model.plan import Plan, RemovalPhase
from engine.model.policy import Budget, Disruption, OnRebalance
from engine.model.reason import DisruptionReason
from engine.model.refusal import PoolPaused
from engine.model.reservation import CapacityReservation, ReservationKind
from engine.model.stay import BudgetExhausted
from tests.builders import ANYTHING, NOON, environment, minutes, pod
from tests.decide.taken import TakingWorld, again, replicas, running
from tests.decide.world import policy

INTERRUPTED = DisruptionReason.INTERRUPTED
NOTHING_GOES = Disruption(consolidate_after=minutes(0), budgets=(Budget(nodes=0),))


def phases(plan: Plan) -> list[tuple[str, RemovalPhase]]:
    return [(removal.record.claim, removal.phase) for removal in plan.removals]


def asked(plan: Plan) -> list[str]:
    return [key.name for removal in plan.removals for key in removal.pods]


def interrupted_by(plan: Plan) -> list[str]:
    return [removal.record.claim for removal in plan.removals if removal.record.reason is INTERRUPTED]


def first_taken(world: TakingWorld) -> str:
    """The instance under the first pod."""
    return world.instance_of(min(world.pods.values(), key=lambda each: each.key))


def claim_of(world: TakingWorld, instance: str) -> str:
    return world.instances[instance].claim


def test_a_spot_notice_marks_evicts_and_replaces_in_one_pass_whatever_budgets_say() -> None:
    world = running(replicas(3), disruption=NOTHING_GOES)
    taken = first_taken(world)
    world.say(InterruptionKind.SPOT, taken, world.now + minutes(2))
    plan = world.decide()
    assert phases(plan) == [(claim_of(world, taken), RemovalPhase.MARK)]
    record = plan.removals[0].record
    assert (record.reason, record.budget) == (INTERRUPTED, None)
    assert "EC2 takes its spot capacity back at 2026-11-30 12:04 UTC" in record.rule
    assert asked(plan) == ["llm-0"]
    assert [[key.name for key in launch.displaced] for launch in plan.launches] == [["llm-0"]]
    assert [launch.claim.replaces for launch in plan.launches] == [(claim_of(world, taken),)]


def test_the_replacement_is_of_another_offering_while_the_interrupted_one_is_out() -> None:
    world = running(replicas(1))
    taken = first_taken(world)
    key = world.document.claim(claim_of(world, taken)).inputs.offering_key  # type: ignore[union-attr]
    world.say(InterruptionKind.SPOT, taken)
    plan = world.decide()
    assert plan.launches[0].claim.inputs.offering_key != key
    assert plan.ledger.unavailable[key].until == world.now + minutes(3)


def test_from_notice_to_release_there_is_one_replacement_and_its_pod_runs_on_it() -> None:
    world = running(replicas(2))
    taken = first_taken(world)
    gone = claim_of(world, taken)
    world.say(InterruptionKind.SPOT, taken)
    plans = again(world)
    assert sum(len(plan.launches) for plan in plans) == 1
    assert [phase for plan in plans for claim, phase in phases(plan) if claim == gone] == [
        RemovalPhase.MARK,
        RemovalPhase.RELEASE,
    ]
    assert plans[-1].is_empty
    assert len(world.running()) == 2
    assert taken not in {each.id for each in world.running()}
    assert all(each.node_name for each in world.pods.values())
    assert not world.ledger.interruptions


def test_pods_that_do_not_leave_are_asked_again_and_nothing_more_is_bought_for_them() -> None:
    world = running(replicas(1))
    world.evicts = False
    world.say(InterruptionKind.SPOT, first_taken(world))
    plans = again(world)
    assert [len(plan.launches) for plan in plans] == [1, 0, 0, 0, 0, 0]
    assert [asked(plan) for plan in plans] == [["llm-0"]] * 6


def test_a_machine_that_dies_before_it_is_empty_is_lost_and_not_replaced_twice() -> None:
    world = running(replicas(1))
    world.evicts = False
    taken = first_taken(world)
    world.say(InterruptionKind.SPOT, taken)
    world.turn(minutes(1))
    world.lose(claim_of(world, taken))
    plans = again(world)
    assert [len(plan.launches) for plan in plans] == [0] * 6
    assert plans[0].removals[0].record.reason is DisruptionReason.LOST
    assert len(world.running()) == 1
    assert all(each.node_name for each in world.pods.values())


def test_the_message_may_come_twice_late_or_in_any_order() -> None:
    def plan_of(messages: list[Interruption]) -> tuple[bytes, bytes]:
        world = running(replicas(3))
        plan = world.decide(interruptions=tuple(messages))
        return canonical_json(plan.removals), canonical_json(plan.ledger)

    world = running(replicas(3))
    ids = sorted(world.instances)
    messages = [
        Interruption(kind, instance, NOON + minutes(age), NOON + minutes(age + 2))
        for kind in InterruptionKind
        for instance in ids[:2]
        for age in (0, 1)
    ]
    expected = plan_of(messages)
    chance = random.Random(7)
    for _ in range(20):
        shuffled = [*messages, *chance.sample(messages, 3)]
        chance.shuffle(shuffled)
        assert plan_of(shuffled) == expected


def test_a_message_that_is_read_again_after_it_was_acted_on_changes_nothing() -> None:
    world = running(replicas(2))
    world.say(InterruptionKind.SPOT, first_taken(world))
    messages = world.messages
    plan = world.turn(minutes(1))
    with_it, without = world.decide(interruptions=messages), world.decide()
    assert plan.launches
    assert not with_it.launches
    assert canonical_json(with_it) == canonical_json(without)


def test_it_goes_on_once_the_message_is_gone_and_starts_nothing_for_machines_of_others() -> None:
    world = running(replicas(1))
    world.say(InterruptionKind.SPOT, "i-0ffffffffffffffff")
    assert world.turn(minutes(1)).is_empty
    assert not world.ledger.interruptions
    world.evicts = False
    world.say(InterruptionKind.SPOT, first_taken(world))
    world.turn(minutes(1))
    assert world.messages == ()
    assert [removal.record.reason for removal in world.decide().removals] == [INTERRUPTED]


def test_budgets_count_what_is_interrupted_and_let_less_go_by_choice() -> None:
    one_at_a_time = Disruption(consolidate_after=minutes(0), budgets=(Budget(nodes=1),))
    world = running(replicas(3), disruption=one_at_a_time)
    pods = sorted(world.pods.values(), key=lambda each: each.key)
    idle = claim_of(world, world.instance_of(pods[2]))
    world.finish([pods[2]])
    assert phases(world.decide()) == [(idle, RemovalPhase.MARK)]
    # Its pod does not want the idle machine.
    world.pods[pods[0].key] = evolve(pods[0], placing=evolve(pods[0].placing, node_selector={"gone": "away"}))
    world.say(InterruptionKind.SPOT, world.instance_of(pods[0]))
    plan = world.decide()
    assert [claim for claim, _ in phases(plan)] == [claim_of(world, world.instance_of(pods[0]))]
    assert [type(kept.reason) for kept in plan.kept if kept.claim == idle] == [BudgetExhausted]


def test_a_storm_is_marked_at_once_beyond_the_cap_on_removals() -> None:
    world = running(replicas(5))
    world.environment = evolve(environment(), caps=evolve(environment().caps, removals=2))
    for instance in sorted(world.instances):
        world.say(InterruptionKind.SPOT, instance)
    assert [phase for _, phase in phases(world.decide())] == [RemovalPhase.MARK] * 5


def test_do_not_disrupt_holds_nothing_that_is_taken_anyway() -> None:
    world = running(replicas(1, do_not_disrupt=True))
    world.say(InterruptionKind.SPOT, first_taken(world))
    assert asked(world.decide()) == ["llm-0"]


def test_a_pod_that_nobody_makes_again_is_asked_to_leave_and_not_replaced() -> None:
    world = running([pod("alone", gpu=1)])
    world.say(InterruptionKind.SPOT, first_taken(world))
    plan = world.decide()
    assert asked(plan) == ["alone"]
    assert not plan.launches


def test_a_pod_that_bears_the_mark_is_left_where_it_is_and_keeps_nothing() -> None:
    world = running(replicas(1, tolerations=(ANYTHING,)))
    world.say(InterruptionKind.SPOT, first_taken(world))
    first, second = again(world, 2)
    assert (asked(first), phases(second)[0][1]) == ([], RemovalPhase.RELEASE)


@pytest.mark.parametrize("wanted", list(OnRebalance))
def test_a_rebalance_recommendation_is_followed_where_the_pool_wants(wanted: OnRebalance) -> None:
    world = running(replicas(1), on_rebalance=wanted)
    world.say(InterruptionKind.REBALANCE, first_taken(world))
    plan = world.decide()
    assert bool(plan.removals) is (wanted is OnRebalance.REPLACE)
    assert not plan.ledger.unavailable


def test_scheduled_maintenance_makes_the_machine_leave_and_bars_no_offering() -> None:
    world = running(replicas(1))
    world.say(InterruptionKind.MAINTENANCE, first_taken(world), NOON + minutes(60 * 24))
    plan = world.decide()
    assert plan.removals[0].record.rule.endswith("AWS has scheduled maintenance at 2026-12-01 12:00 UTC")
    assert not plan.ledger.unavailable


def test_a_machine_that_somebody_stops_is_replaced_and_let_go_although_no_pod_can_leave_it() -> None:
    world = running(replicas(1))
    world.evicts = False
    taken = first_taken(world)
    world.instances[taken] = evolve(world.instances[taken], state=InstanceState.STOPPED)
    first, second = again(world, 2)
    assert [phase for _, phase in phases(first)] == [RemovalPhase.MARK]
    assert len(first.launches) == 1
    assert phases(second) == [(claim_of(world, taken), RemovalPhase.RELEASE)]


def test_a_state_change_alone_says_nothing_of_a_machine_that_runs_again() -> None:
    world = running(replicas(1))
    world.say(InterruptionKind.STATE_CHANGE, first_taken(world))
    assert world.decide().is_empty


def test_a_capacity_block_is_left_40_minutes_before_its_end_and_not_earlier() -> None:
    world = running(replicas(1))
    taken = claim_of(world, first_taken(world))
    block = CapacityReservation(
        "cr-1", "g5.xlarge", "us-east-1a", 1, 0, ReservationKind.CAPACITY_BLOCK, ends_at=world.now + minutes(40)
    )
    claim = world.document.claim(taken)  # type: ignore[union-attr]
    assert claim is not None
    assert world.document is not None
    inputs = evolve(
        claim.inputs,
        capacity_type="reserved",
        capacity_reservation_id="cr-1",
        capacity_reservation_kind=ReservationKind.CAPACITY_BLOCK,
    )
    [node_set] = world.document.node_sets
    world.document = evolve(world.document, node_sets=(evolve(node_set, claims=(evolve(claim, inputs=inputs),)),))
    cloud = evolve(world.cloud(), reservations=(block,))
    assert interrupted_by(world.decide(cloud=cloud)) == [taken]
    assert not interrupted_by(world.decide()), "that EC2 does not show the block is no proof that it ends"
    world.now -= minutes(1)
    assert not interrupted_by(world.decide(cloud=cloud))


def test_a_paused_pool_lets_interrupted_machines_go_and_launches_nothing() -> None:
    world = running(replicas(1))
    world.policy = policy(evolve(world.policy.node_pools[0], paused="we look at it"))
    world.say(InterruptionKind.SPOT, first_taken(world))
    plan = world.decide()
    assert asked(plan) == ["llm-0"]
    assert not plan.launches
    world.messages = ()
    assert [type(kept.reason) for kept in world.decide().kept] == [PoolPaused]


def test_base_capacity_is_made_up_for_in_the_same_pass() -> None:
    world = running(replicas(0), min_nodes=2)
    world.turn(minutes(1))
    world.say(InterruptionKind.SPOT, sorted(world.instances)[0])
    assert len(world.decide().launches) == 1


def test_a_machine_on_its_way_is_let_go_without_a_mark() -> None:
    world = TakingWorld(policy(running([]).policy.node_pools[0]), replicas(1), registers=lambda claim: False)
    world.turn(minutes(1))
    world.say(InterruptionKind.SPOT, sorted(world.instances)[0])
    plan = world.decide()
    assert [phase for _, phase in phases(plan)] == [RemovalPhase.RELEASE]
    assert len(plan.launches) == 1


def test_a_ledger_with_interruptions_and_clocks_is_read_back_as_it_was_written() -> None:
    world = running(replicas(1))
    world.say(InterruptionKind.SPOT, first_taken(world), NOON)
    ledger = world.decide().ledger
    assert from_json(Ledger, canonical_json(ledger)) == ledger
    assert ledger.interruptions
