"""Further kinds as model values: budgets, volumes, classes, owners, autoscalers, Karpenter's, and a pod's moments."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.constraint import Operator, Requirement
from engine.model.workload import (
    AttachLimit,
    Autoscaler,
    Namespace,
    ObjectKey,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    StorageClass,
    VolumeAttachment,
    WorkloadOwner,
)
from engine.observe.karpenter_objects import KarpenterClaim, LeaderLease, is_live
from engine.observe.kinds import KINDS
from engine.observe.kubernetes import Seen
from tests.builders import NOON
from tests.observe.kubernetes_objects import pod_object

BY_NAME = {kind.name: kind for kind in KINDS}
NAMED = {"name": "x", "namespace": "ml"}
KEY = ObjectKey("ml", "x")
OWNED = {**NAMED, "ownerReferences": [{"kind": "Deployment", "name": "llm", "controller": True}]}
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}


def seen(plural: str, raw: Any) -> Seen:
    return BY_NAME[plural].see(raw, 0)


@pytest.mark.parametrize(
    ("plural", "raw", "expected"),
    [
        pytest.param(
            "poddisruptionbudgets",
            {
                "metadata": {**NAMED, "generation": 2},
                "spec": {
                    "minAvailable": 1,
                    "unhealthyPodEvictionPolicy": "AlwaysAllow",
                    "selector": {
                        "matchLabels": {"b": "2", "a": "1"},
                        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["dev"]}],
                    },
                },
                "status": {
                    "disruptionsAllowed": 3,
                    "observedGeneration": 2,
                    "currentHealthy": 5,
                    "desiredHealthy": 2,
                },
            },
            PodDisruptionBudget(
                key=KEY,
                selector=(
                    Requirement("a", Operator.IN, ("1",)),
                    Requirement("b", Operator.IN, ("2",)),
                    Requirement("tier", Operator.NOT_IN, ("dev",)),
                ),
                min_available="1",
                disruptions_allowed=3,
                is_observed=True,
                evicts_unhealthy=True,
                healthy=5,
                wanted_healthy=2,
            ),
            id="a budget",
        ),
        pytest.param(
            "poddisruptionbudgets",
            {"metadata": {**NAMED, "generation": 2}, "spec": {"maxUnavailable": "50%", "selector": {}}},
            PodDisruptionBudget(key=KEY, selector=(), max_unavailable="50%"),
            id="a budget of every pod that its controller has not seen yet",
        ),
        pytest.param(
            "poddisruptionbudgets",
            {"metadata": NAMED, "spec": {"maxUnavailable": 0}},
            PodDisruptionBudget(key=KEY, selector=None, max_unavailable="0", is_observed=True),
            id="a budget of no pod",
        ),
        pytest.param(
            "persistentvolumes",
            {
                "metadata": {"name": "x"},
                "spec": {
                    "storageClassName": "gp3",
                    "csi": {"driver": "ebs.csi.aws.com"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}},
                },
            },
            PersistentVolume(
                "x", "gp3", "ebs.csi.aws.com", ((Requirement(ZONE["key"], Operator.IN, ("us-east-1a",)),),)
            ),
            id="a volume",
        ),
        pytest.param(
            "persistentvolumes",
            {"metadata": {"name": "x"}, "spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}},
            PersistentVolume("x", csi_driver="ebs.csi.aws.com"),
            id="an in-tree volume",
        ),
        pytest.param(
            "persistentvolumeclaims",
            {"metadata": NAMED, "spec": {"storageClassName": "gp3", "volumeName": "v"}},
            PersistentVolumeClaim(KEY, "gp3", "v"),
            id="a volume claim",
        ),
        pytest.param(
            "persistentvolumeclaims",
            {
                "metadata": {
                    **NAMED,
                    "deletionTimestamp": "2026-11-30T12:00:00Z",
                    "annotations": {"volume.kubernetes.io/selected-node": "node-1"},
                },
                "spec": {"accessModes": ["ReadWriteOnce"]},
                "status": {"phase": "Lost"},
            },
            PersistentVolumeClaim(
                KEY, phase="Lost", deleting=True, selected_node="node-1", access_modes=("ReadWriteOnce",)
            ),
            id="a lost claim that goes",
        ),
        pytest.param(
            "namespaces",
            {"metadata": {"name": "ml", "labels": {"team": "ml", "kubernetes.io/metadata.name": "ml"}}},
            Namespace("ml", {"team": "ml", "kubernetes.io/metadata.name": "ml"}),
            id="a namespace",
        ),
        pytest.param(
            "csinodes",
            {
                "metadata": {"name": "node-1"},
                "spec": {
                    "drivers": [
                        {"name": "z.example", "nodeID": "i-1", "allocatable": {"count": 0}},
                        {"name": "efs.csi.aws.com", "nodeID": "i-1"},
                        {"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}},
                    ]
                },
            },
            (AttachLimit("node-1", "ebs.csi.aws.com", 25), AttachLimit("node-1", "z.example", 0)),
            id="a node's attach limits",
        ),
        pytest.param(
            "volumeattachments",
            {
                "metadata": {"name": "csi-1"},
                "spec": {
                    "attacher": "ebs.csi.aws.com",
                    "nodeName": "node-1",
                    "source": {"persistentVolumeName": "pvc-1"},
                },
                "status": {"attached": True},
            },
            VolumeAttachment("csi-1", "node-1", "pvc-1"),
            id="a volume attachment",
        ),
        pytest.param(
            "volumeattachments",
            {"metadata": {"name": "csi-2"}, "spec": {"nodeName": "node-1", "source": {"inlineVolumeSpec": {}}}},
            VolumeAttachment("csi-2", "node-1"),
            id="an attachment of a volume that has no object",
        ),
        pytest.param(
            "csinodes", {"metadata": {"name": "n"}, "spec": {"drivers": None}}, (), id="a node without drivers yet"
        ),
        pytest.param(
            "storageclasses",
            {
                "metadata": {"name": "x", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "ebs.csi.aws.com",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": [
                    {"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": ["b", "a"]}]},
                    {"matchLabelExpressions": [{"key": "rack", "values": ["7"]}]},
                ],
            },
            StorageClass(
                "x",
                "ebs.csi.aws.com",
                True,
                True,
                ("a", "b"),
                (
                    (Requirement("topology.ebs.csi.aws.com/zone", Operator.IN, ("b", "a")),),
                    (Requirement("rack", Operator.IN, ("7",)),),
                ),
            ),
            id="a storage class",
        ),
        pytest.param(
            "priorityclasses",
            {
                "metadata": {
                    "name": "x",
                    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "ml"},
                },
                "value": -10,
                "globalDefault": True,
                "preemptionPolicy": "Never",
            },
            PriorityClass("x", -10, True, False, {"team": "ml"}),
            id="a priority class",
        ),
        pytest.param(
            "replicasets",
            {"metadata": OWNED, "spec": {"replicas": 0}},
            WorkloadOwner("ReplicaSet", KEY, 0, "Deployment/llm"),
            id="a replica set",
        ),
        pytest.param(
            "deployments", {"metadata": NAMED, "spec": {}}, WorkloadOwner("Deployment", KEY, 1), id="a deployment"
        ),
        pytest.param(
            "statefulsets",
            {"metadata": NAMED, "spec": {"replicas": 4}},
            WorkloadOwner("StatefulSet", KEY, 4),
            id="a stateful set",
        ),
        pytest.param("jobs", {"metadata": NAMED, "spec": {"parallelism": 8}}, WorkloadOwner("Job", KEY, 8), id="a job"),
        pytest.param(
            "jobs",
            {"metadata": NAMED, "spec": {"parallelism": 8, "suspend": True}},
            WorkloadOwner("Job", KEY, 0),
            id="a suspended job",
        ),
        pytest.param(
            "jobs",
            {"metadata": NAMED, "spec": {}, "status": {"completionTime": "2026-11-30T12:00:00Z"}},
            WorkloadOwner("Job", KEY, 0),
            id="a finished job",
        ),
        pytest.param(
            "horizontalpodautoscalers",
            {"metadata": NAMED, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "llm"}, "maxReplicas": 9}},
            Autoscaler("HorizontalPodAutoscaler", KEY, "Deployment/llm", 1, 9),
            id="an autoscaler",
        ),
        pytest.param(
            "scaledobjects",
            {"metadata": NAMED, "spec": {"scaleTargetRef": {"name": "llm"}}},
            Autoscaler("ScaledObject", KEY, "Deployment/llm", 0, 100),
            id="a scaled object",
        ),
        pytest.param("nodepools", {"metadata": {"name": "x"}}, "x", id="a Karpenter pool"),
        pytest.param(
            "nodeclaims",
            {"metadata": {"name": "x"}, "status": {"nodeName": "n", "providerID": "aws:///us-east-1a/i-1"}},
            KarpenterClaim("x", "n", "i-1"),
            id="a Karpenter claim",
        ),
        pytest.param("nodeclaims", {"metadata": {"name": "x"}}, KarpenterClaim("x", "", ""), id="a claim in flight"),
        pytest.param(
            "leases",
            {"metadata": NAMED, "spec": {"holderIdentity": "h", "renewTime": "2026-11-30T12:00:00.000000Z"}},
            LeaderLease("h", NOON),
            id="a lease",
        ),
    ],
)
def test_an_object_is_read_whole(plural: str, raw: dict[str, Any], expected: Any) -> None:
    found = seen(plural, raw)

    assert found.problem is None
    assert found.value == expected


def test_only_a_claim_whose_volume_is_gone_is_lost() -> None:
    phases = ("", "Pending", "Bound", "Lost")

    assert [PersistentVolumeClaim(KEY, phase=phase).is_lost for phase in phases] == [False, False, False, True]


def test_a_budget_that_is_broken_allows_nothing_in_its_namespace() -> None:
    found = seen("poddisruptionbudgets", {"metadata": NAMED, "spec": {"minAvailable": {}}})

    assert found.value == PodDisruptionBudget(key=KEY, selector=(), disruptions_allowed=0, is_observed=False)
    assert str(found.problem) == (
        "PodDisruptionBudget ml/x: minAvailable is {}, expected a number or a share such as 50%"
    )


@pytest.mark.parametrize(
    ("plural", "raw", "told"),
    [
        ("jobs", {"metadata": NAMED, "spec": {"parallelism": "many"}}, "Job ml/x: parallelism is 'many'"),
        ("scaledobjects", {"metadata": NAMED, "spec": {}}, "ScaledObject ml/x: spec.scaleTargetRef names no kind"),
        ("persistentvolumeclaims", {"metadata": {}}, "PersistentVolumeClaim number 1 of the list: metadata.name"),
        (
            "csinodes",
            {"metadata": {"name": "n"}, "spec": {"drivers": [{"allocatable": {"count": "all"}}]}},
            "CSINode n: count is 'all', expected a whole number",
        ),
        ("namespaces", {"metadata": {}}, "Namespace number 1 of the list: metadata.name is missing"),
        ("nodepools", 7, "NodePool number 1 of the list: it is 7, expected an object"),
    ],
)
def test_an_object_that_is_broken_is_named_and_left_out(plural: str, raw: Any, told: str) -> None:
    found = seen(plural, raw)

    assert found.value is None
    assert str(found.problem).startswith(told)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "true", "5"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata", "spec", "status", "name", "namespace", "labels", "annotations", "selector", "replicas",
                    "matchLabels", "scaleTargetRef", "ownerReferences", "csi", "nodeAffinity", "required", "value",
                    "allowedTopologies", "renewTime", "providerID", "containers", "containerStatuses", "state",
                    "drivers", "allocatable", "count", "affinity", "podAffinity", "topologySpreadConstraints", "ports",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.sampled_from(KINDS), JSON)
def test_no_object_whatever_it_holds_stops_the_reading(kind: Any, raw: Any) -> None:
    found = kind.see(raw, 0)

    assert found.value is not None or found.problem is not None


def test_a_pods_moments_images_and_nomination_are_read() -> None:
    raw = pod_object(
        {
            "containers": [{"name": "a", "image": "llm:1"}, {"name": "b", "image": "proxy:2"}],
            "initContainers": [{"name": "i", "image": "fetch:3"}],
            "nodeName": "node-1",
        },
        uid="u-1",
    )
    raw["status"] = {
        "phase": "Running",
        "nominatedNodeName": "node-1",
        "containerStatuses": [
            {"name": "a", "state": {"running": {"startedAt": "2026-11-30T12:02:00Z"}}},
            {"name": "b", "state": {"running": {"startedAt": "2026-11-30T12:01:00Z"}}},
            {"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}},
        ],
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T12:03:00Z"},
        ],
    }
    pod = seen("pods", raw).value

    assert pod.images == ("fetch:3", "llm:1", "proxy:2")
    assert pod.started_at == NOON + timedelta(minutes=1)
    assert pod.ready_at == NOON + timedelta(minutes=3)
    assert pod.nominated_node_name == "node-1"
    assert pod.uid == "u-1"


def test_a_pod_that_is_not_ready_has_no_moment_of_readiness() -> None:
    raw = pod_object()
    raw["status"]["conditions"] = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-30T12:03:00Z"}]
    pod = seen("pods", raw).value

    assert (pod.ready_at, pod.started_at, pod.nominated_node_name) == (None, None, None)


@pytest.mark.parametrize(
    ("holder", "age_seconds", "seconds_since_change", "lives"),
    [
        pytest.param("h", 59, None, True, id="renewed a moment ago by its clock"),
        pytest.param("h", 60, None, False, id="renewed a minute ago by its clock"),
        pytest.param("h", -200, None, True, id="its clock is ahead"),
        pytest.param("h", -400, None, False, id="its clock is too far ahead to say"),
        pytest.param("h", 90_000, 59.0, True, id="its clock is wrong and it was seen to renew"),
        pytest.param("h", 90_000, 60.0, False, id="it was seen to renew a minute ago"),
        pytest.param("", 0, 1.0, False, id="given back"),
    ],
)
def test_a_lease_is_live_by_what_was_seen_and_else_by_its_clock(
    holder: str, age_seconds: int, seconds_since_change: float | None, lives: bool
) -> None:
    lease = LeaderLease(holder, NOON - timedelta(seconds=age_seconds))

    assert is_live(lease, NOON, seconds_since_change) is lives
