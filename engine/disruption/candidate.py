"""A machine that may go, and for what. A value."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from engine.disruption.machine import Machine
from engine.model.money import UsdPerHour
from engine.model.plan import RemovalPhase
from engine.model.reason import DisruptionReason

# What a pool must do, as against what only saves: another takes its place, in base capacity too.
HAS_TO_GO = frozenset({DisruptionReason.DRIFTED, DisruptionReason.EXPIRED})

_RANKS = {DisruptionReason.DRIFTED: 1, DisruptionReason.EXPIRED: 1, DisruptionReason.UNDERUTILIZED: 2}


@frozen
class Candidate:
    """A machine that may go for a reason; ``since`` is when the cause began, ``rule`` what allows it, for people.

    ``may_buy``: nodes may be launched for its pods, as long as ``least_saving`` is left of its price where that is
    given. ``turn`` is the place of its move among those for money. ``returns``: it goes, at any price, if all its pods
    come to pools of more weight.
    """

    machine: Machine
    reason: DisruptionReason
    rule: str
    since: datetime
    may_buy: bool = True
    least_saving: UsdPerHour | None = None
    turn: int = 0
    returns: bool = False

    @property
    def has_to_go(self) -> bool:
        return self.reason in HAS_TO_GO

    @property
    def why(self) -> str:
        """Its reason and what says so, without its pool: ``Drifted: label stage none -> two``."""
        return f"{self.reason.value}: {self.says}"

    @property
    def says(self) -> str:
        """What allows it, without its pool: ``label stage none -> two``."""
        return self.rule.removeprefix(f"{self.machine.pool.name}: ")

    @property
    def phase(self) -> RemovalPhase:
        is_empty = self.machine.is_marked and not self.machine.workload
        return RemovalPhase.RELEASE if is_empty else RemovalPhase.MARK

    @property
    def order(self) -> tuple[bool, bool, int, int, bool, datetime, int, str, bool, str]:
        """Marked ones first, then those that others were launched for already; then those that stand empty, those that
        have to go, those that go for money; then those that somebody asked to go, then the cause that is oldest, then
        the dearest, then by name. Of two that stand empty alike the one goes that has to go some day."""
        machine, claim = self.machine, self.machine.claim
        return (
            not machine.is_marked,
            not machine.successors,
            _RANKS.get(self.reason, 0),
            self.turn,
            not machine.is_asked_for,
            self.since,
            -claim.usd_per_hour.micros,
            claim.name if not machine.is_to_be_replaced else "",
            self.has_to_go,
            claim.name,
        )
