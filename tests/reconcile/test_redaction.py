"""What a snapshot shows to others once its names are gone."""

from __future__ import annotations

from attrs import evolve

from engine.decide import decide
from engine.model.canonical import canonical_json, from_json
from engine.model.ledger import Ledger
from engine.model.snapshot import ObjectProblem, Snapshot
from engine.model.workload import (
    Autoscaler,
    ObjectKey,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    Workload,
    WorkloadOwner,
)
from engine.reconcile.redaction import recorded, redacted
from tests.builders import NOON, minutes, node_pool, pod, requirement
from tests.decide.world import World, policy

SECRET = "falcon"


def a_snapshot_full_of_names() -> Snapshot:
    key = ObjectKey(SECRET, f"{SECRET}-1")
    named = evolve(pod(f"{SECRET}-pod", namespace=SECRET), labels={SECRET: SECRET}, images=(f"{SECRET}:1",), uid=SECRET)
    return Snapshot(
        "prod",
        NOON,
        pods=(named,),
        ledger=Ledger(planned={f"{SECRET}/{SECRET}-pod": "gpu-1"}),
        problems=(ObjectProblem("Pod", SECRET, SECRET, f"cpu {SECRET} is no quantity"),),
        workload=Workload(
            disruption_budgets=(PodDisruptionBudget(key, selector=(requirement(SECRET, "In", SECRET),)),),
            volume_claims=(PersistentVolumeClaim(key, SECRET, SECRET),),
            priority_classes=(PriorityClass(SECRET, annotations={SECRET: SECRET}),),
            owners=(WorkloadOwner("ReplicaSet", key, 3, f"Deployment/{SECRET}"),),
            autoscalers=(Autoscaler("HorizontalPodAutoscaler", key, f"Deployment/{SECRET}", 1, 4),),
        ),
    )


def test_no_name_that_a_person_gave_is_left() -> None:
    assert SECRET.encode() in canonical_json(a_snapshot_full_of_names())
    assert SECRET.encode() not in canonical_json(redacted(a_snapshot_full_of_names()))


def test_what_was_alike_stays_alike() -> None:
    snapshot = redacted(a_snapshot_full_of_names())
    [shown] = snapshot.pods
    [budget] = snapshot.workload.disruption_budgets
    assert budget.selector is not None
    [required] = budget.selector
    assert shown.labels == {required.key: required.values[0]}
    assert budget.key.namespace == shown.key.namespace
    assert snapshot.ledger.planned == {str(shown.key): "gpu-1"}


def test_kinds_and_counts_stay() -> None:
    workload = redacted(a_snapshot_full_of_names()).workload
    assert workload.owners[0].owner.startswith("Deployment/")
    assert (workload.autoscalers[0].min_replicas, workload.autoscalers[0].max_replicas) == (1, 4)


def a_world_with_a_node() -> World:
    world = World(policy(node_pool()), [pod("llm", gpu=1)])
    world.turn()
    return world


def test_what_is_recorded_holds_no_user_data_tags_uids_or_account_numbers() -> None:
    world = a_world_with_a_node()
    assert world.document is not None
    [template] = world.document.foundation.launch_templates
    secret = evolve(template, user_data=SECRET, tags={SECRET: SECRET}, instance_profile="arn:aws:iam::123456789012:x")
    foundation = evolve(world.document.foundation, launch_templates=(secret,))
    world.document = evolve(world.document, foundation=foundation)
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/llm:2026"
    seen = world.snapshot(pods=(evolve(pod("other"), images=(image,), uid=SECRET),))

    kept = canonical_json(recorded(seen))

    assert SECRET.encode() in canonical_json(seen)
    assert SECRET.encode() not in kept
    assert b"123456789012" in canonical_json(seen)
    assert b"123456789012" not in kept
    assert b"000000000000.dkr.ecr.us-east-1.amazonaws.com/llm:2026" in kept


def test_what_is_recorded_leads_to_the_same_plan() -> None:
    world = a_world_with_a_node()
    world.pods.clear()
    later = pod("next", gpu=4)
    world.pods[later.key] = later
    seen = world.snapshot(taken_at=world.now + minutes(5))

    whole, kept = (decide(each, world.policy, world.catalog, world.environment) for each in (seen, recorded(seen)))

    assert whole.launches
    assert (kept.launches, kept.removals, kept.kept) == (whole.launches, whole.removals, whole.kept)
    assert kept.foundation_changes == whole.foundation_changes
    assert kept.usd_per_hour_after == whole.usd_per_hour_after


def test_labels_stay_in_what_is_recorded_since_rules_read_them() -> None:
    labelled = evolve(pod(), labels={"tier": "gold"})
    assert recorded(Snapshot("prod", NOON, pods=(labelled,))).pods == (labelled,)


def test_a_snapshot_of_an_older_version_that_lacks_what_is_new_is_read() -> None:
    older = b'{"environment": "prod", "taken_at": "2026-11-30T12:00:00Z"}'
    assert from_json(Snapshot, older) == Snapshot("prod", NOON)
