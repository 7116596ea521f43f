"""What is remembered of the pass before is forgotten with whatever it follows from, and changes no plan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.decide import fleet, remembered
from engine.decide.fleet import match
from engine.decide.question import see
from engine.decide.remembered import answers, drift_now
from engine.model import labels as keys
from engine.model.ledger import FailedBringUps, Milestones, Unavailable
from engine.model.pod import Pod
from engine.model.policy import Budget, ConsolidationPolicy, Disruption, NodePool
from engine.model.quantity import NODES, Resources
from engine.model.reservation import CapacityReservation
from engine.model.snapshot import KarpenterFacts, ObjectProblem, Snapshot
from engine.model.upkeep import Upkeep
from engine.model.workload import Namespace, ObjectKey, PersistentVolumeClaim, PodDisruptionBudget, Workload
from engine.policy.facts.values import pod_facts
from tests.builders import NOON, minutes, node_pool, requirement
from tests.decide.world import IMAGES, policy
from tests.disruption.going_world import GoingWorld, of, served

MEMORIES: tuple[dict[str, Any], ...] = (remembered._LAST, remembered._DRIFTS, fleet._LAST)

Change = Callable[[Snapshot], Snapshot]
LATER = NOON + minutes(80)


def standing() -> GoingWorld:
    """Two machines with a pod each; an offering that is out, and a pool that failed, until some time."""
    one = of(served("a", gpu=1), served("b", gpu=4)).started()
    one.ledger = evolve(
        one.ledger,
        unavailable={"g5.xlarge/us-east-1a/spot": Unavailable(LATER, 9, "InsufficientInstanceCapacity")},
        bring_ups={"gpu": FailedBringUps(9, LATER)},
    )
    return one


def known_after(change: Change) -> bool:
    """Whether an answer is still given once the world is changed so."""
    one = standing()
    remembered._LAST.clear()
    before = one.snapshot()
    seen = (see(each, one.policy, one.catalog, one.environment) for each in (before, change(before)))
    told = [answers(each).to("question", lambda number=number: number) for number, each in enumerate(seen)]  # type: ignore[misc]
    return told == [0, 0]


def with_pod(**more: Any) -> Change:
    return lambda snapshot: evolve(snapshot, pods=(evolve(snapshot.pods[0], **more), *snapshot.pods[1:]))


def with_node(**more: Any) -> Change:
    return lambda snapshot: evolve(snapshot, nodes=(evolve(snapshot.nodes[0], **more), *snapshot.nodes[1:]))


def with_cloud(**more: Any) -> Change:
    return lambda snapshot: evolve(snapshot, cloud=evolve(snapshot.cloud, **more))


def with_ledger(**more: Any) -> Change:
    return lambda snapshot: evolve(snapshot, ledger=evolve(snapshot.ledger, **more))


def with_workload(**more: Any) -> Change:
    return lambda snapshot: evolve(snapshot, workload=Workload(**more))


def at(later: timedelta) -> Change:
    return lambda snapshot: evolve(snapshot, taken_at=snapshot.taken_at + later)


def placing_other(snapshot: Snapshot) -> Snapshot:
    one = snapshot.pods[0]
    return with_pod(placing=evolve(one.placing, requests=one.placing.requests + Resources.parse({"cpu": "1"})))(
        snapshot
    )


RESERVATION = CapacityReservation("cr-1", "g5.xlarge", "us-east-1a", total=1, available=1)
BUDGET = PodDisruptionBudget(ObjectKey("default", "llm"), disruptions_allowed=1, is_observed=True)
CLAIM = PersistentVolumeClaim(ObjectKey("default", "data"))


@pytest.mark.parametrize(
    "change",
    [
        placing_other,
        with_pod(deleting=True),
        with_pod(labels={"app": "other"}),
        with_pod(priority=7),
        with_pod(node_name=None),
        with_pod(created_at=NOON + minutes(1)),
        lambda snapshot: evolve(snapshot, pods=snapshot.pods[1:]),
        lambda snapshot: evolve(snapshot, pods=snapshot.pods[::-1]),
        with_node(labels={}),
        with_node(ready=False),
        with_node(unschedulable=True),
        with_node(allocatable=Resources.parse({"cpu": "1"})),
        lambda snapshot: evolve(snapshot, nodes=snapshot.nodes[1:]),
        with_cloud(instances=()),
        with_cloud(images={}),
        with_cloud(reservations=(RESERVATION,)),
        with_ledger(planned={"default/c": "gpu-1"}),
        with_ledger(unavailable={}),
        with_ledger(label_doubts={"gpu g5.xlarge nvidia.com/gpu.count": LATER}),
        with_ledger(settled_version=0),
        with_workload(namespaces=(Namespace("default", {"team": "one"}),)),
        with_workload(volume_claims=(CLAIM,)),
        lambda snapshot: evolve(snapshot, document=None),
        lambda snapshot: evolve(snapshot, karpenter=KarpenterFacts(is_live=True, node_pools=("gpu",))),
        lambda snapshot: evolve(snapshot, busy_stacks=("test",)),
        at(timedelta(hours=2)),
    ],
)
def test_what_bears_on_places_makes_every_answer_be_asked_for_anew(change: Change) -> None:
    assert not known_after(change)


@pytest.mark.parametrize(
    "change",
    [
        at(minutes(1)),
        with_pod(started_at=NOON, ready_at=NOON, images=("model:v2",), uid="0", grace=minutes(1)),
        with_cloud(clock_ahead=minutes(2)),
        with_workload(disruption_budgets=(BUDGET,)),
        with_ledger(empty_since={"gpu-1": NOON}, moved={}, counted_since=NOON),
        lambda snapshot: evolve(snapshot, problems=(ObjectProblem("Pod", "default", "c", "it is odd"),)),
    ],
)
def test_what_bears_on_no_place_leaves_answers_as_they_are(change: Change) -> None:
    assert known_after(change)


def test_another_policy_catalog_or_environment_is_another_world() -> None:
    one = standing()
    snapshot = one.snapshot()

    def told(number: int) -> int:
        return answers(see(snapshot, one.policy, one.catalog, one.environment)).to("question", lambda: number)

    remembered._LAST.clear()
    assert [told(0), told(1)] == [0, 0]
    one.policy = evolve(one.policy, digest="another")
    assert told(2) == 2
    one.catalog = evolve(one.catalog)
    assert told(3) == 3
    one.environment = evolve(one.environment, vm_memory_overhead_percent=one.environment.vm_memory_overhead_percent + 1)
    assert [told(4), told(5)] == [4, 4]


def test_a_machine_that_came_up_is_another_world() -> None:
    one = standing()
    never_up = with_ledger(milestones={name: Milestones() for name in one.ledger.milestones})
    assert not known_after(lambda snapshot: with_node(ready=False)(never_up(snapshot)))


def test_questions_are_told_apart_and_what_nobody_asks_for_any_more_is_forgotten() -> None:
    one = standing()

    def book(passing: timedelta) -> remembered.Answers:
        one.now += passing
        return answers(see(one.snapshot(), one.policy, one.catalog, one.environment))

    remembered._LAST.clear()
    first = book(minutes(0))
    assert [first.to("one", lambda: 1), first.to("other", lambda: 2), first.to("one", lambda: 3)] == [1, 2, 1]
    second = book(minutes(1))
    assert second.to("one", lambda: 4) == 1
    assert book(minutes(1)).to("other", lambda: 5) == 5


def test_no_rule_reads_of_a_pod_what_is_no_matter_to_what_is_remembered() -> None:
    one = served("a")
    other = evolve(one, started_at=NOON, ready_at=NOON, images=("model:v2",), uid="0", grace=minutes(1), ends_by=NOON)
    assert pod_facts(one, NOON) == pod_facts(other, NOON)


@pytest.mark.parametrize(
    "change",
    [
        with_pod(node_name=None),
        with_node(provider_id="aws:///us-east-1a/i-other"),
        with_cloud(instances=()),
        with_cloud(absent_claims=("gpu-1",)),
        with_ledger(instance_ids={}),
        with_ledger(settled_version=0),
        lambda snapshot: evolve(snapshot, document=None),
        lambda snapshot: evolve(
            snapshot, karpenter=KarpenterFacts(is_live=True, nodes=tuple(each.name for each in snapshot.nodes))
        ),
    ],
)
def test_what_a_fleet_follows_from_makes_it_be_put_together_anew(change: Change) -> None:
    before = standing().snapshot()
    kept = match(before)
    assert match(at(minutes(1))(before)) is kept
    assert match(change(before)) is not kept


def test_claims_are_compared_anew_once_anything_changes_that_their_drift_follows_from() -> None:
    one = standing()
    [pool] = one.policy.node_pools
    one.pods.clear()

    def changes() -> list[tuple[str, ...]]:
        found = drift_now(one.policy, one.catalog, one.environment, one.snapshot())
        claims = one.document.claims if one.document is not None else ()
        return [tuple(each.what for each in found.changes(claim, pool)) for claim in claims]

    assert changes() == [(), ()]
    one.new_image()
    assert changes() == [("image",), ("image",)]
    assert changes() == [("image",), ("image",)]
    one.images = IMAGES
    [node_class] = one.policy.node_classes
    one.policy = evolve(one.policy, node_classes=(evolve(node_class, detailed_monitoring=True),))
    assert changes() == [("detailed monitoring",), ("detailed monitoring",)]
    pool = evolve(pool, labels={"stage": "two"})
    assert changes() == [("label stage", "detailed monitoring"), ("label stage", "detailed monitoring")]


@st.composite
def pools(draw: st.DrawFn) -> NodePool:
    limits = draw(st.sampled_from([{}, {NODES: 3}]))
    return node_pool(
        requirements=[requirement(keys.CAPACITY_TYPE, "In", "on-demand")],
        limits=limits,
        disruption=Disruption(
            consolidation_policy=draw(st.sampled_from(ConsolidationPolicy)),
            consolidate_after=draw(st.sampled_from([minutes(0), minutes(15)])),
            budgets=draw(st.sampled_from([(), (Budget(nodes=1),), (Budget(nodes=0),)])),
        ),
        upkeep=Upkeep(surge=draw(st.sampled_from([None, 0])), canaries=draw(st.sampled_from([0, 1]))),
    )


def a_pod(random: Random, number: int) -> Pod:
    return served(f"p{number}", gpu=random.choice([1, 1, 2, 3]), cpu=random.choice(["1", "10"]))


def happen(one: GoingWorld, random: Random, number: int) -> None:
    """One thing, or nothing; a pod that is ready anew bears on nothing."""
    keys_of_pods = sorted(one.pods)
    some = one.pods[random.choice(keys_of_pods)] if keys_of_pods else None
    match random.choice(["nothing", "nothing", "ready", "finish", "come", "image", "time", "doubt"]):
        case "ready" if some is not None:
            one.pods[some.key] = evolve(some, started_at=NOON, ready_at=one.now)
        case "finish" if some is not None:
            one.finish([some])
        case "come":
            pod = a_pod(random, 10 + number)
            one.pods[pod.key] = pod
        case "image":
            one.new_image()
        case "time":
            one.now += minutes(random.choice([20, 60 * 24]))
        case "doubt":
            until = one.now + minutes(25)
            out = Unavailable(until, 1, "InsufficientInstanceCapacity")
            one.ledger = evolve(one.ledger, unavailable={"g5.xlarge/us-east-1a/on-demand": out})
        case _:
            one.now += timedelta(seconds=10)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools(), st.integers(0, 10_000))
def test_a_plan_is_the_same_whatever_is_remembered(pool: NodePool, seed: int) -> None:
    random = Random(seed)
    one = GoingWorld(policy(pool), [a_pod(random, number) for number in range(4)])
    for number in range(8):
        plan = one.decide()
        known = [dict(each) for each in MEMORIES]
        for each in MEMORIES:
            each.clear()
        assert one.decide() == plan
        for each, before in zip(MEMORIES, known, strict=True):
            each.update(before)
        one.ledger = plan.ledger
        if random.random() < 0.6:
            one.apply(plan)
            one.settle()
        happen(one, random, number)
