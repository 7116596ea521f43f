"""Pods, nodes and daemonsets as the API server gives them."""

from __future__ import annotations

from typing import Any

EBS = "ebs.csi.aws.com"


def container(
    name: str = "main", *, restart: str | None = None, limits: dict[str, Any] | None = None, **requests: Any
) -> dict[str, Any]:
    asked = {key.replace("gpu", "nvidia.com/gpu"): amount for key, amount in requests.items()}
    made: dict[str, Any] = {"name": name, "resources": {"requests": asked}}
    if limits is not None:
        made["resources"]["limits"] = limits
    return made | ({"restartPolicy": restart} if restart else {})


def pod_object(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "web-1",
            "namespace": "default",
            "creationTimestamp": "2026-11-30T12:00:00Z",
            **metadata,
        },
        "spec": {"containers": [container(cpu="1", memory="1Gi")], **(spec or {})},
        "status": {"phase": "Pending"},
    }


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
        }
    }


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def node_object(**more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "node-1", "creationTimestamp": "2026-11-30T12:00:00Z", "labels": {"zone": "a"}},
        "spec": {"providerID": "aws:///us-east-1a/i-0123"},
        "status": {
            "allocatable": {"cpu": "3920m", "memory": "14162Mi", "nvidia.com/gpu": "1", "pods": "58"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
        **more,
    }


def hold_a_namespace_and_two_csi_nodes(others: dict[str, list[dict[str, Any]]]) -> None:
    others["/api/v1/namespaces"] = [{"metadata": {"name": "ml", "labels": {"team": "ml"}}}]
    others["/apis/storage.k8s.io/v1/csinodes"] = [
        {"metadata": {"name": name}, "spec": {"drivers": [{"name": EBS, "allocatable": {"count": count}}]}}
        for name, count in (("n2", 39), ("n1", 25))
    ]


def all_affinities() -> dict[str, Any]:
    """Every kind of affinity, required and preferred, with every field that it has."""
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [expression("a", "In", "b")]}
    term = {
        "topologyKey": "zone",
        "labelSelector": selector,
        "namespaces": ["a"],
        "namespaceSelector": selector,
        "matchLabelKeys": ["a"],
        "mismatchLabelKeys": ["a"],
    }
    pods = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
    }
    preferred = {"weight": 1, "preference": {"matchExpressions": [expression("a", "In", "b")], "matchFields": []}}
    nodes = required({"matchExpressions": [expression("a", "In", "b")], "matchFields": []})["affinity"]["nodeAffinity"]
    return {
        "nodeAffinity": {**nodes, "preferredDuringSchedulingIgnoredDuringExecution": [preferred]},
        "podAffinity": pods,
        "podAntiAffinity": pods,
    }


FULL_POD = pod_object(
    {
        "nodeName": "n",
        "nodeSelector": {"a": "b"},
        "initContainers": [container(cpu="1", restart="Always")],
        "overhead": {"cpu": "1"},
        "resources": {"requests": {"cpu": "1"}},
        "hostNetwork": False,
        "containers": [
            {**container(cpu="1"), "ports": [{"containerPort": 1, "hostPort": 1, "hostIP": "::", "protocol": "TCP"}]}
        ],
        "volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "w", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}},
        ],
        "topologySpreadConstraints": [
            {
                "topologyKey": "zone",
                "maxSkew": 1,
                "minDomains": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [expression("a", "In", "b")]},
                "matchLabelKeys": ["a"],
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
            }
        ],
        "tolerations": [{"key": "a", "operator": "Exists", "value": "", "effect": "NoSchedule"}],
        "priority": 1,
        "schedulingGates": [{"name": "g"}],
        "resourceClaims": [{"name": "c"}],
        "priorityClassName": "p",
        "affinity": all_affinities(),
    },
    labels={"a": "b"},
    annotations={"karpenter.sh/do-not-disrupt": "1h"},
    ownerReferences=[{"kind": "ReplicaSet", "name": "r", "controller": True}],
) | {
    "status": {
        "phase": "Running",
        "startTime": "2026-11-30T12:00:00Z",
        "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
    }
}


FULL_NODE = node_object(
    spec={"providerID": "p", "unschedulable": False, "taints": [{"key": "a", "value": "b", "effect": "NoExecute"}]}
)


FULL_DAEMON_SET = {"metadata": {"name": "d"}, "spec": {"template": {"spec": FULL_POD["spec"]}}}
