"""Drifted: a machine that its pool would launch otherwise today goes once another can take its place.

A change that went into a launch template, or into what selectors match, is tried first: so many of the pool's machines
go as it has canaries, and the rest once those that took their place are up for a while. Machines that came for other
causes, with the same inputs, prove as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

    def __init__(self, machines: Iterable[Machine], now: datetime) -> None:
        self._now = now
        self._known: dict[tuple[str, str], tuple[int, int, int, datetime | None]] = {}
        self._new: dict[tuple[str, str], list[Machine]] = {}
        for each in machines:
            if not each.changes and not each.is_marked and (each.is_initialized or each.is_coming):
                self._new.setdefault((each.pool.name, each.template_today), []).append(each)

    def admitted(self, candidates: Iterable[Candidate]) -> Mapping[str, RolloutWaits]:
        """Who of these, all of which drifted, waits for canaries, by claim."""
        waiting: dict[str, RolloutWaits] = {}
        tried: dict[tuple[str, str], int] = {}
        for each in sorted(candidates, key=lambda one: one.order):
            machine = each.machine
            rollout = machine.pool.name, machine.template_today
            if rollout not in self._known:
                self._known[rollout] = self._standing(machine, rollout)
            canaries, proven, on_trial, until = self._known[rollout]
            is_begun = machine.is_marked or bool(machine.successors)
            if is_begun or not canaries or proven >= canaries:
                continue
            begun = tried.setdefault(rollout, proven + on_trial)
            if begun < canaries:
                tried[rollout] += 1
            else:
                waiting[machine.name] = RolloutWaits(canaries, proven, on_trial, until, change=each.why)
        return waiting

    def _standing(self, machine: Machine, rollout: tuple[str, str]) -> tuple[int, int, int, datetime | None]:
        upkeep = machine.pool.upkeep
        ends = [
            each.initialized_at + upkeep.soak
            for each in self._new.get(rollout, ())
            if each.is_initialized and each.initialized_at is not None
        ]
        proven = sum(end <= self._now for end in ends)
        on_trial = len(self._new.get(rollout, ())) - proven
        return upkeep.canaries, proven, on_trial, min((end for end in ends if end > self._now), default=None)
