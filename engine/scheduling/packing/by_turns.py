"""Whole nodes from parts of nodes, the surest first: after each few, the program is asked again for the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.scheduling.packing.first_fit import Bought, first_fit, nodes_within, orders
from engine.scheduling.packing.master import Column, Master, Optimum
from engine.scheduling.packing.part import Part
from engine.scheduling.packing.search import Ints

# So often the program is asked again; what is left by then is placed by first fit.
_MOST_TURNS = 40
# Fractions as large as that part of the largest are made whole together, and any from one half on.
_NEARLY_AS_SURE, _SURE = 0.8, 0.5
_NEARLY_WHOLE = 1e-6


def whole_by_turns(part: Part, columns: Sequence[Column]) -> tuple[Bought, ...]:
    """Makes nodes of the columns, whole ones. Raises SolverFailed."""
    master = Master(part)
    for column in columns:
        master.add(column)
    left, limits = part.counts.copy(), part.limits.copy()
    bought: list[Bought] = []
    for _ in range(_MOST_TURNS):
        if not left.any():
            break
        kept = _surest(part, columns, master.solve_for(left, limits), left, limits)
        if not kept:
            break
        bought += kept
    if left.any():
        more, _ = first_fit(part, left, next(orders(part)), limits)
        bought += more
    return tuple(bought)


def _surest(part: Part, columns: Sequence[Column], optimum: Optimum, left: Ints, limits: Ints) -> list[Bought]:
    """Of each column its whole part; of the largest fractions one more, as long as pods are left for all of it. Takes
    them off what is left."""
    kept: list[Bought] = []
    whole = np.floor(optimum.amounts + _NEARLY_WHOLE)
    fractions = optimum.amounts - whole
    sure = min(_SURE, float(fractions.max(initial=0.0)) * _NEARLY_AS_SURE)
    for index in np.argsort(-optimum.amounts, kind="stable").tolist():
        column = columns[index]
        wanted = int(whole[index]) + int(fractions[index] >= max(sure, _NEARLY_WHOLE))
        if not wanted:
            continue
        held = min(int(left[place]) // pods for place, pods in column.load)
        nodes = min(wanted, max(held, int(not kept)), nodes_within(part, column.kind, limits))
        if nodes:
            for place, pods in column.load:
                left[place] = max(0, left[place] - nodes * pods)
            limits -= nodes * part.takes[column.kind]
            kept.append(Bought(column.kind, column.load, nodes))
    return kept
