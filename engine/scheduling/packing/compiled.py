"""The search, compiled when it is first asked for, and kept on disk from then on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from engine.scheduling.packing import search


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


def best_load(*asked: Any) -> tuple[int, int, search.Ints, int]:
    """As search.best_load, fast."""
    value, bound, load, steps = compiled(search.best_load)(*asked)
    return int(value), int(bound), load, int(steps)


def weighing(*asked: Any) -> search.Floats:
    """As search.weighing, fast."""
    prices: search.Floats = compiled(search.weighing)(*asked)
    return prices
