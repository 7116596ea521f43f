"""What the engine may do in a Kubernetes cluster: every verb that observing and acting use, and none besides.

`nodewright install` grants these to its service account, and deploy/rbac.yaml is their text for those who grant by
hand; a test holds the two together.
"""

from __future__ import annotations

from engine.model.in_cluster import AccessRule

_READ = ("list", "watch")

# Every cluster has it before anything is installed and after all is taken down again, so whoever runs for an
# environment, from wherever, meets the others at one Lease.
LEASE_NAMESPACE = "kube-system"

# Secrets, config maps and logs are nowhere here: no decision needs them.
OBSERVING: tuple[AccessRule, ...] = (
    AccessRule(("",), ("namespaces", "persistentvolumeclaims", "persistentvolumes", "pods"), _READ),
    AccessRule(("",), ("nodes",), ("get", *_READ)),
    AccessRule(("apps",), ("daemonsets", "deployments", "replicasets", "statefulsets"), _READ),
    AccessRule(("batch",), ("jobs",), _READ),
    AccessRule(("policy",), ("poddisruptionbudgets",), _READ),
    AccessRule(("storage.k8s.io",), ("csinodes", "storageclasses", "volumeattachments"), _READ),
    AccessRule(("scheduling.k8s.io",), ("priorityclasses",), _READ),
    AccessRule(("autoscaling",), ("horizontalpodautoscalers",), _READ),
    AccessRule(("keda.sh",), ("scaledobjects",), _READ),
    AccessRule(("karpenter.sh",), ("nodeclaims", "nodepools"), _READ),
    # A live Karpenter shows by its lease; its namespace is its own choice.
    AccessRule(("coordination.k8s.io",), ("leases",), _READ, ("karpenter-leader-election",)),
)

ACTING: tuple[AccessRule, ...] = (
    # Cordon, taint and label. Creating and deleting nodes is the kubelets' and the cloud controller's.
    AccessRule(("",), ("nodes",), ("patch",)),
    AccessRule(("",), ("pods/eviction",), ("create",)),
    # Only at the end of a terminationGracePeriod, where the eviction API would wait for longer.
    AccessRule(("",), ("pods",), ("delete",)),
    # nominatedNodeName, and nothing else of a pod.
    AccessRule(("",), ("pods/status",), ("patch",)),
    AccessRule(("events.k8s.io",), ("events",), ("create",)),
)


def writing_lease(name: str) -> tuple[AccessRule, ...]:
    """The one Lease of an environment, in ``LEASE_NAMESPACE``. RBAC cannot bind a create to a name."""
    group, leases = ("coordination.k8s.io",), ("leases",)
    return (
        AccessRule(group, leases, ("create",)),
        AccessRule(group, leases, ("get", "patch", "update"), (name,)),
    )
