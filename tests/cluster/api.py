"""A real API server as the cluster's tests see it: short words for what they do to it, and waiting with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from engine.sandbox.control_plane import Plane
from engine.sandbox.plane_client import PlaneRefused, PlaneUnreachable

WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.05
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Pod": "/api/v1/namespaces/{}/pods",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Event": "/api/v1/namespaces/{}/events",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
}

Found = TypeVar("Found")


def eventually(
    look: Callable[[], Found], what: str, seconds: float = WAIT_SECONDS, poll_seconds: float = _POLL_SECONDS
) -> Found:
    """The first true thing that ``look`` sees; fails the test with ``what`` and the last thing when there is none."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}; last seen: {found!r}")
        time.sleep(poll_seconds)


class Cluster:
    """``namespace`` is where objects without one go. Kinds are named as in manifests."""

    def __init__(self, plane: Plane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self.client = plane.client()

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {**manifest, "metadata": {**manifest["metadata"]}}
        namespace = wanted["metadata"].get("namespace", self.namespace)
        return self.client.create(_PATHS[manifest["kind"]].format(namespace), wanted)

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """The object, None when there is none."""
        try:
            return self.client.get(self._path(kind, name))
        except PlaneRefused as refused:
            if refused.status == 404:
                return None
            raise

    def list(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """Those of the namespace, or of the cluster; ``selector`` is of labels."""
        query = f"?labelSelector={selector}" if selector else ""
        return list(self.client.get(_PATHS[kind].format(self.namespace) + query)["items"])

    def patch(self, kind: str, name: str, body: object, subresource: str = "") -> dict[str, Any]:
        return self.client.patch(self._path(kind, name) + (f"/{subresource}" if subresource else ""), body)

    def delete(self, kind: str, name: str) -> None:
        try:
            self.client.delete(self._path(kind, name))
        except PlaneRefused as refused:
            if refused.status != 404:
                raise

    def scale(self, deployment: str, replicas: int) -> None:
        self.patch("Deployment", deployment, {"spec": {"replicas": replicas}})

    def evict(self, pod: str) -> None:
        """Raises PlaneRefused, with status 429 when a budget is in the way."""
        self.client.create(
            f"{self._path('Pod', pod)}/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace}},
        )

    def budget(self, name: str, match: Mapping[str, str], **limits: Any) -> None:
        """A PodDisruptionBudget that its controller has seen: until then every eviction is refused."""
        self.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name},
                "spec": {"selector": {"matchLabels": dict(match)}, **limits},
            }
        )
        eventually(
            lambda: ((self.get("PodDisruptionBudget", name) or {}).get("status") or {}).get("observedGeneration"),
            f"the budget {name} is seen by its controller",
        )

    def running(self, selector: str = "") -> list[dict[str, Any]]:
        """Pods that are Running and not on their way out."""
        return [
            pod
            for pod in self.list("Pod", selector)
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    def answers(self) -> bool:
        try:
            self.client.get("/readyz")
        except (PlaneRefused, PlaneUnreachable):
            return False
        return True

    def _path(self, kind: str, name: str) -> str:
        return f"{_PATHS[kind].format(self.namespace)}/{name}"


def pod(name: str, requests: Mapping[str, str], **spec: Any) -> dict[str, Any]:
    """A bare pod of one container; a GPU's request is its limit too, as Kubernetes wants it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [_container(requests)], **spec},
    }


def deployment(name: str, replicas: int, requests: Mapping[str, str], **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [_container(requests)], **spec}},
        },
    }


def _container(requests: Mapping[str, str]) -> dict[str, Any]:
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    return {
        "name": "main",
        "image": "registry.example.com/workload:v1",
        "resources": {"requests": dict(requests), "limits": limits},
    }
