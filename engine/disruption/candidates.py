"""From candidates to removals: what every reason has in common.

A reason's own file says which machines it would let go and since when. Here they are put in order, and go one by one
as base capacity, the rules, the pool's budgets and the pass's cap allow.

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

from engine.disruption.budget_notes import Notes
from engine.disruption.budget_rules import BudgetRules, RuleOnPool
from engine.disruption.budgets import PoolStanding, said_by_pool
from engine.disruption.machine import Machine
from engine.disruption.said import UNLIMITED, Bound, BudgetSaid, bounds, tightest
from engine.model.document import BudgetUse, RemovalRecord
from engine.model.plan import Removal, RemovalPhase, Verdict
from engine.model.reason import DisruptionReason
from engine.model.rule import Enforcement
from engine.model.stay import BaseCapacity, BudgetExhausted, DoNotDisrupt, RemovalCap, StayReason


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
    """What leaves, and why each other candidate stays, by claim. ``verdicts`` are of budget rules that erred, or that
    would have kept something if they did more than warn or count."""

    removals: tuple[Removal, ...]
    stays: Mapping[str, StayReason]
    verdicts: tuple[Verdict, ...] = ()


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
    rules: BudgetRules | None = None,
) -> Choice:
    """Let candidates go in their order.

    ``standings`` are by pool, with every candidate's machine counted in its base, and in ``out`` if and only if it is
    marked. ``cap`` bounds the marks of one pass, and its releases, of which ``marked`` and ``released`` are spent
    already on machines that are lost or failed. ``rules`` None: there are none.
    """
    notes = Notes()
    books = {name: _Book(standing, rules, notes, now) for name, standing in standings.items()}
    passing = {RemovalPhase.MARK: cap - marked, RemovalPhase.RELEASE: cap - released}
    removals: list[Removal] = []
    stays: dict[str, StayReason] = {}
    ordered = sorted(candidates, key=lambda each: each.order)
    for candidate in ordered:
        if candidate.machine.is_marked:
            books[candidate.machine.pool.name].ask_anew(candidate)
    for candidate in ordered:
        book = books[candidate.machine.pool.name]
        machine = candidate.machine
        phase = RemovalPhase.RELEASE if machine.is_marked and not machine.movable else RemovalPhase.MARK
        # Rules about one node come last: each look at a node costs, and most are held by a number already.
        reason = (
            book.objection(candidate)
            or (RemovalCap(cap=cap) if passing[phase] <= 0 else None)
            or book.objection_of_rules(candidate)
        )
        if reason is not None:
            book.leave(candidate)
            stays[candidate.machine.claim.name] = reason
            continue
        passing[phase] -= 1
        removals.append(Removal(record=book.record(candidate), phase=phase, pods=machine.movable))
    return Choice(removals=tuple(removals), stays=stays, verdicts=notes.verdicts())


class _Book:
    """One pool's count while candidates go."""

    def __init__(self, standing: PoolStanding, rules: BudgetRules | None, notes: Notes, now: datetime) -> None:
        self._standing = standing
        self._out = standing.out
        self._serving = standing.serving
        self._rules = rules.on(standing) if rules is not None else ()
        self._notes = notes
        self._now = now
        self._own: dict[DisruptionReason, tuple[BudgetSaid, ...]] = {}
        # Marked machines that are yet to be asked about, and what counts towards a rule's opening, by its name: claims.
        self._asked_anew: set[str] = set()
        self._counted: dict[str, set[str]] = {}

    def ask_anew(self, candidate: Candidate) -> None:
        """A marked machine is not out until it is found that it stays out."""
        self._out -= 1
        self._asked_anew.add(candidate.machine.claim.name)

    def objection(self, candidate: Candidate) -> StayReason | None:
        """What holds any node of the pool back now, whichever it is."""
        base = self._standing.pool.base_nodes
        if not candidate.machine.is_marked and self._serving <= base:
            return BaseCapacity(nodes=base)
        for rule in self._acting_on(candidate.reason):
            if (shut := rule.outside_window()) is not None:
                return shut
            self._notes.erred(rule.said)
        full = next((bound for bound in self._bounds(candidate.reason) if not bound.left), None)
        if full is None:
            return None
        return BudgetExhausted(budget=full.budget, allowed=full.allowed, used=full.used, error=full.error)

    def objection_of_rules(self, candidate: Candidate) -> StayReason | None:
        """The first rule, in name order, of which the node is no candidate."""
        for rule in self._acting_on(candidate.reason):
            if (kept := rule.no_candidate(candidate.machine, candidate.reason)) is not None:
                self._notes.kept(rule.rule, kept)
                return kept
        return None

    def leave(self, candidate: Candidate) -> None:
        """A marked machine that is held back is out all the same."""
        if candidate.machine.is_marked:
            self._out += 1
            self._count(candidate, again=True)

    def record(self, candidate: Candidate) -> RemovalRecord:
        """Count one more machine out, and write down the arithmetic."""
        machine, claim = candidate.machine, candidate.machine.claim
        self._note_those_that_only_tell(candidate)
        self._out += 1
        self._count(candidate, again=False)
        if not machine.is_marked:
            self._serving -= 1
        return RemovalRecord(
            claim=claim.name,
            node_pool=claim.node_pool,
            reason=candidate.reason,
            rule=candidate.rule,
            since=candidate.since,
            usd_per_hour=claim.usd_per_hour,
            node=machine.node.name if machine.node else None,
            budget=self._use(candidate.reason),
            capacity=claim.capacity,
            stack=claim.stack,
        )

    def _use(self, reason: DisruptionReason) -> BudgetUse:
        base, bound = self._standing.base, tightest(self._bounds(reason))
        if bound is None:
            return BudgetUse(budget=UNLIMITED, base=base, allowed=base, used=self._out)
        return BudgetUse(budget=bound.budget, base=base, allowed=bound.allowed, used=bound.used)

    def _bounds(self, reason: DisruptionReason) -> list[Bound]:
        """Every bound that acts on the reason, as things stand, the pool's own first."""
        if reason not in self._own:
            self._own[reason] = said_by_pool(self._standing.pool, reason, self._standing.base, self._now)
        found = [bound for said in self._own[reason] for bound in bounds(said, self._out)]
        for rule in self._about(reason):
            if rule.said.holds:
                found += bounds(rule.said, self._out, self._begun(rule))
        return found

    def _about(self, reason: DisruptionReason) -> list[RuleOnPool]:
        return [rule for rule in self._rules if rule.is_about(reason)]

    def _acting_on(self, reason: DisruptionReason) -> list[RuleOnPool]:
        return [rule for rule in self._about(reason) if rule.rule.enforcement is Enforcement.DENY]

    def _begun(self, rule: RuleOnPool) -> int:
        """How many have gone in the rule's opening so far, those of this pass counted."""
        return len(self._counted_by(rule))

    def _counted_by(self, rule: RuleOnPool) -> set[str]:
        return self._counted.setdefault(rule.rule.name, set(rule.said.begun - self._asked_anew))

    def _count(self, candidate: Candidate, *, again: bool) -> None:
        """Count a node that goes; ``again``: one that stays marked, where it counted before."""
        claim = candidate.machine.claim.name
        for rule in self._rules:
            if claim in rule.said.begun if again else rule.is_about(candidate.reason):
                self._counted_by(rule).add(claim)

    def _note_those_that_only_tell(self, candidate: Candidate) -> None:
        for rule in self._about(candidate.reason):
            if rule.rule.enforcement is Enforcement.DENY:
                continue
            self._notes.erred(rule.said)
            kept = rule.outside_window() or rule.no_candidate(candidate.machine, candidate.reason)
            if kept is not None:
                self._notes.kept(rule.rule, kept)
            if kept is not None or any(not bound.left for bound in bounds(rule.said, self._out, self._begun(rule))):
                self._notes.would_keep(rule.rule, candidate.machine)
