"""How a node is emptied: which pods leave it, and in what order."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum

from attrs import frozen

from engine.model.pod import Pod, PodKey
from engine.model.reason import DisruptionReason

# The priority classes of pods that others on their node may need until the end.
_CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
_NODE = "Node"


class DrainTier(IntEnum):
    """A node's pods leave tier by tier; the next one begins when the one before has left.

    Karpenter's order (node/termination/terminator, groupPodsByPriority).
    """

    ORDINARY = 0
    DAEMONS = 1
    CRITICAL = 2
    CRITICAL_DAEMONS = 3


def is_drained(pod: Pod) -> bool:
    """Whether a drain asks this pod to leave its node.

    Not one that has finished, nor the node's own mirror pods, which go with it, nor one that tolerates the mark: that
    would only come back (Karpenter's IsDrainable, pkg/utils/pod).
    """
    is_mirror = pod.owner is not None and pod.owner.kind == _NODE
    if pod.is_finished or is_mirror:
        return False
    return not pod.placing.bears_the_mark


def tier_of(pod: Pod) -> DrainTier:
    """The tier that a pod leaves with. Critical is who has one of Kubernetes' two system priority classes."""
    if pod.priority_class in _CRITICAL_CLASSES:
        return DrainTier.CRITICAL_DAEMONS if pod.is_daemon else DrainTier.CRITICAL
    return DrainTier.DAEMONS if pod.is_daemon else DrainTier.ORDINARY


@frozen
class Mark:
    """What is written on a node that is to leave: since when, and why. A node that bears it already keeps its own."""

    at: datetime
    reason: DisruptionReason


@frozen
class ForcedEviction:
    """A pod that is deleted although its PodDisruptionBudget, or its annotation, would keep it where it is, or nothing
    is known to take it. It has to be gone ``by`` then; ``why`` is for people."""

    pod: PodKey
    by: datetime
    why: str

    def seconds_left(self, now: datetime) -> int:
        """How long it is given to end, at least one second (Karpenter's rule, node/termination/terminator)."""
        return max(1, int((self.by - now).total_seconds()))
