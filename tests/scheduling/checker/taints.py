"""Taints and tolerations, and which taints count while a node is coming up.

Kubernetes documentation, "Taints and Tolerations": a pod is not scheduled where a NoSchedule or NoExecute taint is left
that no toleration of it matches; PreferNoSchedule is a wish. A toleration matches where key and effect are the same,
and Exists, or Equal with the same value. An empty key with Exists matches everything; an empty effect every effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.model.constraint import Taint, Toleration

# What the daemonset controller adds to each of its pods ("DaemonSet", section on taints and tolerations).
_DAEMONS_BEAR = frozenset(
    f"node.kubernetes.io/{trouble}"
    for trouble in (
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    )
)
_UNTIL_UP = frozenset(
    {
        "karpenter.sh/unregistered",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
)


def untolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Iterator[Taint]:
    """The taints that keep a pod off a node."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect.value != "PreferNoSchedule" and not any(_matches(each, taint) for each in tolerations):
            yield taint


def keeps_daemon_off(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether a daemonset's pod will not run on a node with these taints."""
    return any(taint.key not in _DAEMONS_BEAR for taint in untolerated(tolerations, taints))


def is_ephemeral(taint: Taint) -> bool:
    """Whether Kubernetes or Karpenter puts it on a node only until the node is up (Karpenter's known ephemerals)."""
    return taint.key in _UNTIL_UP or taint.key.startswith("readiness.k8s.io/")


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect is not None and toleration.effect.value != taint.effect.value:
        return False
    if toleration.key == "":
        return toleration.exists
    return toleration.key == taint.key and (toleration.exists or toleration.value == taint.value)
