"""What keeps a machine with pods from going by choice, whatever it would go for. Karpenter's rules (disruption/types.go
and pkg/utils/pdb), with two of our own: a pod that nobody would make again is not ended, and one that bears the mark
would only come back to the node.

Where the pool has a terminationGracePeriod, pods that must not be disrupted, or that their budgets hold, do not keep a
machine that has to go: they leave at the period's end.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.disruption.machine import Machine
from engine.model.blocked_eviction import BlockedEviction
from engine.model.eviction import EvictionStatus
from engine.model.pod import PodKey
from engine.model.replacement import Hold, PodHolds
from engine.model.stay import DoNotDisrupt, InUse, NotInitialized, StayReason

Blocked = Mapping[PodKey, BlockedEviction]
_NOTHING: Blocked = {}


def guard(machine: Machine) -> DoNotDisrupt | None:
    """The annotation, the node's or a pod's, that keeps a machine from any voluntary removal."""
    if machine.node is not None and machine.node.do_not_disrupt:
        return DoNotDisrupt()
    return DoNotDisrupt(pod=str(machine.guarded_by)) if machine.guarded_by is not None else None


def kept_by(machine: Machine, blocked: Blocked = _NOTHING, *, has_to_go: bool) -> StayReason | None:
    """The first reason for which a machine may not be emptied. One that is marked was judged before its mark, pods that
    came since apart."""
    if machine.held is not None:
        return machine.held
    if not machine.is_initialized:
        return machine.trouble or NotInitialized()
    guarded = guard(machine)
    if machine.is_marked:
        # Whoever has to stay for good needs no place elsewhere, and neither do the others meanwhile.
        is_stuck = guarded is not None and guarded.pod and machine.pool.termination_grace_period is None
        return guarded if is_stuck else _hold(machine, _NOTHING)
    if machine.planned:
        return InUse(pods=machine.workload, planned=machine.planned)
    waits_for_end = has_to_go and machine.pool.termination_grace_period is not None
    if guarded is not None and not (waits_for_end and guarded.pod):
        return guarded
    return _hold(machine, _NOTHING if waits_for_end else blocked)


def _hold(machine: Machine, blocked: Blocked) -> PodHolds | None:
    """The first pod, in pod order, that cannot be asked to leave."""
    holding = [
        pod
        for pod in machine.pods
        if not pod.deleting and (pod.owner is None or pod.placing.bears_the_mark or (blocked and pod.key in blocked))
    ]
    if not holding:
        return None
    pod = min(holding, key=lambda each: each.key)
    if pod.owner is None:
        return PodHolds(str(pod.key), Hold.NOBODYS)
    if pod.placing.bears_the_mark:
        return PodHolds(str(pod.key), Hold.BEARS_THE_MARK)
    several = blocked[pod.key].status is EvictionStatus.SEVERAL_BUDGETS
    named = tuple(map(str, blocked[pod.key].budgets))
    return PodHolds(str(pod.key), Hold.SEVERAL_BUDGETS if several else Hold.BUDGET, named)
