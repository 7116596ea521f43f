"""The linear program over the loads found so far: how much of each, and what one more pod of a class is worth."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from attrs import frozen

from engine.scheduling.packing.part import Load, Part
from engine.scheduling.packing.search import Floats, Ints

# Money in the programs is in dollars: numbers near one are what solvers are made for.
MICROS = 1_000_000
# One for every program of the process. HiGHS has one pool of threads, and gives no answer to who asks for another size.
_THREADS = 1
# What leaving a pod out costs, in prices of the dearest kind: more than any node that could be for it alone.
_LEFT_OUT = 3


class SolverFailed(Exception):
    """HiGHS gave no optimum; what is known so far stands."""


@frozen
class Column:
    """A load of a kind of node, by places in the part."""

    kind: int
    load: Load


@frozen(eq=False)
class Optimum:
    """``amounts`` by column; ``worth`` of one more pod by class, ``limit_worth`` of one more of a limit, in dollars."""

    dollars: float
    amounts: Floats
    worth: Floats
    limit_worth: Floats


class Master:
    """Holds columns; each solution starts from the last one."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self.columns: list[Column] = []
        self._known: set[Column] = set()
        self._solver = quiet_solver()
        infinity = highspy.kHighsInf
        for count in part.counts.tolist():
            self._solver.addRow(float(count), infinity, 0, np.array([], np.int32), np.array([], np.float64))
        for limit in part.limits.tolist():
            self._solver.addRow(-infinity, float(limit), 0, np.array([], np.int32), np.array([], np.float64))
        self._left_out = len(part.counts) if len(part.limits) else 0
        dear = penalty_dollars(part)
        for place in range(self._left_out):
            self._solver.addCol(dear, 0.0, infinity, 1, np.array([place], np.int32), np.array([1.0]))

    def add(self, column: Column) -> bool:
        """Adds a column; tells whether it was new."""
        if column in self._known:
            return False
        self._known.add(column)
        self.columns.append(column)
        rows, amounts = entries(self._part, column)
        price = float(self._part.prices[column.kind]) / MICROS
        self._solver.addCol(price, 0.0, highspy.kHighsInf, len(rows), rows, amounts)
        return True

    def solve_for(self, counts: Ints, limits: Ints) -> Optimum:
        """The same for other counts and limits than the part's; it has those from then on. Raises SolverFailed."""
        for row, count in enumerate(counts.tolist()):
            self._solver.changeRowBounds(row, float(count), highspy.kHighsInf)
        for row, limit in enumerate(limits.tolist(), len(counts)):
            self._solver.changeRowBounds(row, -highspy.kHighsInf, float(limit))
        return self.solve()

    def solve(self) -> Optimum:
        """Raises SolverFailed."""
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverFailed(str(self._solver.getModelStatus()))
        solution, classes = self._solver.getSolution(), len(self._part.counts)
        duals = np.array(solution.row_dual)
        return Optimum(
            dollars=float(self._solver.getInfo().objective_function_value),
            amounts=np.array(solution.col_value)[self._left_out :],
            worth=np.maximum(0.0, duals[:classes]),
            limit_worth=np.minimum(0.0, duals[classes:]),
        )


def quiet_solver() -> Any:
    """A solver that says nothing and does the same every time."""
    solver: Any = _Quiet()  # type: ignore[no-untyped-call]
    solver.setOptionValue("threads", _THREADS)
    solver.setOptionValue("random_seed", 0)
    return solver


class _Quiet(highspy.Highs):
    """HiGHS prints its name where its callbacks are enabled, which is in its making: so it is silenced just before."""

    def enableCallbacks(self) -> None:  # noqa: N802
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def penalty_dollars(part: Part) -> float:
    """What a pod that is left out counts for, so that pods are left out only where limits leave no choice."""
    return _LEFT_OUT * float(part.prices.max(initial=0) + 1) / MICROS


def entries(part: Part, column: Column) -> tuple[np.ndarray[tuple[int], np.dtype[np.int32]], Floats]:
    """Rows and amounts of a column: the pods, then what it takes of limits."""
    takes = part.takes[column.kind].tolist()
    filled = [*column.load, *((len(part.counts) + limit, taken) for limit, taken in enumerate(takes) if taken)]
    return np.array([row for row, _ in filled], np.int32), np.array([amount for _, amount in filled], np.float64)
