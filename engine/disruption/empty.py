"""Empty: a node without pods leaves after its pool's consolidateAfter.

Stricter than Karpenter, where a pod with a very low deletion cost counts as nothing: here empty means that no pod is
on the node but daemons' and mirror pods, and those that have finished; and that this plan puts none there. A marked
node that got pods in the moment of its mark is emptied first, where that hurts nobody and costs nothing.
"""

from __future__ import annotations

from datetime import datetime

from engine.disruption.candidate import Candidate
from engine.disruption.holds import Blocked, guard, kept_by
from engine.disruption.machine import Machine
from engine.model.duration import format_duration
from engine.model.policy import ConsolidationPolicy
from engine.model.reason import DisruptionReason
from engine.model.stay import BelowConsolidateAfter, ConsolidationOff, InUse, KeepsHeadroom, NotInitialized, StayReason

_NOTHING: Blocked = {}


def stands_empty(machine: Machine) -> bool:
    """Whether the clock of consolidateAfter runs: the node is initialized and no pod is on it that counts."""
    return machine.is_initialized and not machine.workload


def empty(machine: Machine, now: datetime, blocked: Blocked = _NOTHING) -> Candidate | StayReason:
    """Whether a machine may go at ``now`` because it stands empty long enough, or why not."""
    if machine.held is not None:
        return machine.held
    judged = _judged(machine, now, blocked)
    return judged if isinstance(judged, Candidate) else machine.trouble or judged


def _judged(machine: Machine, now: datetime, blocked: Blocked) -> Candidate | StayReason:
    if not machine.is_initialized:
        return NotInitialized()
    if machine.planned or (machine.workload and not (machine.is_marked and machine.displaced)):
        return InUse(pods=machine.workload, planned=machine.planned)
    if machine.spare and not machine.workload:
        return KeepsHeadroom(devices=machine.spare)
    guarded = guard(machine)
    if guarded is not None:
        return guarded
    return _by_the_clock(machine, now, blocked)


def _by_the_clock(machine: Machine, now: datetime, blocked: Blocked) -> Candidate | StayReason:
    disruption = machine.pool.disruption
    if machine.pool.is_static:
        return ConsolidationOff(why=f"{machine.pool.name} is static: replicas {machine.pool.replicas}")
    if disruption.consolidation_policy is ConsolidationPolicy.NEVER:
        return ConsolidationOff(why="consolidationPolicy Never")
    if disruption.consolidate_after is None:
        return ConsolidationOff(why="consolidateAfter Never")
    if machine.workload:
        rule = f"{machine.pool.name}: marked, and there is a place for each of its pods elsewhere"
        holds = kept_by(machine, blocked, has_to_go=False)
        return holds or Candidate(machine, DisruptionReason.EMPTY, rule, since=now, may_buy=False)
    # The clock starts when the node is first seen empty, so consolidateAfter 0s lets it go at once.
    since = machine.empty_since or now
    due = since + disruption.consolidate_after
    if now < due:
        return BelowConsolidateAfter(empty_since=since, until=due)
    after = format_duration(disruption.consolidate_after)
    rule = f"{machine.pool.name}: consolidateAfter {after}"
    return Candidate(machine=machine, reason=DisruptionReason.EMPTY, rule=rule, since=since)
