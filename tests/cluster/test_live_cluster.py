"""A live view of a real cluster: with the least rights, by events, and through a restart of its API server."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.model.cluster_access import OBSERVING
from engine.observe.api_server import ApiServer
from engine.observe.live_cluster import LiveCluster
from engine.sandbox.control_plane import ControlPlane, Plane
from engine.sandbox.plane_parts import API_SERVER
from tests.cluster.api import WAIT_SECONDS, Cluster, deployment, pod

Follow = Callable[[Path], LiveCluster]


@pytest.fixture
def follow() -> Iterator[Follow]:
    followed: list[LiveCluster] = []

    def made(kubeconfig: Path) -> LiveCluster:
        live = LiveCluster(ApiServer(str(kubeconfig)))
        followed.append(live)
        live.start()
        return live

    yield made
    for live in followed:
        live.stop()


def until(live: LiveCluster, holds: Callable[[], bool], what: str) -> None:
    """Woken by the live cluster itself, so that what never wakes fails."""
    ends_at = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < ends_at, f"{what}: {live.unsynced()}"
        live.wait_for_change(live.revision(), 1.0)


def pods_of(live: LiveCluster, namespace: str) -> list[str]:
    return [each.key.name for each in live.facts().pods if each.key.namespace == namespace]


def observer(cluster: Cluster, folder: Path) -> Path:
    """A kubeconfig of a service account that may do what observing asks for, and nothing else."""
    name = cluster.namespace
    rules = [
        {
            "apiGroups": list(rule.api_groups),
            "resources": list(rule.resources),
            "verbs": list(rule.verbs),
            **({"resourceNames": list(rule.resource_names)} if rule.resource_names else {}),
        }
        for rule in OBSERVING
    ]
    account = {"kind": "ServiceAccount", "name": "observer", "namespace": name}
    cluster.create({"kind": "ServiceAccount", "metadata": {"name": "observer"}})
    cluster.create({"kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    cluster.create({"kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": role, "subjects": [account]})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}}
    asked = cluster.client.create(f"/api/v1/namespaces/{name}/serviceaccounts/observer/token", request)
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": cluster.plane.endpoint,
                    "certificate-authority": str(cluster.plane.authority_file),
                },
            }
        ],
        "users": [{"name": "u", "user": {"token": asked["status"]["token"]}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "observer"
    file.write_text(json.dumps(config), encoding="utf-8")
    return file


def test_the_least_rights_show_all_and_what_happens_is_known_by_its_event(
    cluster: Cluster, follow: Follow, tmp_path: Path
) -> None:
    live = follow(observer(cluster, tmp_path))
    until(live, live.is_synced, "all kinds are listed")
    assert [problem for problem in live.facts().problems if problem.what.startswith("the Kubernetes API")] == []

    cluster.create(pod("waits", {"cpu": "1", "nvidia.com/gpu": "1"}))
    until(live, lambda: "waits" in pods_of(live, cluster.namespace), "the pod is seen")
    (seen,) = (each for each in live.facts().pods if each.key.namespace == cluster.namespace)
    assert seen.is_waiting
    assert seen.images == ("registry.example.com/workload:v1",)

    cluster.create(deployment("many", 3, {"cpu": "1"}))
    until(
        live,
        lambda: (
            {"Deployment", "ReplicaSet"}
            <= {
                each.kind
                for each in live.facts().workload.owners
                if each.key.namespace == cluster.namespace and each.replicas == 3
            }
        ),
        "its owners are seen",
    )
    cluster.budget("keep", {"app": "many"}, maxUnavailable=1)
    until(
        live,
        lambda: any(
            each.key.namespace == cluster.namespace and each.is_observed
            for each in live.facts().workload.disruption_budgets
        ),
        "the budget is seen once its controller has seen it",
    )
    cluster.delete("Pod", "waits")
    until(live, lambda: "waits" not in pods_of(live, cluster.namespace), "the pod's end is seen")


def test_a_restart_of_the_api_server_with_another_token_closes_the_gate_and_opens_it_again(
    plane: Plane, control_plane: ControlPlane, follow: Follow
) -> None:
    cluster = Cluster(plane, "default")
    goes, stays = (f"{name}-{uuid.uuid4().hex[:6]}" for name in ("goes", "stays"))
    for name in (goes, stays):
        cluster.create(pod(name, {"cpu": "1"}))
    live = follow(plane.kubeconfig)
    until(live, live.is_synced, "all kinds are listed")

    control_plane.stop(API_SERVER)
    until(live, lambda: not live.is_synced(), "the gate closes")
    renewed = Cluster(control_plane.renew_token(), "default")
    renewed.client.delete(f"/api/v1/namespaces/default/pods/{goes}?gracePeriodSeconds=0")

    def is_known_again() -> bool:
        return live.is_synced() and goes not in pods_of(live, "default") and stays in pods_of(live, "default")

    until(live, is_known_again, "all is known again")
    assert live.facts().problems == ()
    renewed.delete("Pod", stays)
