"""Whole nodes a few at a time, with new loads for the pods that are still left: what small problems need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from engine.scheduling.packing.first_fit import Bought, first_fit, orders
from engine.scheduling.packing.generation import Generation
from engine.scheduling.packing.integers import left_over, within_limits
from engine.scheduling.packing.master import Column, Optimum
from engine.scheduling.packing.part import Part
from engine.scheduling.packing.search import Ints

# Of each remainder's own column generation.
_MOST_TURNS = 15


@frozen(eq=False)
class Dive:
    """The nodes it ended with, columns that were good for some remainder, and the steps used."""

    bought: tuple[Bought, ...]
    columns: tuple[Column, ...]
    steps: int


def dive(part: Part, columns: Sequence[Column], optimum: Optimum, most_steps: int) -> Dive:
    """Keeps the whole nodes of the optimum, or its largest fraction made whole; then asks again for the pods left over,
    until so many steps are used.

    Raises SolverFailed.
    """
    bought: list[Bought] = []
    found: dict[Column, None] = {}
    rest, steps = part, 0
    while True:
        kept = _surest(rest, columns, optimum)
        bought += kept
        counts, limits = left_over(rest, kept)
        rest = evolve(rest, counts=counts, limits=limits)
        if not counts.any():
            break
        order = next(orders(rest))
        filled, _ = first_fit(rest, counts, order, limits)
        if not (kept and filled and steps < most_steps):
            bought += filled
            break
        generation = Generation(rest, (*_cut_to(counts, columns), *(Column(it.kind, it.load) for it in filled)))
        for _ in range(_MOST_TURNS):
            steps += generation.turn()
            if generation.is_done:
                break
        if generation.optimum is None:
            break
        optimum = generation.optimum
        columns = generation.master.columns[: len(optimum.amounts)]
        found |= dict.fromkeys(columns[index] for index in np.flatnonzero(optimum.amounts > 0).tolist())
    return Dive(tuple(bought), tuple(found), steps)


def _surest(part: Part, columns: Sequence[Column], optimum: Optimum) -> list[Bought]:
    amounts = np.floor(optimum.amounts + 1e-6).astype(np.int64)
    if not amounts.any() and len(amounts):
        amounts[int(np.argmax(optimum.amounts))] = 1
    return within_limits(part, columns, amounts)


def _cut_to(counts: Ints, columns: Sequence[Column]) -> list[Column]:
    """The columns without pods that are no longer there."""
    left = counts.tolist()
    cut = [
        (each.kind, tuple((place, min(pods, left[place])) for place, pods in each.load if left[place]))
        for each in columns
    ]
    return [Column(kind, load) for kind, load in cut if load]
