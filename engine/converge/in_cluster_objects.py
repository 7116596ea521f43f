"""The Kubernetes objects of an environment's add-ons, as the API server is given them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from engine.converge.in_cluster_pods import pre_pull_pod, runner_pod
from engine.model import labels as keys
from engine.model.in_cluster import AccessRule, AddOns, PrePull, Runner

_RBAC = "rbac.authorization.k8s.io"
STATE_CLAIM = "nodewright-state"
_STATE_SIZE = "10Gi"
RUNNER = "nodewright"
# On the namespace, this and the environment's label tell ours from one that was there before.
MANAGER = "nodewright"
MANAGED_BY = "app.kubernetes.io/managed-by"
# The stack's output: of what the add-ons were declared from.
DIGEST = "addOns"
POOL_ANNOTATION = "nodewright.dev/node-pool"
READ_ANNOTATION = "nodewright.dev/images-of-pods"
# A run that could not start for this long is left out: the next one sees the same world.
_STARTING_DEADLINE_SECONDS = 120
_FAILED_JOBS_KEPT = 3
# Below every workload, so that a pre-pull pod gives way and never makes another one wait; and it pre-empts nothing.
_PRE_PULL_PRIORITY = -1000


@frozen
class ClusterObject:
    """One object. ``name`` is its name within the stack, which no two of a kind share."""

    name: str
    manifest: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])


def cluster_objects(add_ons: AddOns) -> tuple[ClusterObject, ...]:
    """Every object, what others lie in or name first."""
    return (
        *_namespace(add_ons),
        *_access(add_ons),
        *(_runner(add_ons, add_ons.runner) if add_ons.runner else ()),
        *_pre_pulls(add_ons),
    )


def _namespace(add_ons: AddOns) -> Iterable[ClusterObject]:
    if add_ons.owns_namespace:
        yield _object(add_ons, "v1", "Namespace", add_ons.namespace, namespace=None)


def _access(add_ons: AddOns) -> Iterable[ClusterObject]:
    subject = {"kind": "ServiceAccount", "name": add_ons.service_account, "namespace": add_ons.namespace}
    yield _object(add_ons, "v1", "ServiceAccount", add_ons.service_account)
    api, name = f"{_RBAC}/v1", add_ons.cluster_wide_name
    for kind, binding, rules, namespace in (
        ("ClusterRole", "ClusterRoleBinding", add_ons.cluster_rules, None),
        ("Role", "RoleBinding", add_ons.lease_rules, add_ons.lease_namespace),
    ):
        yield _object(add_ons, api, kind, name, namespace=namespace, rules=[*map(_rule, rules)])
        role = {"apiGroup": _RBAC, "kind": kind, "name": name}
        yield _object(add_ons, api, binding, name, namespace=namespace, roleRef=role, subjects=[subject])


def _rule(rule: AccessRule) -> dict[str, Any]:
    named = {"resourceNames": list(rule.resource_names)} if rule.resource_names else {}
    return {"apiGroups": list(rule.api_groups), "resources": list(rule.resources), "verbs": list(rule.verbs), **named}


def _runner(add_ons: AddOns, runner: Runner) -> Iterable[ClusterObject]:
    if runner.volumes:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": _STATE_SIZE}}}
        yield _object(add_ons, "v1", "PersistentVolumeClaim", STATE_CLAIM, spec=claim)
    labels = _labels(add_ons, RUNNER)
    pod = {"metadata": {"labels": labels}, "spec": runner_pod(add_ons, runner, STATE_CLAIM)}
    if runner.schedule is None:
        # Two at once would only wait for one another's lease, and one volume serves one node.
        spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": pod}
        yield _object(add_ons, "apps/v1", "Deployment", RUNNER, spec=spec)
        return
    job = {"backoffLimit": 0, "template": {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}}
    spec = {
        "schedule": runner.schedule,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": _STARTING_DEADLINE_SECONDS,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": _FAILED_JOBS_KEPT,
        "jobTemplate": {"metadata": {"labels": labels}, "spec": job},
    }
    yield _object(add_ons, "batch/v1", "CronJob", RUNNER, spec=spec)


def _pre_pulls(add_ons: AddOns) -> Iterable[ClusterObject]:
    if not add_ons.pre_pulls:
        return
    priority = f"{add_ons.cluster_wide_name}-pre-pull"
    yield _object(
        add_ons,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        priority,
        namespace=None,
        value=_PRE_PULL_PRIORITY,
        preemptionPolicy="Never",
        description="Pods that only keep images on nodes.",
    )
    for one in add_ons.pre_pulls:
        yield _pre_pull(add_ons, one, priority)


def _pre_pull(add_ons: AddOns, pre_pull: PrePull, priority: str) -> ClusterObject:
    labels = {**_labels(add_ons, "pre-pull"), "nodewright.dev/daemon-set": pre_pull.name}
    spec = {
        "selector": {"matchLabels": labels},
        # A few nodes at a time, lest a registry is asked for the same ten gigabytes by all at once.
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {"metadata": {"labels": labels}, "spec": pre_pull_pod(pre_pull, priority)},
    }
    told = {POOL_ANNOTATION: pre_pull.node_pool, READ_ANNOTATION: ",".join(pre_pull.read_from_pods)}
    return _object(add_ons, "apps/v1", "DaemonSet", pre_pull.name, annotations=told, spec=spec)


def _object(
    add_ons: AddOns,
    api_version: str,
    kind: str,
    name: str,
    *,
    namespace: str | None = "",
    annotations: Mapping[str, str] | None = None,
    **rest: Any,
) -> ClusterObject:
    """``namespace`` empty is the add-ons' own; None is none at all."""
    metadata: dict[str, Any] = {"name": name, "labels": _labels(add_ons, RUNNER)}
    if namespace is not None:
        metadata["namespace"] = namespace or add_ons.namespace
    if annotations:
        metadata["annotations"] = dict(annotations)
    return ClusterObject(name, {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest})


def _labels(add_ons: AddOns, part: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": part,
        MANAGED_BY: MANAGER,
        keys.TAG_ENVIRONMENT: add_ons.environment,
    }
