"""Drifted: a machine that its pool would launch otherwise today goes once another can take its place.

A change that went into a launch template, or into what selectors match, is tried first: so many of the pool's machines
go as it has canaries, and the rest once those that took their place are up for a while. Machines that came for other
causes, with the same inputs, prove as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime

from engine.disruption.candidate import Candidate
from engine.disruption.holds import Blocked, kept_by
from engine.disruption.machine import Machine
from engine.model.pending import Pending
from engine.model.reason import DisruptionReason
from engine.model.replacement import RolloutWaits
from engine.model.stay import StayReason

_TOLD = 2


def drifted(machine: Machine, now: datetime, blocked: Blocked) -> Candidate | StayReason | None:
    """Whether a machine may go because it drifted, or why not; None where it did not."""
    cause = drift_of(machine, now)
    if cause is None:
        return None
    kept = kept_by(machine, blocked, has_to_go=True)
    if kept is not None:
        return kept
    return Candidate(machine, cause.reason, f"{machine.pool.name}: {cause.why}", since=cause.since)


def drift_of(machine: Machine, now: datetime) -> Pending | None:
    """What is other than the pool would launch it today, whether or not it may go for it; None where nothing is."""
    if not machine.changes:
        return None
    more = f" and {len(machine.changes) - _TOLD} more" if len(machine.changes) > _TOLD else ""
    what = ", ".join(map(str, machine.changes[:_TOLD])) + more
    return Pending(DisruptionReason.DRIFTED, what, since=machine.drifted_since or now)


class Rollouts:
    """How far each change has come: by pool and by the launch template that machines would boot from today."""

    def __init__(self, machines: Collection[Machine], now: datetime) -> None:
        self._now = now
        self._known: dict[tuple[str, str], tuple[int, int, int, datetime | None]] = {}
        self._new: dict[tuple[str, str], list[Machine]] = {}
        # Those that go first, and whose pods have what comes after them only then: each is a trial on its way.
        self._leaving = Counter(
            (each.pool.name, each.template_today)
            for each in machines
            if each.changes and each.is_marked and not each.successors
        )
        for each in machines:
            if not each.changes and not each.is_marked and (each.is_initialized or each.is_coming):
                self._new.setdefault((each.pool.name, each.template_today), []).append(each)

    def trials(self) -> Trials:
        """For one walk through all candidates."""
        return Trials(self)

    def standing(self, machine: Machine, rollout: tuple[str, str]) -> tuple[int, int, int, datetime | None]:
        """How many canaries the machine's pool wants, how many are proven, how many on trial, and until when."""
        if rollout not in self._known:
            self._known[rollout] = self._counted(machine, rollout)
        return self._known[rollout]

    def _counted(self, machine: Machine, rollout: tuple[str, str]) -> tuple[int, int, int, datetime | None]:
        upkeep = machine.pool.upkeep
        ends = [
            each.initialized_at + upkeep.soak
            for each in self._new.get(rollout, ())
            if each.is_initialized and each.initialized_at is not None
        ]
        proven = sum(end <= self._now for end in ends)
        on_trial = len(self._new.get(rollout, ())) - proven + self._leaving[rollout]
        return upkeep.canaries, proven, on_trial, min((end for end in ends if end > self._now), default=None)


class Trials:
    """Who tries each change, as candidates are taken in their order: one that may not go gives its turn to the next."""

    def __init__(self, rollouts: Rollouts) -> None:
        self._rollouts = rollouts
        self._tried: dict[tuple[str, str], int] = {}

    def objection(self, candidate: Candidate) -> RolloutWaits | None:
        """Why a machine that drifted waits for canaries; None for one that is a canary itself, or goes for more."""
        machine, rollout = candidate.machine, _rollout(candidate)
        if candidate.reason is not DisruptionReason.DRIFTED or machine.is_asked_for or _is_begun(machine):
            return None
        canaries, proven, on_trial, until = self._rollouts.standing(machine, rollout)
        if not canaries or proven >= canaries or proven + on_trial + self._tried.get(rollout, 0) < canaries:
            return None
        return RolloutWaits(canaries, proven, on_trial, until, change=candidate.why)

    def begin(self, candidate: Candidate) -> None:
        """It goes, or another is made for it."""
        machine = candidate.machine
        if candidate.reason is DisruptionReason.DRIFTED and not (machine.is_asked_for or _is_begun(machine)):
            rollout = _rollout(candidate)
            self._tried[rollout] = self._tried.get(rollout, 0) + 1


def _rollout(candidate: Candidate) -> tuple[str, str]:
    return candidate.machine.pool.name, candidate.machine.template_today


def _is_begun(machine: Machine) -> bool:
    return machine.is_marked or bool(machine.successors)
