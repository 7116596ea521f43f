"""One pool's count while candidates go, held against base capacity, the pool's own budgets and rules."""

from __future__ import annotations

from datetime import datetime

from engine.disruption.budget_notes import Notes
from engine.disruption.budget_rules import BudgetRules, RuleOnPool
from engine.disruption.budgets import PoolStanding, said_by_pool
from engine.disruption.candidate import Candidate
from engine.disruption.said import UNLIMITED, Bound, BudgetSaid, bounds, tightest
from engine.model.document import BudgetUse, RemovalRecord
from engine.model.reason import DisruptionReason
from engine.model.rule import Enforcement
from engine.model.stay import BaseCapacity, BudgetExhausted, StayReason


class Book:
    """One pool's count: each candidate that goes makes it fuller."""

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
        if self._would_be_short(candidate) and not candidate.has_to_go:
            return BaseCapacity(nodes=self._standing.pool.base_nodes)
        for rule in self._acting_on(candidate.reason):
            if (shut := rule.outside_window()) is not None:
                return shut
            self._notes.erred(rule.said)
        full = next((bound for bound in self._bounds(candidate.reason) if not bound.left), None)
        if full is None:
            return None
        return BudgetExhausted(budget=full.budget, allowed=full.allowed, used=full.used, error=full.error)

    def is_short(self, candidate: Candidate) -> bool:
        """Whether the pool would serve with fewer nodes than it keeps, if no other came."""
        return candidate.has_to_go and self._would_be_short(candidate)

    def _would_be_short(self, candidate: Candidate) -> bool:
        return not candidate.machine.is_marked and self._serving <= self._standing.pool.base_nodes

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

    def record(self, candidate: Candidate, *, stays: bool) -> RemovalRecord:
        """Count one more machine out, and write down the arithmetic. ``stays``: it serves until it is replaced."""
        machine, claim = candidate.machine, candidate.machine.claim
        self._note_those_that_only_tell(candidate)
        self._out += 1
        self._count(candidate, again=False)
        if not machine.is_marked and not stays:
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
