"""From candidates to removals: what every reason has in common.

A reason's own file says which machines it would let go and since when. Here they are put in order, and go one by one
as base capacity, the rules, the pool's budgets and the pass's cap allow. Only those that may go by all of these are
asked about: where would their pods go? One whose pods have another place on nodes that are up goes now; one that waits
for a node counts as going, so budgets bound how many are made ahead; one without any place gives its turn to the next.

A removal takes two passes or more. MARK cordons and taints the node and asks its pods to leave, RELEASE lets the
machine go once it is seen marked and empty. Budgets and caps are asked each time, marked machines first: a window that
shuts in between holds a marked node where it is. Nothing here takes a mark off again, not even when pending pods would
fit on the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime

from attrs import frozen

from engine.disruption.book import Book
from engine.disruption.budget_notes import Notes
from engine.disruption.budget_rules import BudgetRules
from engine.disruption.budgets import PoolStanding
from engine.disruption.candidate import Candidate
from engine.disruption.drifted import Rollouts
from engine.disruption.relocation import Relocation
from engine.model.plan import Removal, RemovalPhase, Verdict
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement
from engine.model.stay import InUse, RemovalCap, StayReason

# Machines without another place give their turn to others so often in one pass.
_ROUNDS = 6
Ask = Callable[[Sequence[Candidate], Set[str]], Mapping[str, Relocation]]


@frozen
class Choice:
    """What leaves, and why each other candidate stays, by claim. ``verdicts`` are of budget rules that erred, or that
    would have kept something if they did more than warn or count."""

    removals: tuple[Removal, ...]
    stays: Mapping[str, StayReason]
    verdicts: tuple[Verdict, ...] = ()


def nobody_moves(candidates: Sequence[Candidate], short: Set[str]) -> Mapping[str, Relocation]:
    """Nothing has to be there before any of these goes."""
    return {each.machine.name: Relocation() for each in candidates}


def choose(
    candidates: Iterable[Candidate],
    standings: Mapping[str, PoolStanding],
    *,
    cap: int,
    released: int,
    now: datetime,
    marked: int = 0,
    rules: BudgetRules | None = None,
    ask: Ask = nobody_moves,
    rollouts: Rollouts | None = None,
) -> Choice:
    """Let candidates go in their order.

    ``standings`` are by pool, with every candidate's machine counted in its base, and in ``out`` if and only if it is
    marked. ``cap`` bounds the marks of one pass, and its releases, of which ``marked`` and ``released`` are spent
    already on machines that are lost or failed. ``rules`` None: there are none. ``ask`` tells what becomes of the pods
    of machines, and of base capacity, given as claims, that others are to take over. A machine may be a candidate for
    several reasons; the first of them that lets it go does. ``rollouts`` None: no change is tried first.
    """
    ordered = sorted(candidates, key=lambda each: each.order)
    spent = {RemovalPhase.MARK: cap - marked, RemovalPhase.RELEASE: cap - released}
    found: Mapping[str, Relocation] = {}
    for _ in range(_ROUNDS):
        walk = _Walk(ordered, standings, cap, spent, now, rules, found, rollouts)
        if not walk.unasked:
            break
        found = ask(walk.unasked, walk.short)
    else:
        walk = _Walk(ordered, standings, cap, spent, now, rules, found, rollouts)
    return Choice(removals=tuple(walk.removals), stays=walk.stays, verdicts=walk.notes.verdicts())


class _Walk:
    """One walk through all candidates, with what is known of their pods' places so far."""

    def __init__(
        self,
        ordered: Sequence[Candidate],
        standings: Mapping[str, PoolStanding],
        cap: int,
        passing: Mapping[RemovalPhase, int],
        now: datetime,
        rules: BudgetRules | None,
        found: Mapping[str, Relocation],
        rollouts: Rollouts | None,
    ) -> None:
        self.notes = Notes()
        self._trials = rollouts.trials() if rollouts is not None else None
        self.removals: list[Removal] = []
        self.stays: dict[str, StayReason] = {}
        self.unasked: list[Candidate] = []
        self.short: set[str] = set()
        self._cap, self._passing, self._found = cap, dict(passing), found
        self._books = {name: Book(standing, rules, self.notes, now) for name, standing in standings.items()}
        self._taken: dict[str, int] = {}
        for relocation in found.values():
            for place in relocation.places if relocation.refused is None else ():
                if place.claim is not None:
                    self._taken[place.claim] = self._taken.get(place.claim, 0) + 1
        asked_anew: set[str] = set()
        for each in ordered:
            if each.machine.is_marked and each.machine.name not in asked_anew:
                asked_anew.add(each.machine.name)
                self._books[each.machine.pool.name].ask_anew(each)
        self._going: set[str] = set()
        by_machine: dict[str, int] = {}
        for each in ordered:
            by_machine[each.machine.name] = by_machine.get(each.machine.name, 0) + 1
        for each in ordered:
            by_machine[each.machine.name] -= 1
            if each.machine.name not in self._going:
                self._take(each, is_last=not by_machine[each.machine.name])

    def _take(self, candidate: Candidate, *, is_last: bool) -> None:
        machine = candidate.machine
        book = self._books[machine.pool.name]
        reason = self._objection(candidate, book)
        if reason is None:
            self._going.add(machine.name)
            self.stays.pop(machine.name, None)
            self._admit(candidate, book)
            return
        self.stays.setdefault(machine.name, reason)
        if is_last:
            book.leave(candidate)

    def _objection(self, candidate: Candidate, book: Book) -> StayReason | None:
        machine = candidate.machine
        if self._trials is not None and (waits := self._trials.objection(candidate)) is not None:
            return waits
        relocation = self._found.get(machine.name)
        if relocation is not None and relocation.refused is not None and self._moves(candidate, book):
            return relocation.refused
        taken = self._taken.get(machine.name, 0)
        if taken and candidate.reason is DisruptionReason.EMPTY:
            return InUse(pods=machine.workload, planned=taken)
        # Rules about one node come last: each look at a node costs, and most are held by a number already.
        return (
            book.objection(candidate)
            or (RemovalCap(cap=self._cap) if self._marks_now(candidate) and self._is_full(candidate) else None)
            or book.objection_of_rules(candidate)
        )

    def _moves(self, candidate: Candidate, book: Book) -> bool:
        """Whether anything has to be there in the machine's stead before it goes."""
        if candidate.phase is RemovalPhase.RELEASE:
            return False
        if candidate.has_to_go and not candidate.machine.is_marked:
            # Asked about even without pods: whoever moves in this pass must not move to it.
            return True
        return bool(candidate.machine.displaced) or book.is_short(candidate)

    def _marks_now(self, candidate: Candidate) -> bool:
        relocation = self._found.get(candidate.machine.name)
        return relocation is None or relocation.lets_go

    def _is_full(self, candidate: Candidate) -> bool:
        return self._passing[candidate.phase] <= 0

    def _admit(self, candidate: Candidate, book: Book) -> None:
        machine = candidate.machine
        if self._trials is not None:
            self._trials.begin(candidate)
        moves, is_short = self._moves(candidate, book), book.is_short(candidate)
        relocation = self._found.get(machine.name) if moves else Relocation()
        if relocation is None:
            self.unasked.append(candidate)
            if is_short:
                self.short.add(machine.name)
            relocation = Relocation(buys=True)
        if relocation.lets_go:
            phase = candidate.phase
            self._passing[phase] -= 1
            pods = tuple(pod.key for pod in machine.displaced) if moves else ()
            self.removals.append(
                Removal(
                    record=book.record(candidate, stays=False),
                    phase=phase,
                    pods=pods,
                    places=relocation.places,
                    delete_first=relocation.delete_first,
                )
            )
            return
        book.record(candidate, stays=not machine.is_marked)
        self.stays[machine.name] = AwaitsReplacement(relocation.awaits, candidate.why)
