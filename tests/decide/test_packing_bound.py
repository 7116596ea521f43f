"""A plan says what its launches cost and what they cost at the least."""

from __future__ import annotations

from attrs import evolve

from engine.decide.plan_hash import sealed
from engine.model import labels as keys
from engine.model.environment import Caps
from engine.model.money import FREE, UsdPerHour, total
from engine.model.packing_bound import PackingBound
from engine.model.plan import Plan
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    M5_LARGE,
    catalog,
    environment,
    node_pool,
    pod,
    taint,
    usd,
)
from tests.decide.world import World, policy

SOLD = catalog([G5_XLARGE, G5_2XLARGE, G5_12XLARGE, M5_LARGE], capacity_types=[keys.ON_DEMAND])


def _plan(count: int, *, node_cost: UsdPerHour = FREE, caps: Caps | None = None, gpus: int = 0) -> Plan:
    pods = [pod(f"cpu-{index:02}", cpu="700m") for index in range(count)]
    pods += [pod(f"gpu-{index:02}", gpu=1) for index in range(gpus)]
    stack = environment(caps=caps) if caps is not None else environment()
    return World(policy(node_pool(node_cost=node_cost)), pods, sold=SOLD, stack=stack).decide()


def _paid(plan: Plan) -> UsdPerHour:
    return total(launch.claim.usd_per_hour for launch in plan.launches)


def test_the_bound_is_no_more_than_the_cost_and_near_it() -> None:
    plan = _plan(8)
    assert plan.packing is not None
    assert plan.packing.cost == _paid(plan)
    assert plan.packing.gap is not None
    assert 0 <= plan.packing.gap < 0.001, "four full nodes of two pods: there is no cheaper way"


def test_the_bounds_of_pods_that_share_no_node_add_up() -> None:
    plan = _plan(16, gpus=3)
    assert plan.packing is not None
    assert plan.packing.cost == usd("3.2")
    assert plan.packing.lower_bound.micros > 3_100_000, (
        "three GPUs at a dollar each; what has no room beside them at a tenth for two"
    )


def test_what_a_node_costs_besides_is_part_of_both() -> None:
    plan = _plan(9, node_cost=usd("0.02"))
    assert plan.packing is not None
    assert plan.packing.cost == UsdPerHour(_paid(plan).micros + 20_000 * len(plan.launches))
    assert plan.packing.lower_bound > _paid(plan)


def test_where_a_cap_leaves_pods_out_the_bound_is_of_the_others() -> None:
    plan = _plan(9, caps=Caps(launches=2))
    assert len(plan.launches) == 2
    assert plan.packing is not None
    assert usd("0.199") < plan.packing.lower_bound <= plan.packing.cost == usd("0.2")


def test_a_plan_that_launches_nothing_for_a_pod_has_no_bound() -> None:
    assert _plan(0).packing is None
    kept = World(policy(node_pool(min_nodes=1)), (), sold=SOLD).decide()
    assert (len(kept.launches), kept.packing) == (1, None)


def test_base_capacity_that_no_pod_asked_for_is_apart() -> None:
    pods = [pod(f"gpu-{index}", gpu=1) for index in range(2)]
    base = node_pool("base", min_nodes=1, taints=[taint("base")])
    plan = World(policy(node_pool(), base), pods, sold=SOLD).decide()
    assert plan.packing is not None
    assert (plan.packing.cost, plan.packing.apart) == (_paid(plan), _paid(plan) - usd("2"))
    assert plan.packing.apart > FREE
    assert plan.packing.gap is not None
    assert plan.packing.gap < 0.001


def test_the_bound_is_nothing_that_a_plan_does_so_its_hash_knows_nothing_of_it() -> None:
    plan = _plan(2)
    other = evolve(plan, packing=PackingBound(usd("5"), usd("4")), hash="")
    assert sealed(other, None).hash == sealed(evolve(plan, hash=""), None).hash
