"""Packing problems small enough to try everything, the best answer by trying everything, and what an answer must be."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import cache

from hypothesis import strategies as st

from engine.scheduling.packing.problem import NodeKind, PackClass, Packing, PackingProblem


def best_by_trying_all(problem: PackingProblem) -> tuple[int, int]:
    """The fewest pods that must be left out, and the least cost of placing the others."""

    @cache
    def best(pods: tuple[int, ...], mosts: tuple[int, ...], limits: tuple[int, ...]) -> tuple[int, int]:
        first = next((index for index, count in enumerate(pods) if count), None)
        if first is None:
            return 0, 0
        without = tuple(count - (index == first) for index, count in enumerate(pods))
        left_out, cost = best(without, mosts, limits)
        answers = [(left_out + 1, cost)]
        for index, kind in enumerate(problem.kinds):
            after = tuple(limit - took for limit, took in zip(limits, kind.takes, strict=True))
            if not mosts[index] or any(each < 0 for each in after):
                continue
            fewer = tuple(most - (place == index) for place, most in enumerate(mosts))
            for load in loads(problem, index, pods):
                if load[first]:
                    left_out, cost = best(tuple(a - b for a, b in zip(pods, load, strict=True)), fewer, after)
                    answers.append((left_out, cost + kind.micros_per_hour))
        return min(answers)

    total = sum(each.count for each in problem.classes)
    mosts = tuple(total if each.most is None else each.most for each in problem.kinds)
    return best(tuple(each.count for each in problem.classes), mosts, problem.limits)


def loads(problem: PackingProblem, kind: int, pods: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Everything that a node of the kind may hold."""
    ranges = [range(count + 1 if kind in each.kinds else 1) for count, each in zip(pods, problem.classes, strict=True)]
    for load in itertools.product(*ranges):
        if fits(problem, kind, dict(enumerate(load))):
            yield load


def fits(problem: PackingProblem, kind: int, load: dict[int, int]) -> bool:
    """Whether a node of the kind has the room and may hold each."""
    if any(count and kind not in problem.classes[index].kinds for index, count in load.items()):
        return False
    return all(
        sum(count * problem.classes[index].requests[resource] for index, count in load.items()) <= room
        for resource, room in enumerate(problem.kinds[kind].room)
    )


def check(problem: PackingProblem, packing: Packing) -> None:
    """That an answer is one: everybody counted, on nodes that hold them, within the limits, at the price it says."""
    counted = Counter(dict(packing.unplaced))
    for each in packing.nodes:
        assert each.nodes > 0
        assert each.pods
        assert all(count > 0 for _, count in each.pods)
        assert fits(problem, each.kind, dict(each.pods))
        for index, count in each.pods:
            counted[index] += count * each.nodes
    assert all(counted[index] == each.count for index, each in enumerate(problem.classes))
    assert all(count > 0 for _, count in packing.unplaced)
    bought = Counter[int]()
    for each in packing.nodes:
        bought[each.kind] += each.nodes
    for index, kind in enumerate(problem.kinds):
        assert kind.most is None or bought[index] <= kind.most
    for place, limit in enumerate(problem.limits):
        assert sum(problem.kinds[kind].takes[place] * nodes for kind, nodes in bought.items()) <= limit
    assert packing.cost_micros == sum(problem.kinds[kind].micros_per_hour * nodes for kind, nodes in bought.items())
    assert packing.lower_bound_micros <= packing.cost_micros


@st.composite
def problems(draw: st.DrawFn, *, limited: bool = False) -> PackingProblem:
    """Up to four kinds, three classes and three pods of each, so that the best can be found by trying all."""
    amount = st.integers(0, 12)
    kinds = [
        NodeKind(
            room=(draw(st.integers(1, 24)), draw(st.integers(1, 24))),
            micros_per_hour=draw(st.integers(0, 40)) * 10_000,
            most=draw(st.none() | st.integers(0, 3)) if limited else None,
            takes=(draw(st.integers(0, 4)),) if limited else (),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    classes = [
        PackClass(
            requests=(draw(amount), draw(amount)),
            count=draw(st.integers(0, 3)),
            kinds=draw(st.frozensets(st.integers(0, len(kinds) - 1))),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    return PackingProblem(tuple(classes), tuple(kinds), (draw(st.integers(0, 12)),) if limited else ())
