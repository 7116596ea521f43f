"""A static pool keeps its replicas while what drifted or was asked for is replaced: new first, and within limits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.plan import LaunchReason, Plan
from engine.model.policy import Budget, NodePool
from engine.model.quantity import NODES, Resources
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement, NoPlace, RolloutWaits
from engine.model.stay import BudgetExhausted, ConsolidationOff
from engine.model.upkeep import Upkeep
from engine.report.pending_words import kept_words
from engine.report.removal_words import delete_first_words
from tests.builders import NOON, requirement
from tests.disruption.going_world import STEADY, GoingWorld, kept, marks, of, releases, served, steady

ALL_AT_ONCE = Upkeep(canaries=0)


def static(replicas: int = 2, *, limit: int | None = None, **more: object) -> NodePool:
    limits = Resources({NODES: limit}) if limit is not None else Resources({})
    fields: dict[str, object] = {"limits": limits, "upkeep": ALL_AT_ONCE, **more}
    return steady("fixed", replicas=replicas, **fields)


def standing(pool: NodePool, *pods: object) -> GoingWorld:
    one = of(*pods, pool=pool).started()  # type: ignore[arg-type]
    assert len(one.running()) == pool.replicas
    return one


def serving(one: GoingWorld) -> int:
    return sum(node.ready and not node.is_marked for node in one.nodes.values())


def replaced(one: GoingWorld, most: int = 20) -> list[Plan]:
    """The plans until nothing is left to do; the pool never serves with fewer nodes than its replicas."""
    plans = []
    for _ in range(most):
        plans.append(one.turn())
        assert serving(one) >= 2, "a replica is missing"
        if plans[-1].is_empty:
            return plans
    raise AssertionError("it comes to no rest")


def test_at_rest_each_node_says_why_it_never_goes_for_standing_empty() -> None:
    plan = standing(static()).decide()
    assert {type(each.reason) for each in plan.kept} == {ConsolidationOff}
    assert "fixed is static: replicas 2" in kept_words(plan.kept[0], NOON)


def test_drifted_nodes_are_replaced_new_first_and_as_many_stand_in_the_end() -> None:
    one = standing(static())
    before = {each.claim for each in one.running()}
    one.new_image()

    first = one.decide()
    assert [launch.reason for launch in first.launches] == [LaunchReason.REPLACEMENT] * 2
    assert {name for launch in first.launches for name in launch.claim.replaces} == before
    assert first.removals == ()
    words = kept_words(kept(first, AwaitsReplacement)[0], one.now)
    assert words.startswith("goes once fixed-")
    assert "(Drifted: image ami-" in words

    plans = replaced(one)
    assert {each.record.claim for plan in plans for each in releases(plan)} == before
    assert {each.record.reason for plan in plans for each in plan.removals} == {DisruptionReason.DRIFTED}
    after = {each.claim for each in one.running()}
    assert (len(after), before & after) == (2, set())


@pytest.mark.parametrize("limit", [3, None])
def test_no_more_nodes_stand_than_the_limit_lets(limit: int | None) -> None:
    one = standing(static(limit=limit))
    one.new_image()
    most = 0
    for _ in range(20):
        plan = one.turn()
        most = max(most, len(one.running()))
        assert limit is None or most <= limit
        if plan.is_empty:
            break
    assert most == (limit or 4)
    assert not [each for each in one.decide().kept if each.pending], "none is left that drifted"


def test_where_the_limit_is_the_replicas_it_goes_first_and_says_why() -> None:
    one = standing(static(limit=2, disruption=evolve(STEADY, budgets=(Budget(nodes=1),))))
    one.new_image()
    [mark] = marks(one.decide())
    assert delete_first_words(mark, one.now).startswith(
        "goes before another takes its place, for which there is no room: fixed: limit nodes 2 reached"
    )
    assert mark.saving is None, "what takes its place is not known yet"
    one.rest()
    assert len(one.running()) == 2
    assert not [each for each in one.decide().kept if each.pending]


def test_where_the_limit_is_the_replicas_and_surge_is_1_it_stays_and_says_why() -> None:
    one = standing(static(limit=2, upkeep=Upkeep(surge=1, canaries=0)))
    one.new_image()
    plan = one.decide()
    assert (plan.launches, plan.removals) == ((), ())
    for each in kept(plan, NoPlace):
        assert "base capacity would be short: fixed: limit nodes 2 reached" in kept_words(each, one.now)
    assert len(kept(plan, NoPlace)) == 2


def test_a_change_is_tried_on_one_node_first_as_in_any_pool() -> None:
    one = standing(static(upkeep=Upkeep(soak=timedelta(hours=9))))
    one.new_image()
    plan = one.decide()
    assert len(plan.launches) == 1
    assert len(kept(plan, RolloutWaits)) == 1


def test_a_budget_holds_it_as_in_any_pool() -> None:
    one = standing(static(disruption=evolve(STEADY, budgets=(Budget(nodes=1),))))
    one.new_image()
    plan = one.decide()
    assert (len(kept(plan, AwaitsReplacement)), len(kept(plan, BudgetExhausted))) == (1, 1)


def test_the_node_that_was_asked_for_is_replaced_and_its_pods_move_and_no_other() -> None:
    with_gpu = [requirement(keys.INSTANCE_TYPE, "In", "g5.xlarge")]
    one = standing(static(requirements=with_gpu), served("llm", gpu=1))
    before = {each.claim for each in one.running()}
    [name] = {pod.node_name for pod in one.pods.values()}
    assert name is not None
    one.nodes[name] = evolve(one.nodes[name], replace_asked=True, replace_asked_at=NOON)

    [launch] = one.decide().launches
    assert launch.reason is LaunchReason.REPLACEMENT
    plans = replaced(one)
    [mark] = [each for plan in plans for each in marks(plan) if each.pods]
    assert mark.record.rule.startswith(f"fixed: replacement of {name} was asked for by annotation")
    assert name not in one.nodes
    assert len(before & {each.claim for each in one.running()}) == 1
    assert one.homeless == []


def test_what_expired_is_replaced_too() -> None:
    one = standing(static(expire_after=timedelta(hours=5)))
    before = {each.claim for each in one.running()}
    one.now = NOON + timedelta(hours=5)
    assert len(one.decide().launches) == 2
    for _ in range(4):
        one.turn()
        assert serving(one) >= 2
    assert not before & {each.claim for each in one.running()}
