"""The sandbox's workload on a real control plane: the same pods, made by real controllers, created once."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from engine.model.fault import Fault
from engine.sandbox.cluster_objects import flattened
from engine.sandbox.plane_client import PlaneClient, PlaneRefused
from engine.sandbox.plane_parts import KWOK_NODE
from engine.sandbox.workload import (
    NAMESPACE,
    KubernetesObject,
    daemon_sets,
    draw_pods,
    inference_pods,
    inference_replicas,
)

INFERENCE = "llm-inference"
_MARK: KubernetesObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "nodewright-sandbox", "namespace": "kube-system"},
    "data": {"workload": "created"},
}
_CONFLICT, _MISSING = 409, 404
_DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{INFERENCE}"


def real_objects(count: int, seed: int) -> list[KubernetesObject]:
    """``count`` pods as their controllers: a ReplicaSet for each class that is drawn, the inference Deployment with a
    tenth of them, and the daemonsets. The pods are those of the simulated cluster."""
    replicas = inference_replicas(count)
    drawn = draw_pods(count - replicas, seed)
    return [*_replica_sets(drawn), _deployment(replicas), *(_as_written(each) for each in daemon_sets())]


def create_once(client: PlaneClient, objects: Callable[[], Iterable[KubernetesObject]]) -> bool:
    """Create a workload in a cluster that has not had it yet; whether this call did. What exists stays as it is.

    Raises PlaneRefused, and Fault for an object of a kind that the API server does not know.
    """
    mark = f"/api/v1/namespaces/kube-system/configmaps/{_MARK['metadata']['name']}"
    try:
        client.get(mark)
    except PlaneRefused as refused:
        if refused.status != _MISSING:
            raise
    else:
        return False
    for each in flattened(list(objects())):
        _create(client, _kept_alive(each))
    # Last: a run that was killed half-way is completed by the next.
    _create(client, _MARK)
    return True


def scale_inference(client: PlaneClient, replicas: int) -> int:
    """Set the inference Deployment's replicas; how many it had. Raises PlaneRefused."""
    before = int(client.get(_DEPLOYMENT)["spec"]["replicas"])
    client.patch(_DEPLOYMENT, {"spec": {"replicas": replicas}})
    return before


def _create(client: PlaneClient, manifest: Mapping[str, Any]) -> None:
    try:
        client.create(_collection(client, manifest), manifest)
    except PlaneRefused as refused:
        if refused.status != _CONFLICT:
            raise


def _collection(client: PlaneClient, manifest: Mapping[str, Any]) -> str:
    """The path that objects of a manifest's kind are created under, as the API server itself names it."""
    version, kind = str(manifest.get("apiVersion", "")), manifest.get("kind")
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    try:
        known = client.get(group)["resources"]
    except (PlaneRefused, KeyError):
        known = []
    found = next((each for each in known if each["kind"] == kind and "/" not in each["name"]), None)
    if found is None:
        name = (manifest.get("metadata") or {}).get("name", "without a name")
        raise Fault(
            f"{kind} {name}: the sandbox's API server knows no {version} {kind}",
            "correct apiVersion and kind in the file that nodewright:sandbox manifests names",
        )
    if not found["namespaced"]:
        return f"{group}/{found['name']}"
    return f"{group}/namespaces/{manifest['metadata'].get('namespace', NAMESPACE)}/{found['name']}"


def _kept_alive(manifest: KubernetesObject) -> KubernetesObject:
    """A node that a file brings has no machine: kwok is its kubelet all the same."""
    if manifest.get("kind") != "Node":
        return manifest
    metadata = manifest["metadata"]
    annotations = {KWOK_NODE[0]: KWOK_NODE[1], **(metadata.get("annotations") or {})}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _replica_sets(pods: Iterable[KubernetesObject]) -> Iterator[KubernetesObject]:
    drawn = list(pods)
    owners = [str(pod["metadata"]["ownerReferences"][0]["name"]) for pod in drawn]
    counted = Counter(owners)
    specs = {owner: pod["spec"] for owner, pod in zip(owners, drawn, strict=True)}
    for owner, spec in specs.items():
        yield _controller("ReplicaSet", owner, counted[owner], spec)


def _deployment(replicas: int) -> KubernetesObject:
    (example,) = inference_pods(1)
    return _controller("Deployment", INFERENCE, replicas, example["spec"])


def _controller(kind: str, name: str, replicas: int, spec: Mapping[str, Any]) -> KubernetesObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": copy.deepcopy(dict(spec))},
        },
    }


def _as_written(manifest: KubernetesObject) -> KubernetesObject:
    """Without what only the API server writes."""
    ours = {name: value for name, value in manifest["metadata"].items() if name not in ("uid", "creationTimestamp")}
    return {**manifest, "metadata": ours}
