"""From parts of nodes to whole nodes: rounding with first fit for the rest, and an integer program over the columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import highspy
import numpy as np

from engine.scheduling.packing import compiled
from engine.scheduling.packing.first_fit import Bought, first_fit, nodes_within, orders
from engine.scheduling.packing.master import MICROS, Column, Optimum, entries, penalty_dollars, quiet_solver
from engine.scheduling.packing.part import Load, Part
from engine.scheduling.packing.search import Ints

# Of an integer program: nodes of its tree, and how near to its own bound is near enough.
_MOST_TREE_NODES = 10
_NEAR_ENOUGH = 1e-4
# What it counts as, for each class and column.
_STEPS_OF_A_CELL = 500
# Columns that cost more than this part of their price above what their pods are worth are not tried.
_PROMISING = 0.01
_NEARLY_WHOLE = 1e-6
_SHARES_ROUNDED_UP = (1.0 + _NEARLY_WHOLE, 0.9, 0.75, 0.5)


def rounded(part: Part, columns: Sequence[Column], optimum: Optimum) -> Iterator[tuple[Bought, ...]]:
    """Whole nodes of the optimum, its remainders rounded up from a share on, and first fit for the pods left over."""
    for share in _SHARES_ROUNDED_UP:
        amounts = np.floor(optimum.amounts + 1 - share + _NEARLY_WHOLE).astype(np.int64)
        kept = within_limits(part, columns, amounts)
        left, limits = left_over(part, kept)
        more, _ = first_fit(part, left, next(orders(part)), limits)
        yield (*kept, *more)


def within_limits(part: Part, columns: Sequence[Column], amounts: Ints) -> list[Bought]:
    """So many nodes of each column, in their order, as the limits leave room for."""
    kept, limits = [], part.limits.copy()
    # A solver's nothing may be a little less.
    for index in np.flatnonzero(amounts > 0).tolist():
        column = columns[index]
        nodes = min(int(amounts[index]), nodes_within(part, column.kind, limits))
        limits -= nodes * part.takes[column.kind]
        if nodes:
            kept.append(Bought(column.kind, column.load, nodes))
    return kept


def left_over(part: Part, bought: Sequence[Bought]) -> tuple[Ints, Ints]:
    """Pods by class that the nodes do not hold, and what is left of the limits."""
    left, limits = part.counts.copy(), part.limits.copy()
    for each in bought:
        for place, pods in each.load:
            left[place] -= each.nodes * pods
    if len(limits):
        for each in bought:
            limits -= each.nodes * part.takes[each.kind]
    return np.maximum(left, 0), limits


def steps_of_integer_program(part: Part, columns: int) -> int:
    """What an integer program over so many columns counts as."""
    return _STEPS_OF_A_CELL * len(part.counts) * columns


def promising(part: Part, columns: Sequence[Column], optimum: Optimum) -> list[Column]:
    """Columns that the optimum uses or nearly does."""
    kinds = np.array([each.kind for each in columns], dtype=np.int64)
    prices = part.prices[kinds] / MICROS
    each_worth = optimum.worth.tolist()
    worth = np.array([sum(pods * each_worth[place] for place, pods in each.load) for each in columns])
    costs = prices - part.takes[kinds] @ optimum.limit_worth - worth
    return [columns[index] for index in np.flatnonzero(costs <= _PROMISING * prices).tolist()]


def integer_optimum(part: Part, columns: Sequence[Column]) -> tuple[Bought, ...] | None:
    """The best whole numbers of the columns that a bounded search finds; None if it finds none.

    It is not told of what is known so far: HiGHS 1.16 takes a starting point's cost wrongly where presolve has fixed a
    part of it, and then returns it as the optimum. Its bound is not used as one for the same want of trust.
    """
    solver = quiet_solver()
    solver.setOptionValue("mip_max_nodes", _MOST_TREE_NODES)
    solver.setOptionValue("mip_rel_gap", _NEAR_ENOUGH)
    infinity, classes = highspy.kHighsInf, len(part.counts)
    for count in part.counts.tolist():
        solver.addRow(float(count), infinity, 0, np.array([], np.int32), np.array([], np.float64))
    for limit in part.limits.tolist():
        solver.addRow(-infinity, float(limit), 0, np.array([], np.int32), np.array([], np.float64))
    for column in columns:
        rows, amounts = entries(part, column)
        solver.addCol(float(part.prices[column.kind]) / MICROS, 0.0, infinity, len(rows), rows, amounts)
    left_out = classes if len(part.limits) else 0
    for place in range(left_out):
        solver.addCol(penalty_dollars(part), 0.0, infinity, 1, np.array([place], np.int32), np.array([1.0]))
    variables = np.arange(len(columns) + left_out, dtype=np.int32)
    solver.changeColsIntegrality(len(variables), variables, np.array([highspy.HighsVarType.kInteger] * len(variables)))
    solver.run()
    if solver.getInfo().primal_solution_status != highspy.kSolutionStatusFeasible:
        return None
    amounts = np.rint(np.array(solver.getSolution().col_value)[: len(columns)]).astype(np.int64)
    bought = within_limits(part, columns, amounts)
    left, limits = left_over(part, bought)
    more, _ = first_fit(part, left, range(classes), limits)
    return (*bought, *more)


def trimmed(part: Part, bought: Iterable[Bought]) -> tuple[Bought, ...]:
    """The same without pods beyond those there are, each node then of the cheapest kind that holds its load."""
    left, prices = part.counts.tolist(), part.prices.tolist()
    kept: dict[Column, int] = {}
    for each in sorted(bought, key=lambda it: (-prices[it.kind], it.kind, it.load)):
        nodes = each.nodes
        while nodes:
            load = tuple((place, min(pods, left[place])) for place, pods in each.load if left[place])
            if not load:
                break
            alike = min(nodes, *(left[place] // pods for place, pods in load))
            for place, pods in load:
                left[place] -= alike * pods
            nodes -= alike
            column = Column(_cheapest_for(part, each.kind, load), load)
            kept[column] = kept.get(column, 0) + alike
    return tuple(
        Bought(it.kind, it.load, nodes) for it, nodes in sorted(kept.items(), key=lambda pair: _content(pair[0]))
    )


def _content(column: Column) -> tuple[int, Load]:
    return column.kind, column.load


def _cheapest_for(part: Part, kind: int, load: Load) -> int:
    """Itself or the cheapest other kind that holds the load and takes no more of any limit."""
    classes, pods = np.array(load, np.int64).T.copy()
    return compiled.cheapest_for(part.rooms, part.by_price, part.fits, part.takes, part.requests, kind, classes, pods)


def cost_micros(part: Part, bought: Iterable[Bought]) -> int:
    """What the nodes cost together an hour."""
    prices = part.prices.tolist()
    return sum(prices[each.kind] * each.nodes for each in bought)


def unplaced(part: Part, bought: Sequence[Bought]) -> Ints:
    """How many pods of each class are on none of the nodes."""
    return left_over(part, bought)[0]
