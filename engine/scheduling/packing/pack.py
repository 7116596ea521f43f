"""Packs at once, and better and better while there are steps left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import define, field

from engine.scheduling.packing.by_turns import whole_by_turns
from engine.scheduling.packing.diving import dive
from engine.scheduling.packing.first_fit import Bought, first_fit, orders
from engine.scheduling.packing.generation import Generation, resource_bound, steps_of_program
from engine.scheduling.packing.integers import (
    cost_micros,
    integer_optimum,
    promising,
    rounded,
    steps_of_integer_program,
    trimmed,
    unplaced,
)
from engine.scheduling.packing.master import Column, SolverFailed
from engine.scheduling.packing.part import Part
from engine.scheduling.packing.parting import parts_of
from engine.scheduling.packing.problem import PackedNodes, Packing, PackingProblem
from engine.scheduling.packing.small import all_full_loads

# Enough for some two hundred classes on some forty kinds of node that matter.
DEFAULT_STEPS = 16_000_000
# When that many steps are used, what is known by then is made whole: at the same points whatever steps are given, so
# that more of them never end worse.
_FIRST_ROUNDING, _BETWEEN_ROUNDINGS = 500_000, 2
# A search that has brought so little since the rounding before the last, of the cost and of the bound, is given up.
_LITTLE = 0.0005
# Integer programs may take as long as the searches before them did; once these are done, so many steps at least.
_STEPS_OF_THE_LAST = 8_000_000
# A search whose program could be solved fewer times than that is not begun: it would end before it found anything.
_FEWEST_TURNS = 20
# So near to the bound, as a part of it, there is no more to be had for the effort: that much at once, and as much more
# for so many steps.
_NEAR_ENOUGH, _STEPS_FOR_AS_MUCH_MORE = 0.0005, 1_000_000


@define(eq=False)
class _Work:
    """A part, the best nodes for it so far, and the search for better ones once it has begun."""

    part: Part
    best: tuple[Bought, ...]
    firsts: tuple[Column, ...]
    generation: Generation | None = None
    is_done: bool = False
    has_all_loads: bool = False
    used: int = 0
    _used_by_programs: int = 0
    _known_at: list[tuple[int, int]] = field(factory=list)
    _rank: tuple[int, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rank = self._rank_of(self.best)

    @classmethod
    def begun(cls, part: Part) -> _Work:
        """With the best of several first fits."""
        tried = [trimmed(part, first_fit(part, part.counts, order, part.limits)[0]) for order in orders(part)]
        firsts = dict.fromkeys(Column(each.kind, each.load) for bought in tried for each in bought)
        work = cls(part, tried[0], tuple(firsts))
        for each in tried[1:]:
            work._keep(each)
        work.is_done = not work._is_worth_more_work
        return work

    def offer(self, bought: Iterable[Bought]) -> None:
        """Keeps the nodes if they leave fewer pods out, or as many and cost less."""
        self._keep(trimmed(self.part, bought))

    def _keep(self, lean: tuple[Bought, ...]) -> None:
        rank = self._rank_of(lean)
        if rank < self._rank:
            self.best, self._rank = lean, rank

    def _rank_of(self, bought: tuple[Bought, ...]) -> tuple[int, int]:
        return int(unplaced(self.part, bought).sum()), cost_micros(self.part, bought)

    @property
    def bound_micros(self) -> int:
        """What the pods that ``best`` holds cost at the least."""
        held = self.part.counts - unplaced(self.part, self.best)
        return resource_bound(self.part, held) if self.generation is None else self.generation.bound_of(held)

    @property
    def steps_of_turn(self) -> int:
        """What the next turn uses at the least."""
        columns = self.firsts if self.generation is None else self.generation.master.columns
        return steps_of_program(self.part, len(columns))

    def turn(self) -> int:
        """Searches on; returns the steps used."""
        before = self.used
        if self.generation is None:
            loads, steps = all_full_loads(self.part)
            self.used += steps
            self.has_all_loads = bool(loads)
            self.generation = Generation(self.part, (*self.firsts, *loads))
        grain = self.generation.grains_done
        try:
            self.used += self.generation.turn()
        except SolverFailed:
            self.is_done = True
            return self.used - before
        if self.generation.is_done:
            self.is_done = True
            self.make_whole()
            if self._is_worth_more_work:
                self._dive(self.generation)
        elif self.generation.grains_done > grain:
            self.make_whole()
        return self.used - before

    @property
    def _is_worth_more_work(self) -> bool:
        near_enough = _NEAR_ENOUGH * (1 + self.used / _STEPS_FOR_AS_MUCH_MORE)
        return self._rank > (0, int(self.bound_micros * (1 + near_enough)))

    @property
    def _steps_to_make_whole(self) -> int:
        return max(self.used, _STEPS_OF_THE_LAST) if self.is_done else self.used

    def _dive(self, known: Generation) -> None:
        if known.optimum is None:
            return
        columns = known.master.columns[: len(known.optimum.amounts)]
        try:
            dived = dive(self.part, columns, known.optimum, self._steps_to_make_whole)
        except SolverFailed:
            return
        self.used += dived.steps
        self.offer(dived.bought)
        if self._is_worth_more_work:
            self._try_program(known, dived.columns)

    def make_whole(self) -> None:
        """Tries whole nodes of what was found so far."""
        known = self.generation
        if known is None or known.optimum is None:
            return
        columns = known.master.columns[: len(known.optimum.amounts)]
        for each in rounded(self.part, columns, known.optimum):
            self.offer(each)
        if self._is_worth_more_work:
            self._try_by_turns(columns)
        if self._is_worth_more_work:
            self._try_program(known)
        self.is_done = self.is_done or not self._is_worth_more_work

    def stand_back(self) -> None:
        """At a rounding: gives up if nothing has come of the last steps, which were most of all."""
        (left_out, cost), bound = self._rank, self.bound_micros
        self._known_at.append((cost, bound))
        if len(self._known_at) > 2 and not left_out:
            cost_before, bound_before = self._known_at[-3]
            is_vain = cost > cost_before * (1 - _LITTLE) and bound < bound_before * (1 + _LITTLE)
            self.is_done = self.is_done or is_vain

    def _try_by_turns(self, columns: Sequence[Column]) -> None:
        try:
            self.offer(whole_by_turns(self.part, columns))
        except SolverFailed:
            return

    def _try_program(self, known: Generation, more: Iterable[Column] = ()) -> None:
        if known.optimum is None:
            return
        columns = known.master.columns[: len(known.optimum.amounts)]
        good = columns if self.has_all_loads else promising(self.part, columns, known.optimum)
        own = [Column(each.kind, each.load) for each in self.best]
        tried = list(dict.fromkeys([*good, *own, *more]))
        steps = self._used_by_programs + steps_of_integer_program(self.part, len(tried))
        if steps > self._steps_to_make_whole:
            return
        self._used_by_programs = steps
        found = integer_optimum(self.part, tried)
        if found is not None:
            self.offer(found)


def pack(problem: PackingProblem, steps: int = DEFAULT_STEPS) -> Packing:
    """The cheapest packing found in so many steps: none gives the best of some first fits, and its distance from a
    simple bound; more never give anything worse.

    A step is one look at one class in one search, so the answer depends on nothing but the problem and the steps. A
    turn of the search that has begun is ended; none is begun whose program alone counts as more than is left. Pods are
    left out only where no kind holds them or limits are in the way, and as few as are found; of those that stay, the
    cost is the least that is found.
    """
    parts, homeless = parts_of(problem)
    works = [_Work.begun(part) for part in parts]
    for work in works:
        work.is_done = work.is_done or steps < _FEWEST_TURNS * work.steps_of_turn
    used, next_rounding = 0, _FIRST_ROUNDING
    while used < steps:
        waiting = [work for work in works if not work.is_done and used + work.steps_of_turn <= steps]
        if not waiting:
            break
        for work in waiting:
            used += work.turn()
        if used >= next_rounding:
            for work in waiting:
                if not work.is_done:
                    work.make_whole()
                    work.stand_back()
            next_rounding *= _BETWEEN_ROUNDINGS
    return _packing(problem, works, homeless, used)


def _packing(problem: PackingProblem, works: Iterable[_Work], homeless: Iterable[int], steps: int) -> Packing:
    nodes: list[PackedNodes] = []
    left_out = {index: problem.classes[index].count for index in homeless}
    cost = bound = 0
    for work in works:
        part, cost, bound = work.part, cost + cost_micros(work.part, work.best), bound + work.bound_micros
        for each in work.best:
            pods = [(part.class_indices[place], held) for place, held in each.load]
            nodes.append(PackedNodes(part.kind_indices[each.kind], tuple(sorted(pods)), each.nodes))
        unplaced_here = unplaced(part, work.best)
        left_out |= {part.class_indices[i]: int(unplaced_here[i]) for i in np.flatnonzero(unplaced_here).tolist()}
    return Packing(
        nodes=tuple(sorted(nodes, key=lambda each: (each.kind, each.pods))),
        unplaced=tuple(sorted(left_out.items())),
        cost_micros=cost,
        lower_bound_micros=bound,
        steps=steps,
    )
