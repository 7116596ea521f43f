"""The search inside: held against trying everything, whole and cut short; compiled and not."""

from __future__ import annotations

import itertools

import numpy as np
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.scheduling.packing import compiled, search
from engine.scheduling.packing.search import Floats, Ints

ENDLESS = 10**9


@frozen(eq=False)
class Sack:
    requests: Ints
    values: Ints
    counts: Ints
    room: Ints

    def best(self) -> int:
        """By trying everything."""
        loads = itertools.product(*(range(count + 1) for count in self.counts.tolist()))
        return max(int(np.array(each) @ self.values) for each in loads if self.holds(np.array(each)))

    def holds(self, load: Ints) -> bool:
        return bool((load @ self.requests <= self.room).all() and (load <= self.counts).all())

    def weights(self) -> Floats:
        return search.weighing(self.requests, self.values, self.room, 50)


@st.composite
def sacks(draw: st.DrawFn) -> Sack:
    classes, resources = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    amounts = st.lists(st.integers(0, 9), min_size=resources, max_size=resources).filter(any)
    return Sack(
        requests=np.array([draw(amounts) for _ in range(classes)], np.int64),
        values=np.array([draw(st.integers(0, 50)) for _ in range(classes)], np.int64),
        counts=np.array([draw(st.integers(0, 4)) for _ in range(classes)], np.int64),
        room=np.array([draw(st.integers(0, 20)) for _ in range(resources)], np.int64),
    )


@settings(max_examples=300, deadline=None)
@given(sacks())
def test_the_search_finds_the_most_valuable_load(sack: Sack) -> None:
    value, bound, load, _ = search.best_load(
        sack.requests, sack.values, sack.counts, sack.room, sack.weights(), 0, ENDLESS
    )
    assert value == bound == sack.best() == int(load @ sack.values)
    assert sack.holds(load)


@settings(max_examples=300, deadline=None)
@given(sacks(), st.integers(1, 12))
def test_a_search_that_is_cut_short_still_bounds_what_it_did_not_see(sack: Sack, steps: int) -> None:
    value, bound, load, _ = search.best_load(
        sack.requests, sack.values, sack.counts, sack.room, sack.weights(), 0, steps
    )
    assert value <= sack.best() <= bound
    assert value == int(load @ sack.values)
    assert sack.holds(load)


@settings(max_examples=100, deadline=None)
@given(sacks(), st.integers(0, 120))
def test_a_load_is_named_only_if_it_beats_what_is_to_be_beaten(sack: Sack, to_beat: int) -> None:
    value, bound, load, _ = search.best_load(
        sack.requests, sack.values, sack.counts, sack.room, sack.weights(), to_beat, ENDLESS
    )
    assert value == bound == max(to_beat, sack.best())
    assert load.any() == (sack.best() > to_beat)


@settings(max_examples=100, deadline=None)
@given(sacks(), st.integers(1, 40))
def test_compiling_changes_no_answer(sack: Sack, steps: int) -> None:
    weights = compiled.weighing(sack.requests, sack.values, sack.room, 50)
    assert np.allclose(weights, sack.weights())
    asked = (sack.requests, sack.values, sack.counts, sack.room, weights, 0, steps)
    one, other = search.best_load(*asked), compiled.best_load(*asked)
    assert (one[:2], one[2].tolist(), one[3]) == (other[:2], other[2].tolist(), other[3])
