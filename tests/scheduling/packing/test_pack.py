"""What a packing promises: held against trying everything on small problems, and against an independent check."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.scheduling.packing.pack import pack
from engine.scheduling.packing.problem import NodeKind, PackClass, PackedNodes, Packing, PackingProblem
from tests.scheduling.packing.exhaustive import best_by_trying_all, check, problems

STEPS = 200_000
MANY = settings(max_examples=300, deadline=None)
DOLLAR = 1_000_000


@MANY
@given(problems())
def test_a_small_problem_is_packed_within_two_per_cent_of_the_best_there_is(problem: PackingProblem) -> None:
    packing = pack(problem, STEPS)
    check(problem, packing)
    left_out, best = best_by_trying_all(problem)
    assert sum(count for _, count in packing.unplaced) == left_out
    assert packing.lower_bound_micros <= best
    assert best <= packing.cost_micros <= best * 1.02


@MANY
@given(problems(limited=True))
def test_limits_hold_and_leave_out_no_more_pods_than_they_must(problem: PackingProblem) -> None:
    packing = pack(problem, STEPS)
    check(problem, packing)
    left_out, best = best_by_trying_all(problem)
    assert sum(count for _, count in packing.unplaced) == left_out
    if not left_out:
        assert packing.lower_bound_micros <= best
        assert best <= packing.cost_micros <= best * 1.02


@MANY
@given(problems(limited=True), st.randoms(use_true_random=False))
def test_the_order_of_classes_and_kinds_changes_nothing(problem: PackingProblem, chance: object) -> None:
    kinds, classes = list(range(len(problem.kinds))), list(range(len(problem.classes)))
    chance.shuffle(kinds)  # type: ignore[attr-defined]
    chance.shuffle(classes)  # type: ignore[attr-defined]
    shuffled = PackingProblem(
        classes=tuple(
            PackClass(each.requests, each.count, frozenset(kinds.index(kind) for kind in each.kinds))
            for each in (problem.classes[index] for index in classes)
        ),
        kinds=tuple(problem.kinds[index] for index in kinds),
        limits=problem.limits,
    )
    one, other = pack(problem, STEPS), pack(shuffled, STEPS)
    assert (one.cost_micros, one.lower_bound_micros, one.steps) == (
        other.cost_micros,
        other.lower_bound_micros,
        other.steps,
    )
    assert contents(problem, one) == contents(shuffled, other)


@MANY
@given(problems(), st.lists(st.integers(0, 20_000), min_size=2, max_size=4))
def test_more_steps_never_end_worse(problem: PackingProblem, budgets: list[int]) -> None:
    packings = [pack(problem, steps) for steps in [0, *sorted(budgets)]]
    for packing in packings:
        check(problem, packing)
    costs = [each.cost_micros for each in packings]
    bounds = [each.lower_bound_micros for each in packings]
    assert costs == sorted(costs, reverse=True)
    assert bounds == sorted(bounds)


def test_a_burst_of_mixed_pods_is_packed_within_one_per_cent_of_its_bound() -> None:
    # Too many loads to list, few nodes of each: what neither rounding nor the first columns do well.
    sizes = [(3 + 5 * place % 17, 2 + 7 * place % 23, place % 3) for place in range(14)]
    problem = PackingProblem(
        classes=tuple(PackClass(size, 20 + place % 5, frozenset({0, 1, 2})) for place, size in enumerate(sizes)),
        kinds=(NodeKind((32, 32, 2), DOLLAR), NodeKind((64, 48, 8), 2 * DOLLAR), NodeKind((96, 128, 4), 3 * DOLLAR)),
    )
    at_once, packing = pack(problem, 0), pack(problem)
    check(problem, packing)
    assert packing.gap < 0.01
    assert at_once.gap > 0.05


def test_no_steps_give_a_packing_at_once_with_a_bound() -> None:
    problem = PackingProblem(
        classes=(PackClass((3, 1), 10, frozenset({0, 1})),),
        kinds=(NodeKind((4, 4), DOLLAR), NodeKind((12, 12), 2 * DOLLAR)),
    )
    packing = pack(problem, 0)
    check(problem, packing)
    assert packing.steps == 0
    # Three nodes of four, and a small one; thirty twelfths of the large kind at the least.
    assert packing.cost_micros == 6 * DOLLAR
    assert packing.lower_bound_micros == 5 * DOLLAR


def test_nothing_to_pack_costs_nothing() -> None:
    assert pack(PackingProblem((), ())) == Packing((), (), 0, 0, 0)
    none_of_it = PackingProblem((PackClass((1,), 0, frozenset({0})),), (NodeKind((1,), DOLLAR),))
    assert pack(none_of_it) == Packing((), (), 0, 0, 0)
    assert pack(none_of_it).gap == 0


def test_a_class_that_no_kind_holds_is_left_out_and_the_others_are_packed() -> None:
    problem = PackingProblem(
        classes=(
            PackClass((9,), 4, frozenset({0})),
            PackClass((1,), 2, frozenset({0})),
            PackClass((1,), 3, frozenset()),
        ),
        kinds=(NodeKind((8,), DOLLAR),),
    )
    packing = pack(problem)
    assert packing.unplaced == ((0, 4), (2, 3))
    assert packing.nodes == (PackedNodes(0, ((1, 2),), 1),)
    assert packing.lower_bound_micros <= packing.cost_micros == DOLLAR


def test_pods_that_ask_for_nothing_still_get_a_node() -> None:
    packing = pack(PackingProblem((PackClass((0,), 5, frozenset({0})),), (NodeKind((1,), DOLLAR),)))
    assert packing.nodes == (PackedNodes(0, ((0, 5),), 1),)


def test_a_cheap_kind_is_used_as_far_as_there_is_any_and_dearer_ones_take_the_rest() -> None:
    problem = PackingProblem(
        classes=(PackClass((1,), 10, frozenset({0, 1})),),
        kinds=(NodeKind((2,), 0, most=3), NodeKind((2,), DOLLAR)),
    )
    packing = pack(problem, STEPS)
    check(problem, packing)
    assert packing.cost_micros == 2 * DOLLAR
    assert packing.gap < 0.001


def test_a_limit_that_small_nodes_use_up_is_spent_on_large_ones() -> None:
    # Small nodes are cheaper for a pod, but only two nodes may be had.
    problem = PackingProblem(
        classes=(PackClass((1,), 8, frozenset({0, 1})),),
        kinds=(NodeKind((1,), DOLLAR, takes=(1,)), NodeKind((4,), 6 * DOLLAR, takes=(1,))),
        limits=(2,),
    )
    packing = pack(problem, STEPS)
    check(problem, packing)
    assert packing.unplaced == ()
    assert packing.nodes == (PackedNodes(1, ((0, 4),), 2),)


def test_where_limits_leave_room_for_no_node_nothing_is_searched() -> None:
    # Many sizes, of which a search would make much.
    sizes = [(3 + 5 * place % 17, 2 + 7 * place % 23) for place in range(14)]
    problem = PackingProblem(
        classes=tuple(PackClass(size, 20, frozenset({0, 1})) for size in sizes),
        kinds=(NodeKind((32, 32), DOLLAR, takes=(0, 2)), NodeKind((64, 48), 2 * DOLLAR, takes=(0, 3))),
        limits=(0, 1),
    )
    packing = pack(problem, STEPS)
    check(problem, packing)
    assert (packing.nodes, packing.steps) == ((), 0)
    assert packing.unplaced == tuple((place, 20) for place in range(14))


def test_a_class_barred_from_the_cheapest_kind_is_not_put_there() -> None:
    problem = PackingProblem(
        classes=(PackClass((1,), 3, frozenset({0, 1})), PackClass((1,), 3, frozenset({1}))),
        kinds=(NodeKind((3,), DOLLAR), NodeKind((3,), 2 * DOLLAR)),
    )
    packing = pack(problem, STEPS)
    check(problem, packing)
    assert packing.cost_micros == 3 * DOLLAR
    assert packing.gap < 0.001


@pytest.mark.parametrize(
    ("classes", "kinds", "limits", "said"),
    [
        ([PackClass((1, 2), 1, frozenset())], [NodeKind((1,), 1)], (), "one length"),
        ([PackClass((-1,), 1, frozenset())], [NodeKind((1,), 1)], (), "negative"),
        ([], [NodeKind((1,), 1, most=-1)], (), "negative"),
        ([PackClass((1,), 1, frozenset({1}))], [NodeKind((1,), 1)], (), "beyond the 1"),
        ([], [NodeKind((1,), 1)], (5,), "what it takes"),
    ],
)
def test_what_makes_no_sense_is_refused(
    classes: list[PackClass], kinds: list[NodeKind], limits: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        PackingProblem(tuple(classes), tuple(kinds), limits)


def contents(problem: PackingProblem, packing: Packing) -> list[tuple[object, ...]]:
    """The nodes, by what they are and hold instead of by index."""
    return sorted(
        (
            problem.kinds[each.kind].room,
            problem.kinds[each.kind].micros_per_hour,
            each.nodes,
            sorted((problem.classes[index].requests, count) for index, count in each.pods),
        )
        for each in packing.nodes
    )


@pytest.mark.parametrize("classes", [62, 1_200])
def test_any_number_of_classes_is_packed(classes: int) -> None:
    asked = tuple(PackClass((100 + number, 3_000 - number), 1, frozenset({0})) for number in range(classes))
    problem = PackingProblem(asked, (NodeKind((8_000, 24_000), DOLLAR),))
    packing = pack(problem, 600_000)
    check(problem, packing)
    assert packing.unplaced == ()
