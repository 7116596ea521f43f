"""Whatever is taken away or falls ill, in whatever order it is told: what always holds of what follows."""

from __future__ import annotations

import random

from attrs import evolve

from engine.model.canonical import canonical_json
from engine.model.interruption import Interruption, InterruptionKind
from engine.model.node import InstanceState
from engine.model.plan import Plan, RemovalPhase
from engine.model.policy import Budget, Disruption
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from tests.builders import minutes
from tests.decide.taken import TakingWorld, condition, replicas, running

FORCED = (DisruptionReason.INTERRUPTED, DisruptionReason.UNHEALTHY)
HEEDED = (InterruptionKind.SPOT, InterruptionKind.RESERVATION, InterruptionKind.MAINTENANCE)


def disturbed(world: TakingWorld, chance: random.Random) -> set[str]:
    """One thing goes wrong, or is well again; the claims that have to go for it."""
    alive = sorted(each.id for each in world.running())
    if not alive:
        return set()
    instance, what = chance.choice(alive), chance.random()
    if what < 0.3:
        kind = chance.choice(list(InterruptionKind))
        for _ in range(chance.randint(1, 2)):
            world.say(kind, instance, world.now + minutes(2))
        return {world.instances[instance].claim} if kind in HEEDED else set()
    if what < 0.4:
        world.instances[instance] = evolve(world.instances[instance], state=InstanceState.STOPPED)
        return {world.instances[instance].claim}
    if what < 0.7:
        kind = chance.choice(["Ready", "AcceleratedHardwareReady", "KernelReady"])
        world.ails[instance] = condition(kind, chance.choice(["True", "False", "Unknown"]), world.now)
    elif what < 0.8:
        world.say(InterruptionKind.SPOT, "i-0stranger")
    elif what < 0.9:
        world.lose(world.instances[instance].claim)
    else:
        world.finish(chance.sample(sorted(world.pods.values(), key=lambda each: each.key), k=min(1, len(world.pods))))
    return set()


def checked(world: TakingWorld, plan: Plan, taken: set[str], chance: random.Random) -> None:
    going = {each.record.claim: each for each in plan.removals}
    assert len(going) == len(plan.removals), "a machine goes once"
    standing = {claim.name for claim in world.document.claims} if world.document else set()
    for claim in taken & standing:
        # Never held by a budget, in the very pass that learns of it: it goes, or is gone.
        assert claim in going, claim
    assert all(each.record.budget is None for each in plan.removals if each.record.reason in FORCED)
    forced = [each for each in plan.removals if each.record.reason in FORCED and each.record.node]
    for record in (each.record for each in plan.removals if each.record.reason in VOLUNTARY_REASONS):
        assert record.budget is not None
        assert len(forced) < record.budget.used <= record.budget.allowed
    shuffled = [*world.messages, *world.messages]
    chance.shuffle(shuffled)
    assert canonical_json(world.decide(interruptions=tuple(shuffled))) == canonical_json(plan)


def test_in_random_worlds_what_is_taken_goes_at_once_budgets_count_it_and_all_comes_to_rest() -> None:
    seen: set[tuple[DisruptionReason, RemovalPhase]] = set()
    chosen = 0
    for seed in range(12):
        chance = random.Random(seed)
        disruption = Disruption(consolidate_after=minutes(1), budgets=(Budget(nodes=chance.randint(0, 3)),))
        world = running(replicas(chance.randint(2, 5)), disruption=disruption)
        world.evicts = chance.random() < 0.8
        for _ in range(chance.randint(6, 14)):
            taken = disturbed(world, chance)
            plan = world.decide()
            checked(world, plan, taken, chance)
            seen |= {(each.record.reason, each.phase) for each in plan.removals}
            chosen += any(each.record.reason in VOLUNTARY_REASONS for each in plan.removals)
            world.apply(plan)
            world.settle()
            world.now += minutes(chance.choice([1, 3, 12]))
        world.evicts, world.ails = True, {}
        for _ in range(60):
            plan = world.turn(minutes(5))
            if plan.is_empty:
                break
        assert plan.is_empty, plan.removals
        assert all(pod.node_name for pod in world.pods.values())
    assert {(reason, phase) for reason in FORCED for phase in RemovalPhase} <= seen
    assert chosen


def test_messages_about_what_is_gone_or_was_never_here_change_no_plan() -> None:
    world = running(replicas(2))
    before = world.decide()
    gone = Interruption(InterruptionKind.SPOT, "i-0gone", world.now)
    assert canonical_json(world.decide(interruptions=(gone, gone))) == canonical_json(before)
