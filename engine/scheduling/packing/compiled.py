"""The search, compiled when it is first asked for, and kept on disk from then on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from engine.scheduling.packing import filling, search


@cache
def compiled(function: Callable[..., Any]) -> Any:
    """The function, compiled. The first time on a machine this takes seconds; later only the compiler's import does.

    The compiler keeps what it made beside the source, or in the user's own cache where that may not be written to, and
    makes it anew when the source has changed.
    """
    # Its import alone takes most of a second, so who packs nothing does not pay for it.
    import numba

    return numba.njit(cache=True)(function)


def compile_ahead() -> None:
    """Compiles what packing calls, if that is not on disk already, so that no first plan waits for it."""
    requests, values, counts = np.ones((2, 1), np.int64), np.ones(2, np.int64), np.ones(2, np.int64)
    room = np.full(1, 2, np.int64)
    best_load(requests, values, counts, room, weighing(requests, values, room, 1), 0, 10)
    rooms, takes, nothing = np.full((1, 1), 2, np.int64), np.zeros((1, 0), np.int64), np.zeros(0, np.int64)
    fits, first = np.ones((1, 2), np.int64), np.zeros(1, np.int64)
    fill(requests, rooms, first, fits, takes, counts, first, nothing, 2)
    cheapest_for(rooms, first, fits, takes, requests, 0, first, first)
    yes = np.ones((1, 1), np.bool_)
    unbeaten(first, rooms, takes, yes[0], first, yes)


def best_load(*asked: Any) -> tuple[int, int, search.Ints, int]:
    """As search.best_load, fast."""
    value, bound, load, steps = compiled(search.best_load)(*asked)
    return int(value), int(bound), load, int(steps)


def fill(*asked: Any) -> tuple[search.Ints, ...]:
    """As filling.fill, fast."""
    found: tuple[search.Ints, ...] = compiled(filling.fill)(*asked)
    return found


def cheapest_for(*asked: Any) -> int:
    """As filling.cheapest_for, fast."""
    return int(compiled(filling.cheapest_for)(*asked))


def unbeaten(*asked: Any) -> filling.Bools:
    """As filling.unbeaten, fast."""
    kept: filling.Bools = compiled(filling.unbeaten)(*asked)
    return kept


def weighing(*asked: Any) -> search.Floats:
    """As search.weighing, fast."""
    prices: search.Floats = compiled(search.weighing)(*asked)
    return prices
