"""What always holds while nodes are replaced and move for money, over many small random worlds."""

from __future__ import annotations

import random
from typing import Any

from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.decide import decide
from engine.model import labels as keys
from engine.model.plan import Plan
from engine.model.policy import Budget, ConsolidationPolicy, Disruption, NodePool
from engine.model.quantity import NODES
from engine.model.replacement import AwaitsReplacement
from engine.model.upkeep import Upkeep
from tests.builders import minutes, node_pool, requirement
from tests.decide.world import policy
from tests.disruption.going_world import GoingWorld, kept, marks, served

SMALL = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ON_DEMAND = requirement(keys.CAPACITY_TYPE, "In", "on-demand")


@st.composite
def pools(draw: st.DrawFn) -> NodePool:
    budgets = draw(st.sampled_from([(), (Budget(nodes=1),), (Budget(percent=30),), (Budget(nodes=0),)]))
    limit: dict[str, Any] = draw(st.sampled_from([{}, {NODES: 3}, {NODES: 4}]))
    return node_pool(
        requirements=[ON_DEMAND],
        limits=limit,
        disruption=Disruption(
            consolidation_policy=draw(st.sampled_from(ConsolidationPolicy)),
            consolidate_after=draw(st.sampled_from([None, minutes(0), minutes(15)])),
            budgets=budgets,
        ),
        min_nodes=draw(st.sampled_from([0, 1])),
        expire_after=draw(st.sampled_from([None, minutes(60 * 24)])),
        upkeep=Upkeep(surge=draw(st.sampled_from([None, None, 0, 1])), canaries=draw(st.sampled_from([0, 1]))),
    )


@st.composite
def worlds(draw: st.DrawFn) -> GoingWorld:
    """Some pods run, some have ended, and the image may be another."""
    pods = [
        served(f"p{number}", gpu=draw(st.sampled_from([1, 1, 2, 3])), cpu=draw(st.sampled_from(["1", "10"])))
        for number in range(draw(st.integers(1, 6)))
    ]
    one = GoingWorld(policy(draw(pools())), pods)
    one.started(3)
    one.finish([each for each in pods if draw(st.booleans()) and draw(st.booleans())])
    if draw(st.booleans()):
        one.new_image()
    if draw(st.booleans()):
        one.now += minutes(60 * 23)
    return one


def allowed(pool: NodePool, nodes: int) -> int:
    """The most that any reason may have out, of so many nodes."""
    numbers = [
        each.nodes if each.nodes is not None else -(-nodes * (each.percent or 0) // 100)
        for each in pool.disruption.budgets
    ]
    return min(numbers, default=nodes)


def check_budget(one: GoingWorld, plan: Plan) -> None:
    [pool] = one.policy.node_pools
    marked = {name for name, node in one.nodes.items() if node.is_marked}
    newly = {mark.record.node for mark in marks(plan)} - marked
    awaiting = {each.node for each in kept(plan, AwaitsReplacement)} - marked
    if newly or any(launch.claim.replaces for launch in plan.launches):
        assert len(marked | newly | awaiting) <= allowed(pool, len(one.nodes))


def check_places(one: GoingWorld, plan: Plan) -> None:
    """Whoever is asked to leave has room on a node that is up and stays, all of them together."""
    going = {mark.record.node for mark in marks(plan)}
    room = {name: one.room(node) for name, node in one.nodes.items() if not node.is_marked and name not in going}
    for mark in marks(plan):
        if mark.delete_first is not None:
            continue
        assert set(mark.pods) <= {place.pod for place in mark.places}
        for place in mark.places:
            assert place.node in room, "it is no place, or one that goes as well"
            room[place.node] -= one.pods[place.pod].placing.requests
            assert all(amount >= 0 for amount in room[place.node].values())


def check_limit(one: GoingWorld) -> None:
    [pool] = one.policy.node_pools
    if NODES in pool.limits:
        assert len(one.running()) <= pool.limits[NODES]


@SMALL
@given(worlds())
def test_budgets_and_limits_hold_nobody_is_without_a_place_and_it_comes_to_rest(one: GoingWorld) -> None:
    for _ in range(60):
        plan = one.decide()
        check_budget(one, plan)
        check_places(one, plan)
        one.apply(plan)
        check_limit(one)
        one.settle()
        one.now += minutes(10)
        if plan.is_empty and one.decide().is_empty:
            break
    else:
        raise AssertionError(f"no rest: {plan.launches} {plan.removals}")


@SMALL
@given(worlds(), st.integers(0, 1000))
def test_a_plan_is_the_same_whatever_the_order_and_however_often(one: GoingWorld, seed: int) -> None:
    shuffle = random.Random(seed)
    for _ in range(4):
        seen = one.snapshot()
        mixed = evolve(
            seen,
            pods=tuple(shuffle.sample(seen.pods, len(seen.pods))),
            nodes=tuple(shuffle.sample(seen.nodes, len(seen.nodes))),
            cloud=evolve(seen.cloud, instances=tuple(shuffle.sample(seen.cloud.instances, len(seen.cloud.instances)))),
        )
        plan = one.decide()
        assert decide(mixed, one.policy, one.catalog, one.environment) == plan
        assert one.decide() == plan
        one.apply(plan)
        one.settle()
        one.now += minutes(10)
