"""Empty: a node without pods leaves after its pool's consolidateAfter.

Stricter than Karpenter, where a pod with a very low deletion cost counts as nothing: here empty means that no pod is
on the node but daemons' and mirror pods, and those that have finished; and that this plan puts none there. A marked
node that got pods in the moment of its mark is emptied first, where that hurts nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from attrs import frozen

from engine.disruption.candidates import Candidate, guard
from engine.disruption.machine import Machine
from engine.model.duration import format_duration
from engine.model.policy import ConsolidationPolicy
from engine.model.reason import DisruptionReason
from engine.model.stay import BelowConsolidateAfter, ConsolidationOff, InUse, KeepsHeadroom, NotInitialized, StayReason


@frozen
class Empties:
    """The machines that may go because they stand empty, and why each other machine may not."""

    candidates: tuple[Candidate, ...]
    stays: dict[str, StayReason]


def empties(machines: Iterable[Machine], now: datetime) -> Empties:
    """Which machines stand empty long enough at ``now``."""
    candidates: list[Candidate] = []
    stays: dict[str, StayReason] = {}
    for machine in machines:
        judged = machine.held or _judge(machine, now)
        if isinstance(judged, Candidate):
            candidates.append(judged)
        else:
            stays[machine.claim.name] = machine.held or machine.trouble or judged
    return Empties(candidates=tuple(candidates), stays=stays)


def stands_empty(machine: Machine) -> bool:
    """Whether the clock of consolidateAfter runs: the node is initialized and no pod is on it that counts."""
    return machine.is_initialized and not machine.workload


def _judge(machine: Machine, now: datetime) -> Candidate | StayReason:
    if not machine.is_initialized:
        return NotInitialized()
    if machine.planned or (machine.workload and not machine.movable):
        return InUse(pods=machine.workload, planned=machine.planned)
    if machine.spare and not machine.movable:
        return KeepsHeadroom(devices=machine.spare)
    guarded = guard(machine)
    if guarded is not None:
        return guarded
    return _by_the_clock(machine, now)


def _by_the_clock(machine: Machine, now: datetime) -> Candidate | StayReason:
    disruption = machine.pool.disruption
    if machine.pool.is_static:
        return ConsolidationOff(why=f"{machine.pool.name} is static: replicas {machine.pool.replicas}")
    if disruption.consolidation_policy is ConsolidationPolicy.NEVER:
        return ConsolidationOff(why="consolidationPolicy Never")
    if disruption.consolidate_after is None:
        return ConsolidationOff(why="consolidateAfter Never")
    if machine.movable:
        rule = f"{machine.pool.name}: marked, and there is a place for each of its pods elsewhere"
        return Candidate(machine=machine, reason=DisruptionReason.EMPTY, rule=rule, since=now)
    # The clock starts when the node is first seen empty, so consolidateAfter 0s lets it go at once.
    since = machine.empty_since or now
    due = since + disruption.consolidate_after
    if now < due:
        return BelowConsolidateAfter(empty_since=since, until=due)
    after = format_duration(disruption.consolidate_after)
    rule = f"{machine.pool.name}: consolidateAfter {after}"
    return Candidate(machine=machine, reason=DisruptionReason.EMPTY, rule=rule, since=since)
