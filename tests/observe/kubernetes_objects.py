"""Pods, nodes and daemonsets as the API server gives them."""

from __future__ import annotations

from typing import Any


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


FULL_POD = pod_object(
    {
        "nodeName": "n",
        "nodeSelector": {"a": "b"},
        "initContainers": [container(cpu="1", restart="Always")],
        "overhead": {"cpu": "1"},
        "resources": {"requests": {"cpu": "1"}},
        "volumes": [{"name": "v", "emptyDir": {}}],
        "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}],
        "tolerations": [{"key": "a", "operator": "Exists", "value": "", "effect": "NoSchedule"}],
        "priority": 1,
        "schedulingGates": [{"name": "g"}],
        "resourceClaims": [{"name": "c"}],
        **required({"matchExpressions": [expression("a", "In", "b")], "matchFields": []}),
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
