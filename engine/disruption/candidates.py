"""From candidates to removals: what every reason has in common.

A reason's own file says which machines it would let go and since when. Here they are put in order, and go one by one
as base capacity, the pool's budget and the pass's cap allow.

A removal takes two passes. MARK cordons and taints the node, RELEASE lets the machine go once it is seen marked and
empty. Budgets and caps are asked both times, marked machines first: a window that shuts in between holds a marked node
where it is. Pods that run on a marked node are asked to leave, by a further MARK, once each has a place elsewhere;
until they have left, it stays. Nothing here takes a mark off again, not even when pending pods would fit on the node:
whether that is cheaper than a new one is for underutilization to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from attrs import frozen

from engine.disruption.budgets import Allowance, PoolStanding, allowance
from engine.disruption.machine import Machine
from engine.model.document import RemovalRecord
from engine.model.plan import Removal, RemovalPhase
from engine.model.reason import DisruptionReason
from engine.model.refusal import (
    BaseCapacity,
    BudgetExhausted,
    DoNotDisrupt,
    RemovalCap,
    StayReason,
)


@frozen
class Candidate:
    """A machine that may go for a reason; ``since`` is when the cause began, ``rule`` what allows it, for people."""

    machine: Machine
    reason: DisruptionReason
    rule: str
    since: datetime

    @property
    def order(self) -> tuple[bool, datetime, int, str]:
        """Marked ones first, then the cause that is oldest, then the dearest, then by name."""
        claim = self.machine.claim
        return (not self.machine.is_marked, self.since, -claim.usd_per_hour.micros, claim.name)


@frozen
class Choice:
    """What leaves, and why each other candidate stays, by claim."""

    removals: tuple[Removal, ...]
    stays: Mapping[str, StayReason]


def guard(machine: Machine) -> DoNotDisrupt | None:
    """The annotation, the node's or a pod's, that keeps a machine from any voluntary removal."""
    if machine.node is not None and machine.node.do_not_disrupt:
        return DoNotDisrupt()
    return DoNotDisrupt(pod=str(machine.guarded_by)) if machine.guarded_by is not None else None


def choose(
    candidates: Iterable[Candidate],
    standings: Mapping[str, PoolStanding],
    *,
    cap: int,
    released: int,
    now: datetime,
    marked: int = 0,
) -> Choice:
    """Let candidates go in their order.

    ``standings`` are by pool, with every candidate's machine counted in its base, and in ``out`` if and only if it is
    marked. ``cap`` bounds the marks of one pass, and its releases, of which ``marked`` and ``released`` are spent
    already on machines that are lost or failed.
    """
    books = {name: _Book(standing, now) for name, standing in standings.items()}
    passing = {RemovalPhase.MARK: cap - marked, RemovalPhase.RELEASE: cap - released}
    removals: list[Removal] = []
    stays: dict[str, StayReason] = {}
    ordered = sorted(candidates, key=lambda each: each.order)
    for candidate in ordered:
        if candidate.machine.is_marked:
            books[candidate.machine.pool.name].out -= 1
    for candidate in ordered:
        book = books[candidate.machine.pool.name]
        machine = candidate.machine
        phase = RemovalPhase.RELEASE if machine.is_marked and not machine.movable else RemovalPhase.MARK
        reason = book.objection(candidate) or (RemovalCap(cap=cap) if passing[phase] <= 0 else None)
        if reason is not None:
            book.leave(candidate)
            stays[candidate.machine.claim.name] = reason
            continue
        passing[phase] -= 1
        removals.append(Removal(record=book.record(candidate), phase=phase, pods=machine.movable))
    return Choice(removals=tuple(removals), stays=stays)


class _Book:
    """One pool's count while candidates go."""

    def __init__(self, standing: PoolStanding, now: datetime) -> None:
        self.standing = standing
        self.out = standing.out
        self.serving = standing.serving
        self._now = now
        self._allowances: dict[DisruptionReason, Allowance] = {}

    def objection(self, candidate: Candidate) -> StayReason | None:
        base = self.standing.pool.base_nodes
        if not candidate.machine.is_marked and self.serving <= base:
            return BaseCapacity(nodes=base)
        allowed = self._allowance(candidate.reason)
        if not allowed.has_room(self.out):
            return BudgetExhausted(budget=allowed.budget, allowed=allowed.allowed or 0, used=self.out)
        return None

    def leave(self, candidate: Candidate) -> None:
        """A marked machine that is held back is out all the same."""
        if candidate.machine.is_marked:
            self.out += 1

    def record(self, candidate: Candidate) -> RemovalRecord:
        """Count one more machine out, and write down the arithmetic."""
        machine, claim = candidate.machine, candidate.machine.claim
        self.out += 1
        if not machine.is_marked:
            self.serving -= 1
        return RemovalRecord(
            claim=claim.name,
            node_pool=claim.node_pool,
            reason=candidate.reason,
            rule=candidate.rule,
            since=candidate.since,
            usd_per_hour=claim.usd_per_hour,
            node=machine.node.name if machine.node else None,
            budget=self._allowance(candidate.reason).use(self.standing.base, self.out),
            capacity=claim.capacity,
            stack=claim.stack,
        )

    def _allowance(self, reason: DisruptionReason) -> Allowance:
        if reason not in self._allowances:
            self._allowances[reason] = allowance(self.standing, reason, self._now)
        return self._allowances[reason]
