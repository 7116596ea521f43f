"""The sandbox's pods: drawn from a production trace's classes, beside an inference deployment and two daemonsets.

Everything is Kubernetes JSON, so that it is read by the same code as a real API server's answer.
"""

from __future__ import annotations

import csv
import random
import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

from attrs import frozen

KubernetesObject = dict[str, Any]

CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "default"
WORKLOAD_TYPE = "workload-type"
GPU = "nvidia.com/gpu"

# Of the GPU pods that wait for an answer, so many go to the pool of base capacity. Chosen so that 200 pods of seed 1
# want a little more than its 50 GPUs: a sandbox in which nothing is refused shows no reasons.
_CORE_SHARE = 0.55
_INFERENCE_SHARE = 0.1
_IMAGE = "registry.example.com/workload:v1"
_UIDS = uuid.UUID("6f1c0d0e-0b8e-4a55-9a53-9d1c5b2f7a10")


@frozen
class WorkloadClass:
    """Pods of the trace that ask for the same. ``pods`` is how many there are; ``is_batch`` best effort."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    is_batch: bool
    pods: int


@cache
def workload_classes() -> tuple[WorkloadClass, ...]:
    """The trace's classes, from the table that the package ships."""
    text = (resources.files("engine.sandbox") / "data" / "openb_classes.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        WorkloadClass(
            cpu_milli=int(row["cpu_milli"]),
            memory_mib=int(row["memory_mib"]),
            gpus=int(row["gpus"]),
            is_batch=row["tier"] == "batch",
            pods=int(row["pods"]),
        )
        for row in rows
    )


def sandbox_objects(count: int, seed: int, created_at: datetime = CREATED_AT) -> list[KubernetesObject]:
    """``count`` pending pods, a tenth of them the inference deployment's, and the daemonsets."""
    replicas = inference_replicas(count)
    pods = draw_pods(count - replicas, seed, created_at) + inference_pods(replicas, created_at)
    return pods + daemon_sets(created_at)


def inference_replicas(count: int) -> int:
    """How many of ``count`` pods are the inference deployment's."""
    return round(count * _INFERENCE_SHARE)


def draw_pods(count: int, seed: int, created_at: datetime = CREATED_AT) -> list[KubernetesObject]:
    """Pending pods drawn from the trace's classes by their counts; the first pods of a longer draw are the same.

    A GPU pod is tied to its tier by the node selector ``workload-type`` (core, elastic or batch) and tolerates that
    tier's taint and the GPU taint. A pod without a GPU has no selector and tolerates nothing.
    """
    classes = workload_classes()
    weights = [each.pods for each in classes]
    dice = random.Random(seed)
    drawn: Counter[str] = Counter()
    pods = []
    for _ in range(count):
        (asked,) = dice.choices(classes, weights)
        tier = _tier(asked, dice.random())
        owner = f"{tier}-{asked.cpu_milli}m-{asked.memory_mib}mi" + (f"-{asked.gpus}gpu" if asked.gpus else "")
        drawn[owner] += 1
        selector = {WORKLOAD_TYPE: tier} if asked.gpus else {}
        tolerations = [_tolerates_tier(tier), _TOLERATES_GPU] if asked.gpus else []
        requests = _requests(f"{asked.cpu_milli}m", f"{asked.memory_mib}Mi", asked.gpus)
        spec = _pod_spec("main", _IMAGE, requests, selector, tolerations)
        pods.append(_pending_pod(owner, drawn[owner], spec, created_at))
    return pods


def inference_pods(replicas: int, created_at: datetime = CREATED_AT) -> list[KubernetesObject]:
    """An online inference deployment: one GPU each, by the label that its pool gives to its nodes."""
    selector = {WORKLOAD_TYPE: "online-inference", "accelerator": "nvidia-l40s"}
    image = "registry.example.com/llm-inference:v1.0.0"
    spec = _pod_spec("server", image, _requests("4", "16Gi", 1), selector, [_TOLERATES_GPU])
    return [_pending_pod("llm-inference-6d5f7c9b8", replica, spec, created_at) for replica in range(1, replicas + 1)]


def daemon_sets(created_at: datetime = CREATED_AT) -> list[KubernetesObject]:
    """NVIDIA's device plugin on GPU nodes and a log agent on all: the overhead that a plan has to leave room for."""
    on_gpu_nodes = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Exists"}]}
                ]
            }
        }
    }
    everything = [{"operator": "Exists"}]
    plugin = _pod_spec("plugin", "registry.example.com/device-plugin:v1", _requests("50m", "64Mi", 0), {}, everything)
    agent = _pod_spec("agent", "registry.example.com/log-agent:v1", _requests("100m", "128Mi", 0), {}, everything)
    return [
        _daemon_set("nvidia-device-plugin", plugin | {"affinity": on_gpu_nodes}, created_at),
        _daemon_set("log-agent", agent, created_at),
    ]


_TOLERATES_GPU = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


def _tolerates_tier(tier: str) -> dict[str, str]:
    return {"key": WORKLOAD_TYPE, "operator": "Equal", "value": tier, "effect": "NoSchedule"}


def _tier(asked: WorkloadClass, roll: float) -> str:
    if not asked.gpus:
        return "general"
    if asked.is_batch:
        return "batch"
    return "core" if roll < _CORE_SHARE else "elastic"


def _requests(cpu: str, memory: str, gpus: int) -> dict[str, str]:
    return {"cpu": cpu, "memory": memory} | ({GPU: str(gpus)} if gpus else {})


def _pod_spec(
    container: str,
    image: str,
    requests: Mapping[str, str],
    node_selector: Mapping[str, str],
    tolerations: list[dict[str, str]],
) -> dict[str, Any]:
    # An extended resource such as a GPU must be in the limits, and equal to its request.
    limits = {name: amount for name, amount in requests.items() if name == GPU}
    resource_lists = {"requests": dict(requests)} | ({"limits": limits} if limits else {})
    spec: dict[str, Any] = {"containers": [{"name": container, "image": image, "resources": resource_lists}]}
    if node_selector:
        spec["nodeSelector"] = dict(node_selector)
    if tolerations:
        spec["tolerations"] = [dict(each) for each in tolerations]
    return spec


def _metadata(kind: str, name: str, app: str, created_at: datetime) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": NAMESPACE,
        "uid": _uid(kind, name),
        "labels": {"app": app},
        "creationTimestamp": created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _pending_pod(owner: str, ordinal: int, spec: Mapping[str, Any], created_at: datetime) -> KubernetesObject:
    """The ``ordinal``-th pod of the ReplicaSet ``owner``, as the scheduler leaves it when no node will do."""
    name = f"{owner}-{ordinal:04d}"
    controller = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner,
        "uid": _uid("ReplicaSet", owner),
        "controller": True,
    }
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata("Pod", name, owner, created_at) | {"ownerReferences": [controller]},
        "spec": dict(spec),
        "status": {"phase": "Pending", "conditions": [unscheduled]},
    }


def _daemon_set(name: str, spec: Mapping[str, Any], created_at: datetime) -> KubernetesObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata("DaemonSet", name, name, created_at),
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": dict(spec)},
        },
    }


def _uid(kind: str, name: str) -> str:
    """The same object has the same uid in every run."""
    return str(uuid.uuid5(_UIDS, f"{kind}/{NAMESPACE}/{name}"))
