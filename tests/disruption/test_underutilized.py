"""Nodes with pods leave for money, as their pools' policies let them, and then nothing moves any more."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import timedelta

import pytest
from attrs import evolve

from engine.disruption.machine import Machine
from engine.disruption.underutilized import underutilized
from engine.model import labels as keys
from engine.model.policy import Budget, ConsolidationPolicy, Disruption, NodePool
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement, NotQuiet
from engine.model.upkeep import Upkeep
from engine.scheduling.movable import MoveCost
from engine.scheduling.repacking import Move, Repacking
from tests.builders import NOON, claim, minutes, node, node_pool, requirement, taint, usd
from tests.disruption.going_world import GoingWorld, kept, marks, of, served

AT_ONCE = Disruption(consolidate_after=timedelta(0), budgets=())


def pool(**more: object) -> NodePool:
    fields: dict[str, object] = {
        "disruption": AT_ONCE,
        "requirements": [requirement(keys.CAPACITY_TYPE, "In", "on-demand")],
        **more,
    }
    return node_pool("gpu", **fields)  # type: ignore[arg-type]


def half_used(**more: object) -> GoingWorld:
    """Two machines of four GPUs with one pod each, once the others have ended."""
    pods = [served(f"llm-{number}", gpu=1, cpu="10") for number in range(8)]
    one = of(*pods, pool=pool(**more)).started()
    assert one.types() == ["g5.12xlarge", "g5.12xlarge"]
    by_node: dict[str | None, list[object]] = {}
    for each in one.pods.values():
        by_node.setdefault(each.node_name, []).append(each)
    for held in by_node.values():
        one.finish(held[1:])  # type: ignore[arg-type]
    return one


def settled(one: GoingWorld, most: int = 30) -> None:
    for _ in range(most):
        if one.turn().is_empty:
            return
    raise AssertionError("it comes to no rest")


def test_two_half_used_nodes_become_one_or_cheaper_ones_and_nobody_is_without_a_place() -> None:
    one = half_used()
    settled(one)
    price = sum(claim.usd_per_hour.micros for claim in one.document.claims)  # type: ignore[union-attr]
    assert price < 2 * 5_700_000
    assert one.homeless == []
    assert all(one.turn(minutes(60)).is_empty for _ in range(5)), "it oscillates"


@pytest.mark.parametrize(
    "disruption",
    [
        evolve(AT_ONCE, consolidation_policy=ConsolidationPolicy.WHEN_EMPTY),
        evolve(AT_ONCE, consolidate_after=None),
        evolve(AT_ONCE, budgets=(Budget(nodes=0, reasons=(DisruptionReason.UNDERUTILIZED,)),)),
    ],
    ids=["WhenEmpty", "Never", "a budget of none"],
)
def test_nobody_moves_where_the_policy_lets_nobody_move(disruption: Disruption) -> None:
    one = half_used(disruption=disruption)
    for _ in range(4):
        plan = one.turn()
        assert (plan.launches, plan.removals) == ((), ())


def test_a_node_waits_until_no_pod_has_come_or_gone_for_a_while() -> None:
    one = half_used(disruption=evolve(AT_ONCE, consolidate_after=minutes(30)))
    plan = one.turn()
    assert plan.removals == ()
    assert {type(each.reason) for each in plan.kept} == {NotQuiet}
    for _ in range(2):
        assert one.turn().is_empty
    settled(one)
    assert one.types() != ["g5.12xlarge", "g5.12xlarge"]


def test_a_replacement_for_money_is_up_before_anybody_moves() -> None:
    one = of(served("big", gpu=3), pool=pool()).started()
    one.pods |= {each.key: each for each in (served("small", gpu=1),)}
    one.turn()
    one.finish([served("big")])
    plan = one.turn()
    assert [launch.claim.inputs.instance_type for launch in plan.launches] == ["g5.xlarge"]
    assert kept(plan, AwaitsReplacement)
    assert marks(plan) == []
    # What the new node costs is in the saving of the removal, so its rule names no other number.
    plan = one.turn()
    [going] = plan.removals
    assert going.record.rule == "gpu: its pods fit elsewhere"
    assert going.saving is not None
    assert going.saving < going.record.usd_per_hour
    settled(one)
    assert one.types() == ["g5.xlarge"]
    assert one.homeless == []


def test_a_saving_below_the_pools_least_moves_nobody() -> None:
    one = half_used(upkeep=Upkeep(least_share=Upkeep().least_share * 20))
    assert one.turn().removals == ()
    assert one.decide().is_empty


def test_no_more_nodes_go_for_money_at_once_than_the_budget_lets() -> None:
    budget = evolve(AT_ONCE, budgets=(Budget(nodes=1),))
    pods = [served(f"llm-{number}", gpu=1, cpu="10") for number in range(16)]
    one = of(*pods, pool=pool(disruption=budget)).started()
    by_node: dict[str | None, list[object]] = {}
    for each in one.pods.values():
        by_node.setdefault(each.node_name, []).append(each)
    for held in by_node.values():
        one.finish(held[1:])  # type: ignore[arg-type]
    for _ in range(40):
        plan = one.turn()
        assert sum(node.is_marked for node in one.nodes.values()) + len(kept(plan, AwaitsReplacement)) <= 1
        if plan.is_empty:
            break
    assert sum(claim.usd_per_hour.micros for claim in one.document.claims) < 4 * 5_700_000  # type: ignore[union-attr]
    assert one.homeless == []


def test_who_came_to_take_a_place_waits_for_its_pods_even_if_others_came_first() -> None:
    old = Machine(claim(name="old"), pool(), None, is_initialized=True, workload=1, initialized_at=NOON)
    new = evolve(old, claim=evolve(claim(name="new"), replaces=("old",)))
    asked: list[list[str]] = []

    def repack(movable: Sequence[Machine], cost: MoveCost, closed: Set[str]) -> Repacking:
        asked.append([each.name for each in movable])
        return Repacking()

    for every, later in (([old, new], 4), ([new], 4), ([old, new], 5)):
        found = underutilized(every, (), every, frozenset(), NOON + minutes(later), repack)
        assert ("new" in found.stays) == (later < 5 and old in every)
    assert asked == [["old"], ["new"], ["old", "new"]]


def test_nobody_else_leaves_while_a_machine_opens_for_the_pods_of_another() -> None:
    old = Machine(claim(name="old"), pool(), node("old"), is_initialized=True, workload=1, initialized_at=NOON)
    new = evolve(old, claim=evolve(claim(name="new"), replaces=("old",)), node=node("new"), initialized_at=None)
    other = evolve(old, claim=claim(name="other"), node=node("other"))
    marked = evolve(old, node=evolve(node("old"), unschedulable=True, taints=(taint("karpenter.sh/disrupted"),)))
    found = Repacking((Move(("other",), (), (), usd("1")),))

    def goes(*every: Machine, after: float = 0) -> bool:
        told = underutilized([other], (), [other, *every], frozenset(), NOON + minutes(after), lambda *asked: found)
        assert ("other" in told.stays) != any(each.machine is other for each in told.candidates)
        return "other" not in told.stays

    up = evolve(new, initialized_at=NOON)
    assert not goes(old, new)
    assert not goes(old, up, after=4)
    assert goes(old, up, after=5)
    assert goes(old, evolve(new, node=None))
    assert goes(marked, up)
