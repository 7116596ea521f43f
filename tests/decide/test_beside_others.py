"""Pods meet their machines; pauses, lanes, and a Karpenter that still runs."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.decide.fleet import match
from engine.decide.lanes import Lanes as LanesOfPlan
from engine.model.environment import Lanes
from engine.model.ledger import Milestones
from engine.model.plan import BindingDifference, Nomination, Plan, RemovalPhase
from engine.model.policy import Disruption
from engine.model.quantity import NVIDIA_GPU
from engine.model.reason import DisruptionReason
from engine.model.refusal import FoundationBusy, KarpenterOwnsPool, LimitReached, PoolPaused, Refusal
from engine.model.snapshot import KarpenterFacts
from tests.builders import claim, document, environment, minutes, node, node_pool, pod
from tests.decide.world import World, policy

AT_ONCE = Disruption(consolidate_after=minutes(0), budgets=())


def world(pods: int = 1, **more: object) -> World:
    pool = more.pop("pool", node_pool(disruption=AT_ONCE))
    return World(policy(pool), [pod(f"llm-{number}", gpu=1) for number in range(pods)], **more)  # type: ignore[arg-type]


def refusals(plan: Plan) -> list[Refusal]:
    return [each.refusal for told in plan.unplaced for each in told.refusals]


# --- nominations


def up_with_waiting_pods(count: int = 1) -> World:
    """Nodes are there, and the scheduler has bound nobody yet."""
    one = world(pods=count)
    one.apply(one.decide())
    waiting = dict(one.pods)
    one.settle()
    one.pods = waiting
    return one


def test_a_planned_pod_is_nominated_once_its_node_is_there_and_not_again() -> None:
    one = world()
    one.apply(one.decide())
    assert one.decide().nominations == ()
    one = up_with_waiting_pods()
    (key,) = one.pods
    told = one.decide().nominations
    assert told == (Nomination(key, next(iter(one.nodes))),)
    one.pods[key] = evolve(one.pods[key], nominated_node_name=told[0].node)
    assert one.decide().nominations == ()


def test_a_pod_keeps_its_machine_however_often_it_is_asked() -> None:
    one = up_with_waiting_pods(4)
    before = {each.pod: each.claim for each in one.decide().placements}
    assert before == {key: one.ledger.planned[str(key)] for key in one.pods}
    one.pods = {key: one.pods[key] for key in reversed(one.pods)}
    one.pods |= {each.key: each for each in [pod("a-first", gpu=1)]}
    plan = one.decide()
    assert {each.pod: each.claim for each in plan.placements} == before
    assert [launch.pods for launch in plan.launches] == [(pod("a-first").key,)]


def test_what_is_planned_is_remembered_until_the_pod_is_bound_or_gone() -> None:
    one = world(pods=2)
    plan = one.decide()
    claims = {str(key): launch.claim.name for launch in plan.launches for key in launch.pods}
    assert plan.ledger.planned == claims
    one.apply(plan)
    one.finish([pod("llm-0")])
    assert one.decide().ledger.planned == {"default/llm-1": claims["default/llm-1"]}
    one.settle()
    assert one.decide().ledger.planned == {}


def test_a_pod_bound_elsewhere_is_told_once() -> None:
    one = up_with_waiting_pods(2)
    first, second = sorted(one.pods)
    planned = dict(one.ledger.planned)
    where = {each.pod: each.node for each in one.decide().placements}
    one.pods[first] = evolve(one.pods[first], node_name=where[second])
    plan = one.decide()
    assert plan.binding_differences == (BindingDifference(first, planned[str(first)], where[second] or ""),)
    assert plan.launches == (), "the other takes the first one's machine"
    one.apply(plan)
    assert one.decide().binding_differences == ()


def test_a_pod_bound_as_planned_is_no_difference() -> None:
    one = up_with_waiting_pods(3)
    for placed in one.decide().placements:
        one.pods[placed.pod] = evolve(one.pods[placed.pod], node_name=placed.node)
    assert one.decide().binding_differences == ()


def test_a_pod_that_pre_empts_counts_as_placed_where_it_was_nominated() -> None:
    one = world()
    one.rest()
    (victim,) = one.pods.values()
    urgent = evolve(pod("urgent", gpu=1, priority=10), nominated_node_name=victim.node_name)
    one.pods[urgent.key] = urgent
    plan = one.decide()
    assert plan.launches == ()
    assert [(each.pod, each.node) for each in plan.placements] == [(urgent.key, victim.node_name)]
    equal = evolve(urgent, priority=0)
    one.pods[urgent.key] = equal
    assert len(one.decide().launches) == 1, "nobody makes room for it there"


def test_what_one_pod_frees_by_pre_emption_is_promised_to_no_second_one() -> None:
    one = world()
    one.rest()
    (victim,) = one.pods.values()
    first, second = (
        evolve(pod(name, gpu=1, priority=10), nominated_node_name=victim.node_name) for name in ("first", "second")
    )
    one.pods |= {first.key: first, second.key: second}
    plan = one.decide()
    assert [(each.pod, each.node) for each in plan.placements] == [(first.key, victim.node_name)]
    assert [each.pods for each in plan.launches] == [(second.key,)]


# --- pause


def test_a_paused_pool_launches_nothing_removes_nothing_and_says_why() -> None:
    one = world(pods=2)
    one.rest()
    gone, _ = sorted(one.pods.values(), key=lambda each: each.key)
    one.finish([gone])
    one.policy = policy(node_pool(disruption=AT_ONCE, paused="driver roll-back"))
    one.pods |= {each.key: each for each in [pod("big", gpu=4)]}
    plan = one.decide()
    assert (plan.launches, plan.removals) == ((), ())
    assert refusals(plan) == [PoolPaused("driver roll-back")]
    assert {each.reason for each in plan.kept} == {PoolPaused("driver roll-back")}


def test_a_paused_pools_loss_is_recorded_and_not_replaced() -> None:
    one = world()
    one.rest()
    one.policy = policy(node_pool(paused="driver roll-back"))
    one.lose(one.launched_ever[0])
    plan = one.decide()
    assert [each.record.reason for each in plan.removals] == [DisruptionReason.LOST]
    assert plan.launches == ()


def test_a_paused_pool_keeps_its_late_machines_too() -> None:
    one = world(registers=lambda claim: False)
    one.turn()
    one.turn()
    one.policy = policy(node_pool(paused="looking into it"))
    plan = one.decide()
    assert plan.removals == ()
    assert plan.ledger.bring_ups == {}


@pytest.mark.parametrize("cluster_wide", [True, False])
def test_a_paused_environment_shows_its_plan_and_says_why_it_is_not_done(cluster_wide: bool) -> None:
    one = world(stack=environment(paused="" if cluster_wide else "freeze"))
    plan = one.decide(paused="freeze" if cluster_wide else "")
    assert plan.paused == "freeze"
    assert len(plan.launches) == 1


# --- a Karpenter that is live


def test_a_pool_that_a_live_karpenter_has_is_refused_and_left_alone() -> None:
    one = world()
    one.rest()
    one.finish(list(one.pods.values()))
    one.pods |= {each.key: each for each in [pod("big", gpu=4)]}
    facts = KarpenterFacts(is_live=True, node_pools=("gpu", "other"))
    plan = one.decide(karpenter=facts)
    assert (plan.launches, plan.removals) == ((), ())
    assert refusals(plan) == [KarpenterOwnsPool("gpu")]
    assert [each.reason for each in plan.kept] == [KarpenterOwnsPool("gpu")]
    stopped = one.decide(karpenter=evolve(facts, is_live=False))
    assert (len(stopped.launches), len(stopped.removals)) == (1, 1)


def test_a_karpenters_node_is_room_counts_and_is_never_marked() -> None:
    one = world(pods=0, pool=node_pool(disruption=AT_ONCE, limits={NVIDIA_GPU: 1}))
    theirs = node("theirs", instance_id="i-9", labels={"karpenter.sh/nodepool": "gpu"})
    facts = KarpenterFacts(is_live=True, nodes=("theirs",))
    one.pods = {each.key: each for each in [pod("a", gpu=1), pod("b", gpu=1)]}
    plan = one.decide(nodes=(theirs,), karpenter=facts)
    assert [(each.pod.name, each.node) for each in plan.placements] == [("a", "theirs")]
    assert isinstance(refusals(plan)[0], LimitReached)
    assert plan.removals == ()


def test_a_claim_whose_machine_a_karpenter_took_over_stays_and_is_not_offered() -> None:
    one = world()
    one.rest()
    one.finish(list(one.pods.values()))
    facts = KarpenterFacts(is_live=True, nodes=tuple(one.nodes))
    one.now += minutes(60)
    plan = one.decide(karpenter=facts)
    assert plan.removals == ()
    assert [each.reason for each in plan.kept] == [KarpenterOwnsPool("gpu")]


# --- lanes


def test_a_launch_goes_to_the_first_lane_that_is_idle_and_not_full() -> None:
    one = world(pods=5, stack=environment(lanes=Lanes(most=2, claims=2)))
    assert {each.claim.stack for each in one.decide().launches} == {"test"}, "nothing stands yet"
    one.turn()
    one.pods |= {each.key: each for each in [pod(f"more-{number}", gpu=1) for number in range(5)]}

    def stacks(*busy: str) -> list[str]:
        return sorted(each.claim.stack for each in one.decide(busy_stacks=busy).launches)

    assert stacks() == ["test", "test.1", "test.1", "test.2", "test.2"], "the main one when all are full"
    assert stacks("test") == ["test.1", "test.1", "test.1", "test.2", "test.2"]
    assert stacks("test", "test.1") == ["test.2"] * 5
    assert stacks("test", "test.1", "test.2") == ["test"] * 5


def test_a_lane_boots_only_what_stands_for_certain() -> None:
    published = document(claim("gpu-1"), version=3)
    template = "test-gpu-0123456789"
    one = world(pods=1)
    plan = one.decide()
    foundation = plan.document.foundation
    named = evolve(foundation, launch_templates=(evolve(foundation.launch_templates[0], name=template),))
    one.document = evolve(published, foundation=named)

    def lane() -> str:
        seen = one.snapshot(busy_stacks=("test",))
        return LanesOfPlan(match(seen), seen, environment()).take(template)

    assert lane() == "test", "its document is not settled, and nothing ever booted from it"
    one.ledger = evolve(one.ledger, instance_ids={"gpu-1": "i-1"})
    assert lane() == "test.1"
    one.ledger = evolve(one.ledger, instance_ids={}, settled_version=3)
    assert lane() == "test.1"


def test_while_the_main_lane_is_busy_no_template_is_made_and_none_is_cleaned_up() -> None:
    one = world(pods=1)
    one.rest()
    one.policy = policy(*one.policy.node_pools, node_pool("other", labels={"tier": "b"}))
    one.pods |= {each.key: each for each in [pod("other", gpu=1, selector={"tier": "b"})]}
    plan = one.decide(busy_stacks=("test",))
    assert plan.launches == ()
    assert plan.document is one.document
    assert FoundationBusy("test") in refusals(plan)
    assert all(each.planned == 0 for each in plan.limits)
    assert len(one.decide().launches) == 1
    one.finish(list(one.pods.values()))
    marking = one.decide(busy_stacks=("test",))
    assert [each.phase for each in marking.removals] == [RemovalPhase.MARK]
    one.apply(marking)
    plan = one.decide(busy_stacks=("test",))
    assert [each.phase for each in plan.removals] == [RemovalPhase.RELEASE]
    assert plan.document.foundation == (one.document.foundation if one.document else None)
    assert not plan.foundation_changes
    one.apply(plan)
    cleaned = one.decide()
    assert cleaned.document.foundation.launch_templates == ()
    assert cleaned.foundation_changes


def test_base_capacity_that_needs_a_new_template_is_told_as_short() -> None:
    one = world(pods=0, pool=node_pool(min_nodes=2))
    plan = one.decide(busy_stacks=("test",))
    assert plan.launches == ()
    assert [(each.wanted, each.have, each.refusal) for each in plan.base_shortfalls] == [(2, 0, FoundationBusy("test"))]


def test_a_removal_names_the_stack_of_its_claim() -> None:
    one = world(stack=environment(lanes=Lanes(most=1, claims=200)))
    one.turn()
    one.pods |= {each.key: each for each in [pod("more", gpu=1)]}
    one.apply(one.decide(busy_stacks=("test",)))
    one.settle()
    one.finish(list(one.pods.values()))
    one.turn()
    records = [each.record for each in one.turn().removals]
    assert sorted(each.stack for each in records) == ["test", "test.1"]
    assert all(one.ledger.milestones.get(each.claim, Milestones()) == Milestones() for each in records)


def test_a_machine_that_a_claim_and_a_live_karpenter_both_own_counts_once_against_a_limit() -> None:
    one = world(pool=node_pool(disruption=AT_ONCE, limits={"nodes": 3}))
    one.rest()
    (theirs,) = one.nodes
    plan = one.decide(karpenter=KarpenterFacts(is_live=True, nodes=(theirs,)))
    assert [(each.resource, each.used) for each in plan.limits] == [("nodes", 1)]
