"""Every reason for which a machine may go by choice, asked one after another."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from attrs import frozen

from engine.disruption.candidates import Candidate
from engine.disruption.drifted import Rollouts, drifted
from engine.disruption.empty import empty
from engine.disruption.expired import expired
from engine.disruption.holds import Blocked, kept_by
from engine.disruption.machine import Machine
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.stay import StayReason


@frozen
class Reasons:
    """The machines that may go, each once for every reason, and why each of the others may not, by claim."""

    candidates: tuple[Candidate, ...]
    stays: dict[str, StayReason]


def reasons(machines: Iterable[Machine], now: datetime, blocked: Blocked) -> Reasons:
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
    trials = [each for some in found.values() for each in some if each.reason is DisruptionReason.DRIFTED]
    waiting = Rollouts(every, now).admitted(trials) if trials else {}
    candidates = [
        each
        for some in found.values()
        for each in some
        if not (each.reason is DisruptionReason.DRIFTED and each.machine.name in waiting)
    ]
    going = {each.machine.name for each in candidates}
    return Reasons(tuple(candidates), {name: each for name, each in {**stays, **waiting}.items() if name not in going})


def _judged(machine: Machine, now: datetime, blocked: Blocked) -> tuple[Candidate | StayReason | None, ...]:
    begun = machine.going_for if machine.going_for in VOLUNTARY_REASONS else None
    if machine.is_marked and begun not in (None, DisruptionReason.EMPTY):
        return (_begun(machine, begun, now),)
    return empty(machine, now, blocked), expired(machine, now, blocked), drifted(machine, now, blocked)


def _begun(machine: Machine, reason: DisruptionReason, now: datetime) -> Candidate | StayReason:
    kept = kept_by(machine, has_to_go=True)
    if kept is not None:
        return kept
    since = machine.node.marked_at if machine.node is not None else None
    return Candidate(machine, reason, f"{machine.pool.name}: marked before", since=since or now)
