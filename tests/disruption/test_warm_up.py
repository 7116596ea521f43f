"""What a move costs is for how long its pods serve nobody: as each says itself, or as its pool does."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from attrs import evolve

from engine.disruption.underutilized import movable_node
from engine.model.canonical import canonical_json, from_json
from engine.model.plan import LaunchReason, Plan
from engine.model.policy import NodePool
from engine.model.snapshot import Snapshot
from engine.model.stay import RepaidTooLate
from engine.model.upkeep import Upkeep
from tests.builders import minutes, node_pool, requirement
from tests.disruption.going_world import GoingWorld, kept, of, served
from tests.disruption.test_empty import machine
from tests.disruption.test_underutilized import AT_ONCE

HOUR = timedelta(hours=1)


def pool(warm_up: timedelta = timedelta(0)) -> NodePool:
    on_demand = [requirement("karpenter.sh/capacity-type", "In", "on-demand")]
    upkeep = Upkeep(warm_up=warm_up)
    return node_pool("gpu", disruption=AT_ONCE, requirements=on_demand, upkeep=upkeep)


def too_large(own: timedelta | None, warm_up: timedelta = timedelta(0)) -> GoingWorld:
    """A pod of one GPU is left alone on a machine of four. It says ``own`` of its warm-up, its pool ``warm_up``."""
    small = evolve(served("small", gpu=1), warm_up=own)
    one = of(served("big", gpu=3), pool=pool(warm_up)).started()
    one.pods[small.key] = small
    one.turn()
    one.finish([served("big")])
    return one


def replacements(plan: Plan) -> list[str]:
    return [each.claim.inputs.instance_type for each in plan.launches if each.reason is LaunchReason.REPLACEMENT]


@pytest.mark.parametrize(
    ("own", "of_pool", "moves"),
    [
        (None, timedelta(0), True),
        (None, HOUR, False),
        (HOUR, timedelta(0), False),
        (timedelta(0), HOUR, True),
        (minutes(5), 10 * HOUR, True),
    ],
)
def test_a_pods_own_word_goes_before_its_pools(own: timedelta | None, of_pool: timedelta, moves: bool) -> None:
    plan = too_large(own, of_pool).decide()
    assert replacements(plan) == (["g5.xlarge"] if moves else [])
    assert bool(kept(plan, RepaidTooLate)) is not moves


def test_the_cost_is_what_the_node_costs_for_so_long_and_told() -> None:
    [held] = kept(too_large(HOUR).decide(), RepaidTooLate)
    assert isinstance(held.reason, RepaidTooLate)
    assert held.reason.cost_micros == held.usd_per_hour.micros, "an hour of the node's price"


def test_of_several_pods_the_longest_counts_and_of_none_nothing() -> None:
    node = machine(pool=pool(minutes(10)))
    pods = [evolve(served(str(at)), warm_up=own) for at, own in enumerate((minutes(2), None, timedelta(0)))]
    assert movable_node(node, pods).warm_up_seconds == 600, "one that says nothing takes what its pool says"
    assert movable_node(node, pods[::2]).warm_up_seconds == 120
    assert movable_node(node, pods[2:]).warm_up_seconds == 0
    assert movable_node(node, ()).warm_up_seconds == 0


def test_a_recorded_moment_keeps_it_and_one_from_before_has_none() -> None:
    [key], one = (pod.key for pod in [served("llm")]), of(served("llm"), pool=pool())
    one.pods[key] = evolve(one.pods[key], warm_up=minutes(90))
    recorded = canonical_json(one.snapshot())
    assert from_json(Snapshot, recorded).pods[0].warm_up == minutes(90)
    before = json.loads(recorded)
    del before["pods"][0]["warm_up"]
    assert from_json(Snapshot, json.dumps(before)).pods[0].warm_up is None
