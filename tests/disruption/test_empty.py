"""Empty nodes: which may go, in what order, and what keeps the others."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from attrs import evolve

from engine.disruption.budgets import PoolStanding
from engine.disruption.candidates import Choice, choose
from engine.disruption.machine import Machine
from engine.disruption.reasons import reasons
from engine.model import labels as keys
from engine.model.document import BudgetUse
from engine.model.plan import RemovalPhase
from engine.model.pod import PodKey
from engine.model.policy import Budget, ConsolidationPolicy, Disruption, NodePool
from engine.model.stay import (
    BaseCapacity,
    BelowConsolidateAfter,
    BudgetExhausted,
    ConsolidationOff,
    DoNotDisrupt,
    InUse,
    NotInitialized,
    RemovalCap,
    StayReason,
)
from tests.builders import NOON, claim, minutes, node, node_pool, taint

FIVE_MINUTES = Disruption(consolidate_after=minutes(5), budgets=())
POOL = node_pool(disruption=FIVE_MINUTES)
DAEMON = PodKey("kube-system", "agent-x1")
POD = PodKey("default", "llm")


def machine(name: str = "gpu-1", pool: NodePool = POOL, *, empty_for: float | None = 10, **more: object) -> Machine:
    price = more.pop("price", "1.0")
    fields: dict[str, object] = {
        "node": node(f"node-{name}"),
        "is_initialized": True,
        "empty_since": NOON - minutes(empty_for) if empty_for is not None else None,
        **more,
    }
    return Machine(claim=claim(name, pool=pool, price=str(price)), pool=pool, **fields)  # type: ignore[arg-type]


def marked(one: Machine) -> Machine:
    assert one.node is not None
    return evolve(one, node=evolve(one.node, unschedulable=True, taints=(taint(keys.DISRUPTED_TAINT),)))


def chosen(machines: Iterable[Machine], *, cap: int = 10, released: int = 0, now: datetime = NOON) -> Choice:
    everyone = tuple(machines)
    standings = {}
    for pool in {each.pool.name: each.pool for each in everyone}.values():
        members = [each for each in everyone if each.pool.name == pool.name]
        serving = sum(each.serves for each in members)
        standings[pool.name] = PoolStanding(pool, len(members), len(members) - serving, serving)
    found = reasons(everyone, now, {})
    choice = choose(found.candidates, standings, cap=cap, released=released, now=now)
    return Choice(removals=choice.removals, stays={**found.stays, **choice.stays})


def going(choice: Choice) -> list[str]:
    return [removal.record.claim for removal in choice.removals]


def reason_to_stay(one: Machine) -> StayReason:
    return chosen([one]).stays[one.claim.name]


def test_a_node_that_stands_empty_for_consolidate_after_is_marked() -> None:
    removals = chosen([machine(empty_for=5)]).removals
    assert [removal.phase for removal in removals] == [RemovalPhase.MARK]
    record = removals[0].record
    assert record.rule == "gpu: consolidateAfter 5m"
    assert record.since == NOON - minutes(5)
    assert record.node == "node-gpu-1"


def test_a_marked_empty_node_is_released() -> None:
    assert [removal.phase for removal in chosen([marked(machine())]).removals] == [RemovalPhase.RELEASE]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (machine(workload=1), InUse(pods=1, planned=0)),
        (marked(machine(workload=1)), InUse(pods=1, planned=0)),
        (machine(planned=2), InUse(pods=0, planned=2)),
        (machine(is_initialized=False), NotInitialized()),
        (machine(node=None, is_initialized=False), NotInitialized()),
        (machine(node=node(do_not_disrupt=True)), DoNotDisrupt()),
        (machine(guarded_by=DAEMON), DoNotDisrupt(pod="kube-system/agent-x1")),
        (machine(empty_for=4), BelowConsolidateAfter(empty_since=NOON - minutes(4), until=NOON + minutes(1))),
        (machine(empty_for=None), BelowConsolidateAfter(empty_since=NOON, until=NOON + minutes(5))),
        (
            machine(pool=node_pool(disruption=Disruption(consolidation_policy=ConsolidationPolicy.NEVER))),
            ConsolidationOff(why="consolidationPolicy Never"),
        ),
        (
            machine(pool=node_pool(disruption=Disruption(consolidate_after=None))),
            ConsolidationOff(why="consolidateAfter Never"),
        ),
        (
            machine(pool=node_pool(disruption=FIVE_MINUTES, replicas=1)),
            ConsolidationOff(why="gpu is static: replicas 1"),
        ),
        (machine(pool=node_pool(disruption=FIVE_MINUTES, min_nodes=1)), BaseCapacity(nodes=1)),
    ],
)
def test_what_keeps_a_node(one: Machine, expected: StayReason) -> None:
    choice = chosen([one])
    assert choice.stays == {"gpu-1": expected}
    assert choice.removals == ()


def test_consolidate_after_zero_lets_a_node_go_when_it_is_first_seen_empty() -> None:
    pool = node_pool(disruption=Disruption(consolidate_after=timedelta(0), budgets=()))
    assert going(chosen([machine(pool=pool, empty_for=None)])) == ["gpu-1"]
    assert reason_to_stay(machine(pool=pool, empty_for=None, is_initialized=False)) == NotInitialized()


def test_base_capacity_is_kept_and_no_more() -> None:
    pool = node_pool(disruption=FIVE_MINUTES, min_nodes=2)
    choice = chosen(machine(f"gpu-{number}", pool) for number in range(5))
    assert going(choice) == ["gpu-0", "gpu-1", "gpu-2"]
    assert choice.stays == {"gpu-3": BaseCapacity(nodes=2), "gpu-4": BaseCapacity(nodes=2)}


def test_longest_empty_goes_first_then_the_dearest_then_by_name() -> None:
    pool = node_pool(disruption=evolve(FIVE_MINUTES, budgets=(Budget(nodes=3),)))
    machines = [
        machine("gpu-d", pool, empty_for=10),
        machine("gpu-c", pool, empty_for=10),
        machine("gpu-b", pool, empty_for=10, price="2"),
        machine("gpu-a", pool, empty_for=30),
    ]
    choice = chosen(machines)
    assert going(choice) == ["gpu-a", "gpu-b", "gpu-c"]
    assert choice.removals[-1].record.budget == BudgetUse(budget="3 nodes", base=4, allowed=3, used=3)
    assert choice.stays["gpu-d"] == BudgetExhausted(budget="3 nodes", allowed=3, used=3)
    assert going(chosen(reversed(machines))) == going(choice)


def test_nodes_that_are_out_already_count_against_the_budget() -> None:
    pool = node_pool(disruption=evolve(FIVE_MINUTES, budgets=(Budget(nodes=2),)))
    machines = [
        machine("gpu-1", pool),
        machine("gpu-2", pool),
        machine("gpu-3", pool, is_initialized=False),
        marked(machine("gpu-4", pool, workload=1)),
    ]
    assert going(chosen(machines)) == []
    assert chosen(machines).stays["gpu-1"] == BudgetExhausted(budget="2 nodes", allowed=2, used=2)


def test_a_marked_node_is_counted_once_and_goes_before_new_ones() -> None:
    pool = node_pool(disruption=evolve(FIVE_MINUTES, budgets=(Budget(nodes=1),)))
    choice = chosen([machine("gpu-1", pool, empty_for=99), marked(machine("gpu-2", pool))])
    assert going(choice) == ["gpu-2"]
    assert choice.removals[0].record.budget == BudgetUse(budget="1 node", base=2, allowed=1, used=1)


def test_a_budget_that_shut_meanwhile_holds_a_marked_node() -> None:
    pool = node_pool(disruption=evolve(FIVE_MINUTES, budgets=(Budget(nodes=0),)))
    choice = chosen([marked(machine(pool=pool))])
    assert choice.stays == {"gpu-1": BudgetExhausted(budget="0 nodes", allowed=0, used=0)}


def test_one_pass_marks_and_releases_no_more_than_the_cap() -> None:
    fresh = [machine(f"gpu-{number}") for number in range(3)]
    drained = [marked(machine(f"old-{number}")) for number in range(3)]
    choice = chosen([*fresh, *drained], cap=2, released=1)
    assert going(choice) == ["old-0", "gpu-0", "gpu-1"]
    assert choice.stays["gpu-2"] == RemovalCap(cap=2)
    assert choice.stays["old-1"] == RemovalCap(cap=2)


def test_pools_do_not_share_budgets() -> None:
    tight = node_pool("tight", disruption=evolve(FIVE_MINUTES, budgets=(Budget(nodes=0),)))
    choice = chosen([machine("tight-1", tight), machine("gpu-1")])
    assert going(choice) == ["gpu-1"]
