"""The Pulumi program of what is installed in a cluster. Importing it imports pulumi_kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from engine.converge.in_cluster_objects import DIGEST, ClusterObject, cluster_objects
from engine.model.canonical import digest
from engine.model.environment import Cluster
from engine.model.in_cluster import AddOns

PROVIDER = "cluster"
_CLASSES: Mapping[str, Callable[..., pulumi.CustomResource]] = {
    "Namespace": kubernetes.core.v1.Namespace,
    "ServiceAccount": kubernetes.core.v1.ServiceAccount,
    "PersistentVolumeClaim": kubernetes.core.v1.PersistentVolumeClaim,
    "ClusterRole": kubernetes.rbac.v1.ClusterRole,
    "ClusterRoleBinding": kubernetes.rbac.v1.ClusterRoleBinding,
    "Role": kubernetes.rbac.v1.Role,
    "RoleBinding": kubernetes.rbac.v1.RoleBinding,
    "PriorityClass": kubernetes.scheduling.v1.PriorityClass,
    "Deployment": kubernetes.apps.v1.Deployment,
    "DaemonSet": kubernetes.apps.v1.DaemonSet,
    "CronJob": kubernetes.batch.v1.CronJob,
}
_PODS = frozenset({"Deployment", "DaemonSet", "CronJob"})
# Nothing of this may hold up an update: a rollout can be looked at, an update that waits for one is a stack that is
# locked. A volume claim waits for its first pod.
_SLOW = _PODS | {"PersistentVolumeClaim"}
# Fields that somebody changed by hand are ours again.
_FORCED = {"pulumi.com/patchForce": "true"}
_NOT_AWAITED = {"pulumi.com/skipAwait": "true"}
_ARGUMENTS = {
    "apiVersion": "api_version",
    "roleRef": "role_ref",
    "preemptionPolicy": "preemption_policy",
}


def declare_add_ons(add_ons: AddOns, cluster: Cluster) -> None:
    """Declare every object: the body of a Pulumi program, run inside one.

    What runs pods comes after all that its pods name, and leaves before it.
    """
    provider = kubernetes.Provider(
        PROVIDER,
        kubeconfig=cluster.kubeconfig,
        context=cluster.context,
        # Another path to the same cluster must not replace what is in it.
        cluster_identifier=cluster.name,
        suppress_deprecation_warnings=True,
    )
    ground: list[pulumi.Resource] = []
    every: list[pulumi.Output[str]] = []
    for one in cluster_objects(add_ons):
        made = _CLASSES[one.kind](
            one.name,
            opts=pulumi.ResourceOptions(provider=provider, depends_on=list(ground)),
            **{_ARGUMENTS.get(key, key): value for key, value in _told_how(one).items()},
        )
        every.append(made.id)
        if one.kind not in _PODS:
            ground.append(made)
    # Known only once every object stands: an update that failed in part must not pass for done.
    declared = digest(add_ons)
    pulumi.export(DIGEST, pulumi.Output.all(*every).apply(lambda _: declared))


def _told_how(one: ClusterObject) -> dict[str, Any]:
    """The manifest, with what the provider is told about it."""
    metadata = one.manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), **_FORCED, **(_NOT_AWAITED if one.kind in _SLOW else {})}
    return {**one.manifest, "metadata": {**metadata, "annotations": annotations}}


def declare_provider(cluster: Cluster) -> None:
    """The provider alone: for taking everything down."""
    kubernetes.Provider(
        PROVIDER, kubeconfig=cluster.kubeconfig, context=cluster.context, cluster_identifier=cluster.name
    )
