"""The Kubernetes objects that the simulated cluster makes: nodes for machines, pods for workloads and daemonsets."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.constraint import Taint
from engine.model.document import DesiredDocument
from engine.model.node import Instance, InstanceState
from engine.model.quantity import CPU, Resources
from engine.model.snapshot import ObjectProblem
from engine.sandbox.cluster_state import KubernetesObject, SandboxClusterError

INSTANCE = "sandbox.nodewright.dev/instance"
_ORIGIN = "sandbox.nodewright.dev/origin"
_STARTED_AGAIN = "sandbox.nodewright.dev/started-again"

# Kinds that stand for a number of equal pods, and the kind that owns those pods.
_WORKLOADS = {
    "Deployment": "ReplicaSet",
    "ReplicaSet": "ReplicaSet",
    "StatefulSet": "StatefulSet",
    "Job": "Job",
}
_HELD = frozenset({"Pod", "DaemonSet", "Node", *_WORKLOADS})


@frozen
class Machine:
    """An EC2 instance as the cluster sees it; without a ``claim`` nobody knows what its node would be."""

    instance_id: str
    private_dns_name: str
    zone: str
    instance_type: str
    is_running: bool
    claim: Claim | None

    @property
    def node_name(self) -> str:
        return self.private_dns_name or self.instance_id


def machines_of(instances: Iterable[Instance], document: DesiredDocument | None) -> tuple[Machine, ...]:
    """The machines that are there, each with its claim of the document; those on their way out are gone already."""
    claims = {claim.name: claim for claim in document.claims} if document is not None else {}
    return tuple(
        Machine(
            instance_id=instance.id,
            private_dns_name=instance.private_dns_name,
            zone=instance.zone,
            instance_type=instance.instance_type,
            is_running=instance.state is InstanceState.RUNNING,
            claim=claims.get(instance.claim),
        )
        for instance in sorted(instances, key=lambda each: each.id)
        if instance.is_alive
    )


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node_object(machine: Machine, claim: Claim, name: str, now: datetime) -> KubernetesObject:
    """The node that a machine registers, as kubelet and the cloud controller leave it."""
    own = {
        **claim.labels,
        keys.INSTANCE_TYPE: machine.instance_type,
        keys.ZONE: machine.zone,
        keys.NODE_POOL: claim.node_pool,
        keys.CAPACITY_TYPE: claim.inputs.capacity_type,
    }
    provider_id = f"aws:///{machine.zone}/{machine.instance_id}"
    node = registered_node(
        name, provider_id, own, (*claim.taints, *claim.startup_taints), claim.capacity, claim.allocatable
    )
    node["metadata"] |= {"creationTimestamp": timestamp(now), "annotations": {INSTANCE: machine.instance_id}}
    set_ready(node, True)
    return node


def registered_node(
    name: str,
    provider_id: str,
    own_labels: Mapping[str, str],
    taints: Iterable[Taint],
    capacity: Resources,
    allocatable: Resources,
) -> KubernetesObject:
    """A Node object as a kubelet first sends it; its hostname is its name."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own_labels, keys.HOSTNAME: name}},
        "spec": {"providerID": provider_id, "taints": [_taint(taint) for taint in taints]},
        "status": {"capacity": quantities(capacity), "allocatable": quantities(allocatable)},
    }


def instance_of(node: KubernetesObject) -> str:
    """The instance that a node was registered for; empty for a node that was there from the start."""
    annotations = node["metadata"].get("annotations") or {}
    return str(annotations.get(INSTANCE, ""))


def set_ready(node: KubernetesObject, is_ready: bool) -> None:
    reason = "KubeletReady" if is_ready else "NodeStatusUnknown"
    node["status"]["conditions"] = [{"type": "Ready", "status": "True" if is_ready else "Unknown", "reason": reason}]


def drop_startup_taints(node: KubernetesObject, claim: Claim) -> None:
    """What the daemon that a startup taint waits for does once it runs."""
    passing = [_taint(taint) for taint in claim.startup_taints]
    node["spec"]["taints"] = [taint for taint in node["spec"].get("taints") or [] if taint not in passing]


def daemon_pod(daemon_set: KubernetesObject, node_name: str, now: datetime) -> KubernetesObject:
    template = daemon_set["spec"]["template"]
    metadata = daemon_set["metadata"]
    pod = _pod(
        template,
        name=f"{metadata['name']}-{node_name.split('.')[0]}",
        namespace=metadata.get("namespace", "default"),
        owner={"kind": "DaemonSet", "name": metadata["name"]},
        now=now,
    )
    bind(pod, node_name, now)
    return pod


def pods_of(manifest: KubernetesObject, now: datetime) -> list[KubernetesObject]:
    """The pods that a manifest asks for, pending: itself when it is a pod, its replicas when it is a workload.

    Raises SandboxClusterError when the manifest lacks what its kind needs.
    """
    try:
        return list(_pods_of(manifest, now))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        named = f"{manifest.get('kind')} {(manifest.get('metadata') or {}).get('name', 'without a name')}"
        raise SandboxClusterError(
            f"{named} makes no pods: {type(error).__name__} {error}",
            "write metadata.name, and for a workload spec.replicas and spec.template.spec",
        ) from None


def _pods_of(manifest: KubernetesObject, now: datetime) -> Iterator[KubernetesObject]:
    kind = manifest.get("kind")
    if kind == "Pod":
        yield _pending(copy.deepcopy(manifest), now)
    elif kind in _WORKLOADS:
        metadata, spec = manifest["metadata"], manifest["spec"]
        replicas = spec.get("parallelism" if kind == "Job" else "replicas", 1)
        for ordinal in range(1, int(replicas) + 1):
            yield _pod(
                spec["template"],
                name=f"{metadata['name']}-{ordinal:04d}",
                namespace=metadata.get("namespace", "default"),
                owner={"kind": _WORKLOADS[kind], "name": metadata["name"]},
                now=now,
            )


def flattened(manifests: Sequence[KubernetesObject]) -> Iterator[KubernetesObject]:
    """Manifests with lists of any kind opened."""
    for manifest in manifests:
        if str(manifest.get("kind", "")).endswith("List"):
            yield from flattened(manifest.get("items") or [])
        else:
            yield manifest


def passed_over(manifests: Sequence[KubernetesObject]) -> Iterator[ObjectProblem]:
    """The objects that a simulated cluster does not hold, as problems: decisions go on as if they were not there."""
    for manifest in flattened(manifests):
        kind = str(manifest.get("kind", ""))
        if kind not in _HELD:
            metadata = manifest.get("metadata") or {}
            what = "a simulated cluster holds pods, workloads, DaemonSets and nodes alone"
            yield ObjectProblem(kind, str(metadata.get("namespace", "")), str(metadata.get("name", "")), what)


def bind(pod: KubernetesObject, node_name: str, now: datetime) -> None:
    pod["spec"]["nodeName"] = node_name
    pod["status"] = {
        "phase": "Running",
        "startTime": timestamp(now),
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
    }


def hold_back(pod: KubernetesObject, why: str) -> None:
    """Say on a pod, as kube-scheduler does, that no node would do."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    pod["status"] = {"phase": "Pending", "conditions": [condition]}


def successor(pod: KubernetesObject, now: datetime) -> KubernetesObject:
    """The pod that a controller makes in place of one that is gone: the same, pending, under a new name."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    origin = annotations.get(_ORIGIN, metadata["name"])
    count = int(annotations.get(_STARTED_AGAIN, "0")) + 1
    next_pod = copy.deepcopy(pod)
    next_pod["metadata"] = {
        **{key: value for key, value in metadata.items() if key != "uid"},
        "name": f"{origin}-r{count}",
        "creationTimestamp": timestamp(now),
        "annotations": {**annotations, _ORIGIN: origin, _STARTED_AGAIN: str(count)},
    }
    next_pod["spec"].pop("nodeName", None)
    hold_back(next_pod, "no node was tried yet")
    return next_pod


def is_daemon_pod(pod: KubernetesObject) -> bool:
    return any(owner.get("kind") == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or [])


def _pending(pod: KubernetesObject, now: datetime) -> KubernetesObject:
    metadata = pod["metadata"]
    if not metadata["name"]:
        raise ValueError("metadata.name is empty")
    metadata.setdefault("namespace", "default")
    metadata.setdefault("creationTimestamp", timestamp(now))
    spec = pod.setdefault("spec", {})
    if not spec.get("nodeName") and not pod.get("status"):
        hold_back(pod, "no node was tried yet")
    return pod


def _pod(
    template: Mapping[str, Any], *, name: str, namespace: str, owner: Mapping[str, str], now: datetime
) -> KubernetesObject:
    of_template = template.get("metadata") or {}
    pod: KubernetesObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(of_template.get("labels") or {}),
            "annotations": dict(of_template.get("annotations") or {}),
            "creationTimestamp": timestamp(now),
            "ownerReferences": [{"apiVersion": "apps/v1", **owner, "controller": True}],
        },
        "spec": copy.deepcopy(template["spec"]),
    }
    return _pending(pod, now)


def _taint(taint: Taint) -> dict[str, str]:
    written = {"key": taint.key, "effect": taint.effect.value}
    return {**written, "value": taint.value} if taint.value else written


def quantities(amounts: Resources) -> dict[str, str]:
    """Amounts as a Kubernetes resource list writes them."""
    return {resource: f"{amount}m" if resource == CPU else str(amount) for resource, amount in amounts.items()}
