"""Every reason for which a machine may go by choice, asked one after another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime

from attrs import evolve, frozen

from engine.disruption.candidate import Candidate
from engine.disruption.drifted import Rollouts, drifted
from engine.disruption.empty import empty
from engine.disruption.expired import expired
from engine.disruption.holds import Blocked, kept_by
from engine.disruption.machine import Machine
from engine.disruption.requested import requested
from engine.disruption.returning import PoolsOf, returning
from engine.disruption.underutilized import Repack, Underutilized, is_closed, kept_from_moving, underutilized
from engine.model.pod import PodKey
from engine.model.policy import NodePool
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.refusal import GuardrailBlocks
from engine.model.stay import BelowConsolidateAfter, ConsolidationOff, InUse, NotInitialized, StayReason
from engine.scheduling.movable import MoveCost
from engine.scheduling.repacking import Repacking


@frozen
class Reasons:
    """The machines that may go, each once for every reason, and why each of the others may not, by claim. ``idle`` are
    those that nobody moves to for money: they go for standing empty, now or in a while, or their pool says so.
    ``rollouts`` is how far changes have come by which any of the candidates drifted; None where none did."""

    candidates: tuple[Candidate, ...]
    stays: dict[str, StayReason]
    idle: frozenset[str] = frozenset()
    rollouts: Rollouts | None = None

    def without_replacing(self, why: GuardrailBlocks) -> Reasons:
        """Without those whose place others take; what stands empty still goes."""
        free = tuple(each for each in self.candidates if each.reason is DisruptionReason.EMPTY)
        held = {each.machine.name for each in self.candidates} - {each.machine.name for each in free}
        return evolve(self, candidates=free, stays={**self.stays, **dict.fromkeys(sorted(held), why)})


_NOTHING: Blocked = {}


def _nothing_moves(machines: Sequence[Machine], cost: MoveCost, closed: Set[str]) -> Repacking:
    return Repacking()


def _nowhere(machines: Sequence[Machine]) -> Mapping[PodKey, NodePool]:
    return {}


def reasons(
    machines: Iterable[Machine],
    now: datetime,
    blocked: Blocked,
    repack: Repack = _nothing_moves,
    pools_of: PoolsOf = _nowhere,
) -> Reasons:
    """Which machines may go at ``now``. ``blocked`` are pods that their PodDisruptionBudgets hold.

    A machine that was marked for a reason goes on for it, whatever has changed since. What has to go some day and may
    not is told before what keeps a machine from going for standing empty.
    """
    every = tuple(machines)
    found: dict[str, list[Candidate]] = {}
    stays: dict[str, StayReason] = {}
    for machine in every:
        judged = [each for each in _judged(machine, now, blocked) if each is not None]
        found[machine.name] = [each for each in judged if isinstance(each, Candidate)]
        told = [each for each in judged if not isinstance(each, Candidate)]
        if told:
            stays[machine.name] = told[-1]
    idle = [
        each
        for each in every
        if not (each.workload or each.is_marked or each.claim.replaces)
        and (found[each.name] or isinstance(stays.get(each.name), BelowConsolidateAfter))
    ]
    closed = frozenset(each.name for each in every if is_closed(each, now))
    moving = _for_money(every, found, idle, closed, now, blocked, repack)
    leaving = {each.machine.name for each in moving.candidates}
    others = [each for each in every if each.workload and not (found[each.name] or each.name in leaving)]
    moving = evolve(moving, candidates=(*moving.candidates, *returning(others, now, blocked, pools_of)))
    stays |= moving.stays
    candidates = [*(each for some in found.values() for each in some), *moving.candidates]
    going = {each.machine.name for each in candidates}
    # What is wrong with a machine is told before what keeps a sound one.
    troubles = {each.name: each.trouble for each in every if each.trouble is not None and each.held is None}
    kept = {name: each for name, each in {**stays, **troubles}.items() if name not in going}
    drifts = any(each.reason is DisruptionReason.DRIFTED for each in candidates)
    rollouts = Rollouts(every, now) if drifts else None
    return Reasons(tuple(candidates), kept, closed.union(each.name for each in idle), rollouts)


def _for_money(
    every: Sequence[Machine],
    found: Mapping[str, Sequence[Candidate]],
    idle: Sequence[Machine],
    closed: Set[str],
    now: datetime,
    blocked: Blocked,
    repack: Repack,
) -> Underutilized:
    """Of machines with pods that go for nothing else. Those to be replaced go anyway, and are not moved twice."""
    stays: dict[str, StayReason] = {}
    movable = []
    for machine in every:
        if found[machine.name] or machine.is_to_be_replaced or not machine.workload or machine.is_marked:
            continue
        kept = kept_from_moving(machine, now, blocked)
        if kept is None:
            movable.append(machine)
        elif machine.held is None and not isinstance(kept, ConsolidationOff | NotInitialized | InUse):
            stays[machine.name] = kept
    moving = underutilized(movable, idle, every, closed, now, repack)
    return Underutilized(moving.candidates, {**stays, **moving.stays})


def _judged(machine: Machine, now: datetime, blocked: Blocked) -> tuple[Candidate | StayReason | None, ...]:
    begun = machine.going_for if machine.going_for in VOLUNTARY_REASONS else None
    if machine.is_marked and begun not in (None, DisruptionReason.EMPTY):
        return (_begun(machine, begun, now),)
    return empty(machine, now, blocked), expired(machine, now, blocked), _to_be_replaced(machine, now, blocked)


def _to_be_replaced(machine: Machine, now: datetime, blocked: Blocked) -> Candidate | StayReason | None:
    """What somebody asked for comes before what drifted: it is no trial of a change, and waits for none."""
    return requested(machine, now, blocked) or drifted(machine, now, blocked)


def _begun(machine: Machine, reason: DisruptionReason, now: datetime) -> Candidate | StayReason:
    kept = kept_by(machine, has_to_go=True)
    if kept is not None:
        return kept
    told = {
        DisruptionReason.DRIFTED: _to_be_replaced(machine, now, _NOTHING),
        DisruptionReason.EXPIRED: expired(machine, now, _NOTHING),
    }.get(reason)
    if isinstance(told, Candidate):
        return told
    since = machine.node.marked_at if machine.node is not None else None
    what = "its pods moved for money" if reason is DisruptionReason.UNDERUTILIZED else "marked before"
    return Candidate(machine, reason, f"{machine.pool.name}: {what}", since=since or now)
