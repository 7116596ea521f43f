"""What a clock that ran ahead has left behind holds nothing up for longer than policy itself could, from then on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve

from engine.catalog.ledger import LONGEST_BACK_OFF
from engine.decide.budgets_asked import gone_before
from engine.decide.expected_labels import DOUBTED_FOR
from engine.decide.wrong_clocks import not_ahead
from engine.disruption.budget_rules import Gone
from engine.model.canonical import to_plain
from engine.model.interruption import Interruption, InterruptionKind
from engine.model.ledger import (
    Disruption,
    FailedBringUps,
    Illness,
    Ledger,
    Milestones,
    Moved,
    Owed,
    PodsSeen,
    Unavailable,
)
from engine.model.money import UsdPerHour
from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import Owner
from engine.model.policy import Disruption as WhenEmpty
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason
from engine.policy.windows import LONGEST_OPENING
from tests.builders import NOON, minutes, node_pool, pod, snapshot
from tests.decide.draining_scene import CLAIM, Scene, forced, on_node
from tests.decide.world import World, policy
from tests.disruption.rule_world import rule, window

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
AHEAD = (minutes(10), 5 * HOUR, 30 * DAY, 4000 * DAY)
ahead_by = pytest.mark.parametrize("ahead", AHEAD)


def pass_of(world: World, ahead: timedelta = timedelta()) -> Plan:
    """One pass of a runner whose clock is so far ahead of everybody's, and what follows from it."""
    plan = world.decide(taken_at=world.now + ahead)
    world.apply(plan)
    world.settle()
    return plan


def passes_until(world: World, is_so: Callable[[], bool], most: timedelta, every: timedelta = minutes(1)) -> None:
    """Passes by the right clock; fails when it is not so `most` later and a pass."""
    end = world.now + most + every
    while not is_so():
        assert world.now <= end, f"not within {most}"
        pass_of(world)
        world.now += every


@ahead_by
def test_offerings_that_refused_are_asked_again_within_an_hour(ahead: timedelta) -> None:
    world = World(policy(node_pool()), [pod("llm", gpu=1)], refuses=lambda claim: True)
    for _ in range(12):
        pass_of(world, ahead)
    assert world.ledger.unavailable
    world.refuses = lambda claim: False
    passes_until(world, lambda: bool(world.running()), LONGEST_BACK_OFF)


@ahead_by
def test_a_pool_whose_machines_did_not_come_up_launches_again_within_an_hour(ahead: timedelta) -> None:
    pool = node_pool(registration_deadline=minutes(5), launch_deadline=minutes(5))
    world = World(policy(pool), [pod("llm", gpu=1)], registers=lambda claim: False)
    for _ in range(40):
        pass_of(world, ahead)
        world.now += minutes(2)
        if world.ledger.bring_ups.get("gpu", FailedBringUps(0, NOON)).failures >= 3:
            break
    assert world.ledger.bring_ups["gpu"].failures >= 3
    world.registers = lambda claim: True
    passes_until(world, lambda: all(each.node_name for each in world.pods.values()), LONGEST_BACK_OFF + minutes(10))


@ahead_by
def test_a_machine_that_was_launched_then_has_its_deadline_as_any_other(ahead: timedelta) -> None:
    world = World(policy(node_pool(registration_deadline=minutes(15))), [pod("llm", gpu=1)])
    world.registers = lambda claim: False
    for _ in range(2):
        pass_of(world, ahead)
    (first,) = world.running()
    passes_until(world, lambda: first.id not in {each.id for each in world.running()}, minutes(16))


@ahead_by
def test_a_node_that_was_found_empty_then_goes_after_its_time_from_now(ahead: timedelta) -> None:
    pool = node_pool(disruption=WhenEmpty(consolidate_after=minutes(5), budgets=()))
    world = World(policy(pool), [pod("llm", gpu=1)])
    pass_of(world)
    world.finish(list(world.pods.values()))
    pass_of(world, ahead)
    passes_until(world, lambda: not world.running(), minutes(7))


@ahead_by
def test_a_machine_that_was_decided_then_expires_in_its_time(ahead: timedelta) -> None:
    pool = node_pool(expire_after=HOUR, disruption=WhenEmpty(consolidate_after=None, budgets=()))
    world = World(policy(pool), [evolve(pod("llm", gpu=1), owner=Owner("ReplicaSet", "llm"))])
    pass_of(world, ahead)
    (first,) = world.running()
    passes_until(world, lambda: any(node.is_marked for node in world.nodes.values()), HOUR + minutes(5))
    assert first in world.running()


@ahead_by
def test_what_went_then_frees_the_next_opening_of_a_window(ahead: timedelta) -> None:
    pool = node_pool(disruption=WhenEmpty(consolidate_after=minutes(0), budgets=()))
    world = World(policy(pool, rules=(rule(most="1", windows=["day"]),), windows=(window(),)))
    world.now = datetime(2026, 12, 1, 0, 0, tzinfo=UTC)
    for number in range(2):
        late = pod(f"p{number}", gpu=1)
        world.pods[late.key] = late
    pass_of(world)
    world.finish(list(world.pods.values()))
    # By the wrong clock it is ten in the morning, and the first goes.
    for _ in range(4):
        pass_of(world, ahead // DAY * DAY + 10 * HOUR)
    assert len(world.running()) == 1
    pass_of(world)
    world.now = datetime(2026, 12, 2, 9, 0, tzinfo=UTC)
    passes_until(world, lambda: not world.running(), minutes(10))


def test_who_explains_a_budget_counts_as_a_pass_does() -> None:
    went = Disruption("gpu", DisruptionReason.EMPTY, NOON + DAY, NOON + DAY)
    gone = gone_before(snapshot(ledger=Ledger(disruptions={"a": went}, counted_since=NOON + DAY)))
    assert gone == Gone({"a": evolve(went, begun_at=NOON, acted_at=NOON)}, NOON)


@pytest.mark.parametrize("ahead", AHEAD[1:])
def test_a_mark_that_was_dated_then_ends_its_time_to_drain_as_from_when_its_removal_began(ahead: timedelta) -> None:
    pool = node_pool(termination_grace_period=minutes(30))
    began = Disruption("gpu", DisruptionReason.DRIFTED, NOON, NOON)
    held = on_node("held", do_not_disrupt=True)
    scene = Scene((held,), pool, marked_at=NOON + ahead, ledger=Ledger(disruptions={CLAIM: began}))
    early = evolve(scene, now=NOON + minutes(5)).drained(scene.removal(RemovalPhase.MARK))
    late = evolve(scene, now=NOON + minutes(31)).drained(scene.removal(RemovalPhase.MARK))
    assert (forced(early), forced(late)) == ([], ["held"])


def drawn(seed: int) -> tuple[Ledger, datetime]:
    """A ledger with one of everything, at times from years before to years after the second value."""
    dice = random.Random(seed)

    def at() -> datetime:
        return NOON + timedelta(seconds=dice.choice((1, 60, 86_400, 86_400 * 900)) * dice.uniform(-1.0, 1.0))

    barred = [Unavailable(at(), dice.randrange(1, 40), "InsufficientInstanceCapacity") for _ in range(2)]
    reached = Milestones(launched_at=at(), registered_at=at(), failed_at=at(), asked_at=at(), node_gone_since=at())
    ledger = Ledger(
        unavailable={"g5.xlarge/us-east-1b/spot": barred[0]},
        unavailable_groups={"spot": barred[1]},
        bring_ups={"gpu": FailedBringUps(dice.randrange(1, 40), at())},
        empty_since={"a": at()},
        milestones={"a": reached},
        owed={"gpu": Owed(Resources({"nodes": 1}), UsdPerHour(1), at())},
        disruptions={"a": Disruption("gpu", DisruptionReason.EMPTY, at(), at())},
        counted_since=at(),
        label_doubts={"gpu g5.xlarge stage": at()},
        moved={"ns/ReplicaSet/llm": Moved(at(), 3)},
        pods_seen={"a": PodsSeen(2, at())},
        drifted_since={"a": at()},
        illnesses={"a": {"Ready": Illness(at(), at())}},
    )
    return ledger, NOON


def moments(plain: object) -> Iterator[datetime]:
    """All times in a value as it is stored."""
    if isinstance(plain, dict):
        for each in plain.values():
            yield from moments(each)
    elif isinstance(plain, list | tuple):
        for each in plain:
            yield from moments(each)
    elif isinstance(plain, str) and plain.endswith("Z"):
        yield datetime.fromisoformat(plain)


def test_no_time_in_any_ledger_is_further_ahead_than_policy_may_look() -> None:
    changed = 0
    for seed in range(300):
        before, now = drawn(seed)
        after = not_ahead(before, now)
        barred = (*after.unavailable.values(), *after.unavailable_groups.values())
        until = [*(each.until for each in barred), *(each.until for each in after.bring_ups.values())]
        assert max(until) <= now + LONGEST_BACK_OFF
        assert max(after.label_doubts.values()) <= now + DOUBTED_FOR
        rest = evolve(after, unavailable={}, unavailable_groups={}, bring_ups={}, label_doubts={})
        assert max(moments(to_plain(rest))) <= now
        assert not_ahead(after, now) is after
        # What lies behind is as it was.
        untouched = [moment for moment in moments(to_plain(before)) if moment <= now]
        assert all(moment in set(moments(to_plain(after))) for moment in untouched)
        changed += after is not before
    assert changed > 200


def test_a_ledger_that_knows_of_nothing_ahead_is_left_alone_and_so_is_what_aws_said() -> None:
    said = Interruption(InterruptionKind.MAINTENANCE, "i-1", NOON, deadline=NOON + 14 * DAY)
    ledger = Ledger(
        interruptions={"a": said},
        unavailable={"g5.xlarge/us-east-1b/spot": Unavailable(NOON + LONGEST_BACK_OFF, 9, "x")},
        disruptions={"a": Disruption("gpu", DisruptionReason.EMPTY, NOON - LONGEST_OPENING, NOON)},
        counted_since=NOON,
    )
    assert not_ahead(ledger, NOON) is ledger
