"""Cases from public bug reports about disruption, by their numbers; each is a small input with the right outcome."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.pod import Pod
from engine.model.policy import Budget, ConsolidationPolicy, Disruption, NodePool
from engine.model.quantity import NODES
from engine.model.reason import DisruptionReason
from engine.model.refusal import CeilingReached, LimitReached
from engine.model.replacement import AwaitsReplacement, NoPlace, PodHolds
from engine.model.rule import LimitedResource
from engine.model.stay import DoNotDisrupt
from engine.model.upkeep import Upkeep
from engine.report.removal_words import delete_first_words
from tests.builders import catalog, instance_type, minutes, node_class, node_pool, requirement
from tests.decide.reserving import SELECTING, ReservingWorld, reservation
from tests.decide.rule_values import NO_INT, limit
from tests.decide.world import policy
from tests.disruption.going_world import STEADY, GoingWorld, kept, marks, of, served, steady

AT_ONCE = Disruption(consolidate_after=timedelta(0), budgets=())
ON_DEMAND = requirement(keys.CAPACITY_TYPE, "In", "on-demand")
TRIED = Upkeep(canaries=0)


def settled(one: GoingWorld, most: int = 40) -> None:
    for _ in range(most):
        if one.turn().is_empty:
            return
    raise AssertionError("it comes to no rest")


def drifted_at_its_limit(surge: int | None) -> GoingWorld:
    """One machine that drifted, in a pool whose limit is that machine."""
    pool = steady(requirements=[ON_DEMAND], limits={"cpu": "4"}, upkeep=Upkeep(surge=surge, canaries=0))
    one = of(served("llm"), pool=pool).started()
    assert one.types() == ["g5.xlarge"]
    one.new_image()
    return one


def test_case_04_a_limit_of_one_node_lets_it_go_first_and_says_so() -> None:
    one = drifted_at_its_limit(None)
    [mark] = marks(one.decide())
    assert mark.delete_first is not None
    [refused] = mark.delete_first.refusals
    assert refused.refusal == LimitReached(resource="cpu", limit=4_000, used=4_000, planned=0, needed=4_000)
    [old] = one.running()
    settled(one)
    [new] = one.running()
    assert new.id != old.id
    assert all(each.node_name for each in one.pods.values())


def test_case_04_a_pool_that_demands_surge_says_what_the_limit_lacks() -> None:
    one = drifted_at_its_limit(1)
    plan = one.decide()
    assert (plan.launches, plan.removals) == ((), ())
    [blocked] = kept(plan, NoPlace)
    assert isinstance(blocked.reason, NoPlace)
    assert [type(each.refusal) for each in blocked.reason.refusals] == [LimitReached]


def drifted_at_its_ceiling(ceiling: str, resource: LimitedResource, surge: int | None = None) -> GoingWorld:
    """One machine that drifted, in a pool for which a rule allows so much."""
    pool = steady(requirements=[ON_DEMAND], upkeep=Upkeep(surge=surge, canaries=0))
    one = of(served("llm"), pool=pool).started()
    one.new_image()
    one.policy = policy(pool, rules=(limit(ceiling, resource, pools=("gpu",)),))
    return one


@pytest.mark.parametrize(
    ("ceiling", "resource", "most"),
    [
        ("1", LimitedResource.NODES, 1),
        ("1", LimitedResource.GPUS, 1),
        ("7", LimitedResource.CPU, 7_000),
        ("1.5", LimitedResource.USD_PER_HOUR, 1_500_000),
    ],
)
def test_a_rules_ceiling_of_one_node_lets_it_go_first_and_says_so(
    ceiling: str, resource: LimitedResource, most: int
) -> None:
    one = drifted_at_its_ceiling(ceiling, resource)
    plan = one.decide()
    [mark] = marks(plan)
    assert (plan.launches, mark.delete_first is not None) == ((), True)
    [refused] = mark.delete_first.refusals  # type: ignore[union-attr]
    assert isinstance(refused.refusal, CeilingReached)
    assert (refused.refusal.rule, refused.refusal.resource, refused.refusal.limit) == ("ceiling", resource, most)
    assert "for which there is no room: gpu: limit rule ceiling" in delete_first_words(mark, one.now)
    [old] = one.running()
    settled(one)
    [new] = one.running()
    assert new.id != old.id
    assert all(each.node_name for each in one.pods.values())


def test_a_ceiling_with_room_for_another_lets_none_go_first() -> None:
    plan = drifted_at_its_ceiling("2", LimitedResource.NODES).decide()
    assert ([len(plan.launches)], plan.removals) == ([1], ())


@pytest.mark.parametrize(("ceiling", "surge"), [("1", 1), (NO_INT, None), ("0", None)])
def test_none_goes_first_where_surge_is_demanded_no_number_given_or_its_own_room_not_enough(
    ceiling: str, surge: int | None
) -> None:
    plan = drifted_at_its_ceiling(ceiling, LimitedResource.NODES, surge).decide()
    assert (plan.launches, plan.removals) == ((), ())
    [blocked] = kept(plan, NoPlace)
    assert isinstance(blocked.reason, NoPlace)
    assert [type(each.refusal) for each in blocked.reason.refusals] == [CeilingReached]


def test_case_05_two_half_empty_nodes_become_one_of_another_family() -> None:
    slim = instance_type("c5a.xlarge", vcpus=4, memory_gib=10)
    wide = instance_type("m6a.xlarge", vcpus=4, memory_gib=20)
    sold = catalog([slim, wide], prices={"c5a.xlarge": "0.17", "m6a.xlarge": "0.24"})
    pool = node_pool("general", requirements=[ON_DEMAND], disruption=AT_ONCE)
    one = GoingWorld(policy(pool), sold=sold)
    for number in range(2):
        # One after the other, since together they would have been one from the start.
        one.pods |= {each.key: each for each in (served(f"web-{number}", gpu=None, cpu="1500m", memory="7Gi"),)}
        one.policy = policy(evolve(pool, requirements=(ON_DEMAND, requirement(keys.INSTANCE_FAMILY, "In", "c5a"))))
        one.turn(minutes(1))
    assert one.types() == ["c5a.xlarge", "c5a.xlarge"]
    one.policy = policy(pool)
    one.turn(minutes(30))
    settled(one)
    assert one.types() == ["m6a.xlarge"]
    assert one.homeless == []


def quiet_ones(**upkeep: object) -> GoingWorld:
    """Two machines at a quarter, quiet for long; a third has room for both, and got a pod a minute ago."""
    pool = node_pool(
        requirements=[ON_DEMAND],
        disruption=evolve(AT_ONCE, consolidate_after=minutes(5)),
        upkeep=Upkeep(least_share=Decimal(0), **upkeep),  # type: ignore[arg-type]
    )
    pods = [served(f"llm-{number}", gpu=1, cpu="10") for number in range(12)]
    one = of(*pods, pool=pool).started(2, minutes(1))
    by_node: dict[str | None, list[Pod]] = {}
    for each in one.pods.values():
        by_node.setdefault(each.node_name, []).append(each)
    for held in by_node.values():
        one.finish(held[1:])
    return one


def test_case_06_a_node_that_just_got_a_pod_takes_others_all_the_same() -> None:
    one = quiet_ones()
    assert len(one.running()) == 3
    one.turn(minutes(1))
    one.now += minutes(30)
    third = sorted(one.nodes)[2]
    late = served("late", gpu=1, cpu="10", node=third, created=one.now)
    one.pods[late.key] = late
    one.now += minutes(1)
    plan = one.decide()
    going = {mark.record.node for mark in marks(plan)}
    assert len(going) >= 1
    assert third not in going


def test_case_06_a_pool_may_say_that_such_a_node_takes_nobody() -> None:
    one = quiet_ones(quiet_destinations=True)
    one.turn(minutes(1))
    one.now += minutes(30)
    for name in sorted(one.nodes):
        late = served(f"late-{name}", gpu=1, cpu="10", node=name, created=one.now)
        one.pods[late.key] = late
    one.now += minutes(1)
    assert one.decide().is_empty


def test_case_25_a_static_pool_inside_its_reservation_goes_one_by_one() -> None:
    class World(ReservingWorld, GoingWorld):
        pass

    pool = node_pool(
        requirements=[requirement(keys.CAPACITY_TYPE, "In", "reserved")],
        limits={NODES: "4"},
        replicas=4,
        disruption=Disruption(budgets=(Budget(nodes=1),)),
        upkeep=Upkeep(surge=0, canaries=0),
    )
    one = World(policy(pool, node_classes=(SELECTING,)), (), [reservation("cr-1", 4)])
    for _ in range(3):
        one.turn()
    old = {each.claim for each in one.running()}
    assert len(old) == 4
    one.new_image()
    for _ in range(60):
        plan = one.turn()
        assert len(marks(plan)) <= 1
        assert all(mark.delete_first is not None for mark in marks(plan))
        assert sum(not node.is_marked for node in one.nodes.values()) >= 3
        if plan.is_empty:
            break
    assert len(one.running()) == 4
    assert not old & {each.claim for each in one.running()}


def test_case_25_without_a_word_about_surge_a_full_reservation_lets_one_go_first_and_with_one_it_says_why_not() -> None:
    class World(ReservingWorld, GoingWorld):
        pass

    def at_rest(surge: int | None) -> World:
        pool = node_pool(
            requirements=[requirement(keys.CAPACITY_TYPE, "In", "reserved")],
            replicas=2,
            disruption=Disruption(budgets=(Budget(nodes=1),)),
            upkeep=Upkeep(surge=surge, canaries=0),
        )
        one = World(policy(pool, node_classes=(SELECTING,)), (), [reservation("cr-1", 2)])
        for _ in range(3):
            one.turn()
        one.new_image()
        return one

    [mark] = marks(at_rest(None).decide())
    assert mark.delete_first is not None
    assert mark.delete_first.refusals
    plan = at_rest(1).decide()
    assert plan.removals == ()
    assert len(kept(plan, NoPlace)) >= 1


def spot_world() -> GoingWorld:
    pool = node_pool(requirements=[requirement(keys.CAPACITY_TYPE, "In", "spot")], disruption=AT_ONCE)
    one = of(served("big", gpu=3), pool=pool).started()
    one.pods |= {each.key: each for each in (served("llm", gpu=1),)}
    one.turn()
    one.finish([served("big")])
    return one


def test_case_32_a_spot_node_shrinks_and_then_rests() -> None:
    one = spot_world()
    assert one.types() == ["g5.12xlarge"]
    settled(one)
    assert one.types() == ["g5.xlarge"]
    assert one.homeless == []
    assert len(one.launched_ever) == 2
    assert all(one.turn(minutes(60)).is_empty for _ in range(4))


def on_second_choice(returns: bool) -> GoingWorld:
    """A pod on demand, since the liked spot pool was not to be had when it came; by now it is."""
    upkeep = Upkeep(returns=returns)
    quiet = evolve(AT_ONCE, consolidation_policy=ConsolidationPolicy.WHEN_EMPTY)
    spot = requirement(keys.CAPACITY_TYPE, "In", "spot")
    liked = node_pool("liked", weight=100, requirements=[spot], disruption=quiet, upkeep=upkeep)
    other = node_pool("other", weight=10, requirements=[ON_DEMAND], disruption=quiet, upkeep=upkeep)
    one = of(served("llm"), pool=other).started()
    one.policy = policy(liked, other)
    one.now += minutes(60)
    return one


def test_case_33_a_node_returns_to_preferred_capacity_where_the_pool_says_so() -> None:
    one = on_second_choice(returns=True)
    [old] = one.running()
    assert old.capacity_type == "on-demand"
    settled(one)
    assert [each.capacity_type for each in one.running()] == ["spot"]
    assert one.homeless == []
    assert all(one.turn(minutes(60)).is_empty for _ in range(3))


def test_case_33_and_stays_where_it_does_not() -> None:
    one = on_second_choice(returns=False)
    settled(one)
    assert [each.capacity_type for each in one.running()] == ["on-demand"]


def storm(budget: Budget) -> GoingWorld:
    """Twenty machines that were launched within a minute, and are about to expire."""
    pool = steady(
        requirements=[ON_DEMAND],
        expire_after=timedelta(hours=720),
        disruption=evolve(STEADY, budgets=(budget,)),
    )
    one = of(*(served(f"llm-{number:02}") for number in range(20)), pool=pool).started()
    assert len(one.running()) == 20
    one.now = one.now - timedelta(minutes=20) + timedelta(hours=720)
    return one


def test_case_44_an_expiry_storm_is_two_at_a_time_each_replaced_first() -> None:
    one = storm(Budget(percent=10))
    old = {each.claim for each in one.running()}
    for _ in range(80):
        plan = one.turn(minutes(5))
        out = sum(node.is_marked for node in one.nodes.values()) + len(kept(plan, AwaitsReplacement))
        assert out <= 2
        assert len(one.running()) <= 22
        if not old & {each.claim for each in one.running()}:
            break
    assert not old & {each.claim for each in one.running()}
    assert one.homeless == []


def test_case_44_machines_of_one_hour_expire_over_a_day() -> None:
    one = storm(Budget(percent=100))
    one.now -= timedelta(hours=12)
    due = len(kept(one.decide(), AwaitsReplacement))
    assert 4 <= due <= 16


def guarded_world(grace: timedelta | None, disruption: Disruption = STEADY) -> GoingWorld:
    pool = node_pool(requirements=[ON_DEMAND], termination_grace_period=grace, disruption=disruption, upkeep=TRIED)
    one = of(served("big", gpu=3), pool=pool).started()
    held = served("held", gpu=1, do_not_disrupt=True)
    one.pods[held.key] = held
    one.turn()
    one.finish([served("big")])
    return one


@pytest.mark.parametrize(("grace", "goes"), [(timedelta(hours=1), True), (None, False)])
def test_case_46_drift_goes_ahead_over_a_guarded_pod_where_draining_has_an_end(
    grace: timedelta | None, goes: bool
) -> None:
    one = guarded_world(grace)
    one.new_image()
    plan = one.turn()
    assert bool(plan.launches) is goes
    if not goes:
        assert [each.reason for each in plan.kept] == [DoNotDisrupt(pod="default/held")]
        return
    # Nobody asks the pod to leave before the end: that is the drain's to do, an hour after the mark.
    for _ in range(3):
        one.turn()
    assert any(node.is_marked for node in one.nodes.values())
    assert one.evicted == []


@pytest.mark.parametrize("grace", [timedelta(hours=1), None])
def test_case_46_nothing_moves_over_a_guarded_pod_for_money(grace: timedelta | None) -> None:
    one = guarded_world(grace, AT_ONCE)
    assert one.types() == ["g5.12xlarge"]
    for _ in range(3):
        plan = one.turn()
        assert plan.is_empty
    assert [each.reason for each in plan.kept] == [DoNotDisrupt(pod="default/held")]


def three_large(**more: object) -> tuple[GoingWorld, NodePool]:
    pool = steady(requirements=[ON_DEMAND], upkeep=TRIED, **more)
    return of(*(served(f"llm-{number}") for number in range(3)), pool=pool).started(), pool


def test_case_50_a_change_without_effect_replaces_nothing() -> None:
    one, pool = three_large()
    behaviour = evolve(
        pool,
        weight=50,
        limits=evolve(pool).limits,
        disruption=evolve(pool.disruption, consolidate_after=timedelta(days=8)),
        startup_taints=(),
        annotations={"note": "another"},
        headroom=(),
    )
    other_class = node_class("other", user_data="#!/bin/sh\necho of no pool\n")
    one.policy = policy(behaviour, node_classes=(node_class(), other_class), digest="another")
    plan = one.decide()
    assert plan.is_empty
    assert not kept(plan, AwaitsReplacement)


def test_case_50_the_plan_states_the_input_that_drifted() -> None:
    one, pool = three_large()
    one.policy = policy(evolve(pool, labels={"team": "search"}))
    for _ in range(2):
        plan = one.turn()
    assert {mark.record.rule for mark in marks(plan)} == {"gpu: label team none -> search"}
    assert {mark.record.reason for mark in marks(plan)} == {DisruptionReason.DRIFTED}


def test_pods_that_their_budget_holds_keep_what_drifted_and_are_told() -> None:
    from engine.model.workload import ObjectKey, PodDisruptionBudget, Workload

    one, _ = three_large()
    one.new_image()
    budget = PodDisruptionBudget(ObjectKey("default", "all"), selector=(), is_observed=True)
    plan = one.decide(workload=Workload(disruption_budgets=(budget,)))
    assert {type(each.reason) for each in plan.kept} == {PodHolds}
    assert plan.launches == ()
