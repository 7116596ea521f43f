"""Pods that are on a marked node: asked to leave once each has a place elsewhere, and never before."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from attrs import evolve

from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import Owner, Pod
from engine.model.policy import Budget, ConsolidationPolicy, Disruption
from engine.model.stay import BudgetExhausted, InUse
from tests.builders import ANYTHING, minutes, node_pool, pod
from tests.decide.world import World, policy

SET = Owner("ReplicaSet", "llm")
AFTER_FIVE = Disruption(consolidate_after=minutes(5), budgets=())


def world(disruption: Disruption = AFTER_FIVE, **more: object) -> World:
    """Three machines of one GPU, each with a pod on it; the third pod has just finished, the first node is marked."""
    pods = [pod(f"llm-{number}", gpu=1, owner=SET, **more) for number in range(3)]  # type: ignore[arg-type]
    made = World(policy(node_pool(disruption=disruption)), pods)
    made.turn()
    made.turn()
    made.finish([sorted(made.pods.values(), key=lambda each: each.key)[2]])
    made.mark(first(made).node_name or "")
    return made


def first(made: World) -> Pod:
    return min(made.pods.values(), key=lambda each: each.key)


def changed(made: World, one: Pod) -> None:
    made.pods[one.key] = one


def asked(plan: Plan) -> list[str]:
    """The pods that are asked to leave."""
    return [key.name for removal in plan.removals for key in removal.pods]


def spare(made: World) -> str:
    """The claim of the machine that nothing runs on."""
    held = {each.node_name for each in made.pods.values()}
    return next(one.claim for one in made.running() if f"node-{one.id}" not in held)


def test_a_pod_on_a_marked_node_is_asked_to_leave_for_an_empty_one_which_stays_for_it() -> None:
    one = world()
    plan = one.decide()
    assert asked(plan) == ["llm-0"]
    assert [removal.phase for removal in plan.removals] == [RemovalPhase.MARK]
    assert plan.document.version == one.document.version  # type: ignore[union-attr]
    # The spare machine is no less used than the one that a pod waits for, however long a budget refuses.
    one.ledger = plan.ledger
    one.now += minutes(60)
    later = one.decide()
    assert asked(later) == ["llm-0"]
    assert [kept.reason for kept in later.kept if kept.claim == spare(one)] == [InUse(pods=0, planned=1)]


def test_a_node_that_waits_for_a_pod_to_leave_is_the_same_plan_at_each_pass() -> None:
    one = world()
    # The second pass takes up the clocks that the first began.
    plans = []
    for _ in range(3):
        plans.append(one.decide())
        one.ledger = plans[-1].ledger
        one.now += minutes(1)
    assert [asked(plan) for plan in plans] == [["llm-0"]] * 3
    assert plans[1].removals != plans[2].removals, "the time of the cause is another"
    assert plans[1].hash == plans[2].hash


def test_another_pod_that_is_asked_to_leave_is_another_plan() -> None:
    one, other = world(), world()
    changed(other, evolve(first(other), key=evolve(first(other).key, name="llm-00")))
    del other.pods[first(one).key]
    assert asked(other.decide()) == ["llm-00"]
    assert one.decide().hash != other.decide().hash


def test_once_it_has_left_the_marked_machine_goes_and_nothing_is_bought() -> None:
    one = world()
    one.turn(minutes(0))
    changed(one, evolve(first(one), node_name=None, phase=pod().phase))
    # The clock of the machine that it left starts now.
    one.turn()
    one.rest()
    assert len(one.running()) == 2
    assert len(one.launched_ever) == 3


@pytest.mark.parametrize(
    "kept",
    [
        {"owner": None},
        {"do_not_disrupt": True},
        {"placing": evolve(pod(gpu=1).placing, tolerations=(ANYTHING,))},
        {"placing": evolve(pod(gpu=1).placing, node_selector={"disk": "there"})},
        {"placing": pod(gpu=2).placing},
        {"deleting": True},
    ],
    ids=["made by nobody", "guarded", "bears the mark", "wants what only this has", "fits nowhere", "goes already"],
)
def test_a_pod_without_another_place_or_that_nobody_may_move_stays(kept: dict[str, object]) -> None:
    one = world()
    changed(one, evolve(first(one), **kept))  # type: ignore[arg-type]
    assert asked(one.decide()) == []


def test_nobody_is_moved_to_where_a_waiting_pod_goes() -> None:
    one = world()
    one.pods |= {each.key: each for each in [pod("new", gpu=1, owner=SET)]}
    plan = one.decide()
    assert asked(plan) == []
    assert plan.launches == ()


def test_a_machine_is_emptied_whole_or_not_at_all() -> None:
    one = world()
    extra = pod("more", gpu=1, owner=SET, node=first(one).node_name)
    one.pods[extra.key] = extra
    assert asked(one.decide()) == []


@pytest.mark.parametrize(
    "disruption",
    [
        evolve(AFTER_FIVE, budgets=(Budget(nodes=0),)),
        evolve(AFTER_FIVE, consolidation_policy=ConsolidationPolicy.NEVER),
        evolve(AFTER_FIVE, consolidate_after=None),
    ],
    ids=["a budget of none", "policy Never", "consolidateAfter Never"],
)
def test_nobody_is_moved_where_the_pool_lets_no_node_go(disruption: Disruption) -> None:
    one = world()
    one.policy = policy(node_pool(disruption=disruption))
    plan = one.decide()
    assert plan.removals == ()
    if disruption.budgets:
        assert BudgetExhausted in {type(kept.reason) for kept in plan.kept}


def test_only_a_node_that_is_up_is_a_place() -> None:
    one = world()
    nodes: Iterable[str] = [name for name, node in one.nodes.items() if not node.is_marked]
    for name in nodes:
        one.nodes[name] = evolve(one.nodes[name], ready=False)
    assert asked(one.decide()) == []
