"""What a pool says that a node costs besides its price: it chooses between many small nodes and few large ones."""

from __future__ import annotations

from collections import Counter

from engine.model import labels as keys
from engine.model.money import FREE
from engine.model.plan import Plan
from tests.builders import catalog, instance_type, node_pool, pod, usd
from tests.decide.world import World, policy

SMALL = instance_type("m5.small", vcpus=2, memory_gib=8)
LARGE = instance_type("m5.large", vcpus=16, memory_gib=64)
PRICES = {SMALL.name: "0.10", LARGE.name: "0.85"}


def _plan(node_cost: str) -> Plan:
    sold = catalog([SMALL, LARGE], capacity_types=[keys.ON_DEMAND], prices=PRICES)
    pods = [pod(f"pod-{index:02}", cpu="1500m") for index in range(8)]
    pool = node_pool(node_cost=usd(node_cost) if node_cost else FREE)
    return World(policy(pool), pods, sold=sold).decide()


def _types(plan: Plan) -> Counter[str]:
    return Counter(launch.claim.inputs.instance_type for launch in plan.launches)


def test_a_node_cost_moves_a_plan_from_many_small_nodes_to_one_large_one() -> None:
    assert _types(_plan("")) == {SMALL.name: 8}
    assert _types(_plan("0.02")) == {LARGE.name: 1}


def test_a_node_cost_too_small_to_matter_moves_nothing() -> None:
    # Eight small nodes and their cost are then still the cheaper: 0.80 + 0.04 against 0.85 + 0.005.
    assert _types(_plan("0.005")) == {SMALL.name: 8}


def test_a_node_cost_is_on_no_bill() -> None:
    [launch] = _plan("0.02").launches
    assert launch.claim.usd_per_hour == usd("0.85")
