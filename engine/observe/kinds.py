"""The kinds of objects that are read, and where: the one list that RBAC and reading both follow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen

from engine.observe.karpenter_objects import LEADER_LEASE, decode_claim, decode_lease, decode_pool_name
from engine.observe.kubernetes import Seen, seen, seen_daemon_set, seen_disruption_budget, seen_node, seen_pod
from engine.observe.workload_decoder import (
    decode_attachment,
    decode_csi_node,
    decode_disruption_budget,
    decode_job,
    decode_namespace,
    decode_pod_autoscaler,
    decode_priority_class,
    decode_replicated,
    decode_scaled_object,
    decode_storage_class,
    decode_volume,
    decode_volume_claim,
)


@frozen
class Kind:
    """``name`` is the plural in the path. ``only`` is the one object's name that is wanted, empty for all.

    ``is_needed``: without it no decision can be made. One that is not needed may be missing from a cluster, or be
    forbidden, and then counts as empty. ``is_heartbeat``: its objects change all the time and say no more than that
    somebody is alive.
    """

    name: str
    group: str
    version: str
    see: Callable[[Any, int], Seen]
    is_needed: bool = False
    only: str = ""
    is_heartbeat: bool = False

    @property
    def path(self) -> str:
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}/{self.name}"

    @property
    def selector(self) -> str:
        return f"metadata.name={self.only}" if self.only else ""


PODS = Kind("pods", "", "v1", seen_pod, is_needed=True)
NODES = Kind("nodes", "", "v1", seen_node, is_needed=True)
DAEMON_SETS = Kind("daemonsets", "apps", "v1", seen_daemon_set, is_needed=True)
BUDGETS = Kind(
    "poddisruptionbudgets", "policy", "v1", partial(seen_disruption_budget, decode_disruption_budget), is_needed=True
)
VOLUMES = Kind("persistentvolumes", "", "v1", partial(seen, "PersistentVolume", decode_volume))
VOLUME_CLAIMS = Kind("persistentvolumeclaims", "", "v1", partial(seen, "PersistentVolumeClaim", decode_volume_claim))
STORAGE_CLASSES = Kind("storageclasses", "storage.k8s.io", "v1", partial(seen, "StorageClass", decode_storage_class))
PRIORITY_CLASSES = Kind(
    "priorityclasses", "scheduling.k8s.io", "v1", partial(seen, "PriorityClass", decode_priority_class)
)
NAMESPACES = Kind("namespaces", "", "v1", partial(seen, "Namespace", decode_namespace))
CSI_NODES = Kind("csinodes", "storage.k8s.io", "v1", partial(seen, "CSINode", decode_csi_node))
ATTACHMENTS = Kind("volumeattachments", "storage.k8s.io", "v1", partial(seen, "VolumeAttachment", decode_attachment))
OWNERS = (
    *(
        Kind(name, "apps", "v1", partial(seen, kind, partial(decode_replicated, kind)))
        for kind, name in (
            ("Deployment", "deployments"),
            ("ReplicaSet", "replicasets"),
            ("StatefulSet", "statefulsets"),
        )
    ),
    Kind("jobs", "batch", "v1", partial(seen, "Job", decode_job)),
)
AUTOSCALERS = (
    Kind(
        "horizontalpodautoscalers", "autoscaling", "v2", partial(seen, "HorizontalPodAutoscaler", decode_pod_autoscaler)
    ),
    Kind("scaledobjects", "keda.sh", "v1alpha1", partial(seen, "ScaledObject", decode_scaled_object)),
)
KARPENTER_POOLS = Kind("nodepools", "karpenter.sh", "v1", partial(seen, "NodePool", decode_pool_name))
KARPENTER_CLAIMS = Kind("nodeclaims", "karpenter.sh", "v1", partial(seen, "NodeClaim", decode_claim))
KARPENTER_LEASES = Kind(
    "leases",
    "coordination.k8s.io",
    "v1",
    partial(seen, "Lease", decode_lease),
    only=LEADER_LEASE,
    is_heartbeat=True,
)

# Pods last: one bound meanwhile to a node not listed waits a pass; a node without its pods would look empty.
KINDS = (
    NODES,
    DAEMON_SETS,
    BUDGETS,
    VOLUMES,
    VOLUME_CLAIMS,
    STORAGE_CLASSES,
    PRIORITY_CLASSES,
    NAMESPACES,
    CSI_NODES,
    ATTACHMENTS,
    *OWNERS,
    *AUTOSCALERS,
    KARPENTER_POOLS,
    KARPENTER_CLAIMS,
    KARPENTER_LEASES,
    PODS,
)
