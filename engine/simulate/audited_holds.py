"""Pods that policy or their owners hold where they are, and that are asked to leave by choice all the same."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.reason import VOLUNTARY_REASONS
from engine.simulate.world import World


def held_pods_asked(world: World, plan: Plan, policy: Policy) -> Iterator[str]:
    """Each pod that this plan takes from its node by choice although nobody would make it again, or although it is not
    to be disrupted and its pool sets no end to that (terminationGracePeriod)."""
    ends = {pool.name for pool in policy.node_pools if pool.termination_grace_period is not None}
    for removal in plan.removals:
        if removal.phase is not RemovalPhase.MARK or removal.record.reason not in VOLUNTARY_REASONS:
            continue
        for key in (*removal.pods, *(each.pod for each in removal.forced)):
            pod = world.cluster.pod(key)
            why = _held(pod, removal.record.node_pool in ends) if pod is not None and pod.node_name is not None else ""
            if why:
                yield f"pod {key} is taken from {removal.record.node} for {removal.record.reason.value}, and {why}"


def _held(pod: Pod, is_ended: bool) -> str:
    if pod.owner is None:
        return "nobody would make it again"
    return "it is not to be disrupted" if pod.do_not_disrupt and not is_ended else ""
