"""The answer that is there at once, what makes whole nodes of parts, and that the compiler changes neither."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings

from engine.scheduling.packing import filling
from engine.scheduling.packing.by_turns import whole_by_turns
from engine.scheduling.packing.compiled import cheapest_for, fill, unbeaten
from engine.scheduling.packing.first_fit import Bought, first_fit, orders
from engine.scheduling.packing.integers import cost_micros, rounded, trimmed, unplaced
from engine.scheduling.packing.master import Column, Optimum
from engine.scheduling.packing.part import UNLIMITED, Part
from engine.scheduling.packing.parting import parts_of
from engine.scheduling.packing.problem import NodeKind, PackClass, PackingProblem
from tests.scheduling.packing.exhaustive import problems

MANY = settings(max_examples=200, deadline=None)


def assert_holds(part: Part, bought: Iterable[Bought]) -> None:
    """No node is overfilled, no class is where it may not be, no limit is exceeded."""
    limits = part.limits.copy()
    for each in bought:
        needed = sum((pods * part.requests[place] for place, pods in each.load), np.zeros_like(part.rooms[0]))
        assert (needed <= part.rooms[each.kind]).all()
        assert all(part.allowed[each.kind, place] for place, _ in each.load)
        limits -= each.nodes * part.takes[each.kind]
    assert (limits >= 0).all()


@MANY
@given(problems(limited=True))
def test_first_fit_overfills_no_node_and_counts_whom_it_leaves_out(problem: PackingProblem) -> None:
    for part in parts_of(problem)[0]:
        for order in orders(part):
            bought, left = first_fit(part, part.counts, order, part.limits)
            assert_holds(part, bought)
            assert (left == unplaced(part, bought)).all()


@MANY
@given(problems())
def test_first_fit_without_limits_leaves_nobody_out(problem: PackingProblem) -> None:
    for part in parts_of(problem)[0]:
        if not len(part.limits):
            assert not first_fit(part, part.counts, next(orders(part)), part.limits)[1].any()


@MANY
@given(problems(limited=True))
def test_trimming_costs_no_more_and_leaves_nobody_out(problem: PackingProblem) -> None:
    for part in parts_of(problem)[0]:
        bought, left = first_fit(part, part.counts, next(orders(part)), part.limits)
        lean = trimmed(part, bought)
        assert_holds(part, lean)
        assert cost_micros(part, lean) <= cost_micros(part, bought)
        assert (unplaced(part, lean) == left).all()


@MANY
@given(problems(limited=True))
def test_whole_nodes_by_turns_overfill_no_node_and_exceed_no_limit(problem: PackingProblem) -> None:
    for part in parts_of(problem)[0]:
        bought, _ = first_fit(part, part.counts, next(orders(part)), part.limits)
        columns = list(dict.fromkeys(Column(each.kind, each.load) for each in bought))
        if columns:
            assert_holds(part, whole_by_turns(part, columns))


def test_by_turns_whole_parts_are_kept_and_the_rest_is_asked_about_again() -> None:
    # Two thirds of a node hold what is left of the first class, once its pairs are on nodes.
    [part], _ = parts_of(PackingProblem((PackClass((1,), 7, frozenset({0})),), (NodeKind((2,), 10),)))
    bought = whole_by_turns(part, [Column(0, ((0, 2),))])
    assert sum(each.nodes for each in bought) == 4
    assert not unplaced(part, bought).any()


@MANY
@given(problems(limited=True))
def test_what_is_compiled_answers_as_it_does_uncompiled(problem: PackingProblem) -> None:
    for part in parts_of(problem)[0]:
        order = np.arange(len(part.counts))
        asked = (part.requests, part.rooms, part.prices, part.fits, part.takes, part.counts, order, part.limits)
        for one, other in zip(fill(*asked, UNLIMITED), filling.fill(*asked, UNLIMITED), strict=True):
            assert (one == other).all()
        alone, pod = np.zeros(1, np.int64), np.ones(1, np.int64)
        holder = int(np.flatnonzero(part.fits[:, 0])[-1])
        sought = (part.rooms, part.by_price, part.fits, part.takes, part.requests, holder, alone, pod)
        assert cheapest_for(*sought) == filling.cheapest_for(*sought)
        endless, of_one, yes = (
            np.ones(len(part.prices), np.bool_),
            np.zeros_like(part.prices),
            np.ones((1, 1), np.bool_),
        )
        compared = (part.prices, part.rooms, part.takes, endless, of_one, yes)
        assert (unbeaten(*compared) == filling.unbeaten(*compared)).all()


def test_a_kind_is_beaten_by_a_cheaper_one_of_more_room_but_not_by_one_that_runs_out() -> None:
    prices, rooms, takes = np.array([5, 6]), np.array([[8], [4]]), np.zeros((2, 0), np.int64)
    of_one, yes = np.zeros(2, np.int64), np.ones((1, 1), np.bool_)
    assert filling.unbeaten(prices, rooms, takes, np.array([True, True]), of_one, yes).tolist() == [True, False]
    assert filling.unbeaten(prices, rooms, takes, np.array([False, True]), of_one, yes).tolist() == [True, True]


def test_a_solvers_nothing_that_is_a_little_less_buys_no_node() -> None:
    kinds = (NodeKind((3,), 10, most=1), NodeKind((1,), 5))
    [part], _ = parts_of(PackingProblem((PackClass((1,), 3, frozenset({0, 1})),), kinds))
    columns = [Column(0, ((0, 3),)), Column(0, ((0, 2),))]
    nothing = np.zeros(1)
    found = list(rounded(part, columns, Optimum(10.0, np.array([1.0, -1e-9]), nothing, nothing)))
    assert found
    for bought in found:
        assert [each.nodes for each in bought] == [1]
