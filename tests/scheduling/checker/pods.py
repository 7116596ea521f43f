"""Each pod that wants a node has one answer, and nobody else has any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine.model.plan import Plan
from engine.model.pod import Pod, PodKey
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.violation import Violation

_NODE_POOL = "karpenter.sh/nodepool"


def wants_a_node(pod: Pod) -> bool:
    """Pending, bound nowhere, not going, no daemon's or node's own, no gate, and not set on nodes of no pool.

    Kubernetes documentation, "Pod Scheduling Readiness" for gates; Karpenter's rule (reference, 2.1) for the rest.
    """
    if pod.phase.value != "Pending" or pod.node_name is not None or pod.deleting or pod.scheduling_gated:
        return False
    if pod.owner is not None and pod.owner.kind in ("DaemonSet", "Node"):
        return False
    terms = pod.placing.affinity_terms
    return not terms or not all(
        any(each.key == _NODE_POOL and each.operator.value == "DoesNotExist" for each in term) for term in terms
    )


def answers(snapshot: Snapshot, plan: Plan) -> Iterator[Violation]:
    """Each waiting pod is placed once or refused with reasons; a pod that waits for nothing is not in the plan."""
    waiting = {pod.key for pod in snapshot.pods if wants_a_node(pod)}
    placed: Counter[PodKey] = Counter(each.pod for each in plan.placements)
    placed.update(key for launch in plan.launches for key in launch.pods)
    refused = Counter(each.pod for each in plan.unplaced)
    for key in sorted(placed.keys() | refused.keys() | waiting):
        if key not in waiting:
            yield Violation("not-waiting", str(key), "is planned for, and wants no node")
        elif placed[key] + refused[key] > 1:
            yield Violation("placed-once", str(key), f"is placed {placed[key]} and refused {refused[key]} times")
        elif placed[key] + refused[key] == 0:
            yield Violation("answered", str(key), "is neither placed nor refused")
    for each in plan.unplaced:
        pools = Counter(refusal.node_pool for refusal in each.refusals)
        if not pools or max(pools.values()) > 1:
            yield Violation("reasons", str(each.pod), f"has no reason, or two of one pool: {sorted(pools)}")
    for nomination in plan.nominations:
        if not any(each.pod == nomination.pod and each.node == nomination.node for each in plan.placements):
            yield Violation(
                "nominated", str(nomination.pod), f"is nominated to {nomination.node}, and not planned there"
            )
