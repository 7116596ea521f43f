"""What a snapshot shows to others once its names are gone."""

from __future__ import annotations

from attrs import evolve

from engine.model.canonical import canonical_json
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
from engine.reconcile.redaction import redacted
from tests.builders import NOON, pod, requirement

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
