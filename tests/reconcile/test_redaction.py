"""What a snapshot shows to others once its names are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from attrs import evolve

from engine.decide import decide
from engine.model import labels as keys
from engine.model.canonical import canonical_json, from_json
from engine.model.constraint import LabelSelector, PodTerm, TopologySpread
from engine.model.ledger import Ledger
from engine.model.snapshot import ObjectProblem, Snapshot
from engine.model.workload import (
    AttachLimit,
    Autoscaler,
    Namespace,
    ObjectKey,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    VolumeAttachment,
    Workload,
    WorkloadOwner,
)
from engine.reconcile.redaction import recorded, redacted
from tests.builders import NOON, minutes, node_pool, pod, requirement
from tests.decide.world import World, policy

SECRET = "falcon"


def a_snapshot_full_of_names() -> Snapshot:
    key = ObjectKey(SECRET, f"{SECRET}-1")
    plain = pod(f"{SECRET}-pod", namespace=SECRET)
    selector = (requirement(SECRET, "In", SECRET),)
    term = PodTerm(keys.ZONE, selector, namespaces=(SECRET,), namespace_selector=selector)
    named = evolve(
        plain,
        labels={SECRET: SECRET},
        images=(f"{SECRET}:1",),
        uid=SECRET,
        priority_class=SECRET,
        placing=evolve(
            plain.placing,
            spreads=(TopologySpread(keys.ZONE, 1, selector),),
            pod_affinity=(term,),
            pod_anti_affinity=(term,),
            preferred_pod_affinity=(term,),
            preferred_pod_anti_affinity=(term,),
            volume_claims=(f"{SECRET}-1",),
        ),
    )
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
            namespaces=(Namespace(SECRET, {SECRET: SECRET}),),
            attach_limits=(AttachLimit("node-1", "ebs.csi.aws.com", 25),),
            attachments=(VolumeAttachment(f"csi-{SECRET}", "node-1", SECRET),),
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


def test_selectors_of_spread_and_affinity_still_find_their_pods_namespaces_and_claims() -> None:
    snapshot = redacted(a_snapshot_full_of_names())
    [shown], placing, workload = snapshot.pods, snapshot.pods[0].placing, snapshot.workload
    [namespace], [claim], [priorities] = workload.namespaces, workload.volume_claims, workload.priority_classes

    def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
        return bool(selector) and all(each.admits(labels.get(each.key)) for each in selector or ())

    assert selects(placing.spreads[0].selector, shown.labels)
    terms = (
        *placing.pod_affinity,
        *placing.pod_anti_affinity,
        *placing.preferred_pod_affinity,
        *placing.preferred_pod_anti_affinity,
    )
    assert len(terms) == 4
    for term in terms:
        assert selects(term.selector, shown.labels)
        assert term.namespaces == (namespace.name,) == (shown.key.namespace,)
        assert selects(term.namespace_selector, namespace.labels)
        assert term.key == keys.ZONE
    assert placing.volume_claims == (claim.key.name,)
    assert shown.priority_class == priorities.name
    assert workload.attach_limits == a_snapshot_full_of_names().workload.attach_limits


def test_selectors_of_everything_and_of_nothing_stay_what_they_are() -> None:
    plain = pod()
    terms = (PodTerm(keys.ZONE, (), namespace_selector=()), PodTerm(keys.ZONE, None, namespaces=("default",)))
    asking = evolve(plain, placing=evolve(plain.placing, pod_affinity=terms))

    [shown] = redacted(Snapshot("prod", NOON, pods=(asking,))).pods

    found = [(each.selector, each.namespace_selector) for each in shown.placing.pod_affinity]
    assert found == [((), ()), (None, None)]


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


@pytest.mark.parametrize("shown", [recorded, redacted])
def test_a_priority_class_that_may_not_start_nodes_stays_one(shown: Callable[[Snapshot], Snapshot]) -> None:
    filler = PriorityClass("filler", annotations={keys.MAY_START_NODES: "false", "team": SECRET})
    seen = Snapshot("prod", NOON, workload=Workload(priority_classes=(filler,)))

    [kept] = shown(seen).workload.priority_classes

    assert kept.annotations == {keys.MAY_START_NODES: "false"}


def test_labels_stay_in_what_is_recorded_since_rules_read_them() -> None:
    labelled = evolve(pod(), labels={"tier": "gold"})
    assert recorded(Snapshot("prod", NOON, pods=(labelled,))).pods == (labelled,)


def test_a_snapshot_of_an_older_version_that_lacks_what_is_new_is_read() -> None:
    older = b'{"environment": "prod", "taken_at": "2026-11-30T12:00:00Z"}'
    assert from_json(Snapshot, older) == Snapshot("prod", NOON)
