"""How long something takes, by the clock and of the CPU: the least of some runs, since other work only ever adds.

Answers of earlier decisions are forgotten before each run: what was answered a moment ago takes no time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

from attrs import frozen

from engine.decide import remembered
from engine.scheduling import steps

Answer = TypeVar("Answer")


@frozen
class Timed:
    """Seconds. ``first`` is the first run's by the clock: what is prepared once for a catalog was not there yet."""

    seconds: float
    cpu_seconds: float
    first: float


def timed(ask: Callable[[], Answer], runs: int) -> tuple[Timed, Answer]:
    """The last answer, too."""
    seconds, cpu = [], []
    for _ in range(runs):
        remembered.forget()
        steps.forget()
        gc.collect()
        # What stands is never looked at again by the collector, as in the loop that reconciles.
        gc.freeze()
        began, began_cpu = time.perf_counter(), time.process_time()
        answer = ask()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
        gc.unfreeze()
    return Timed(round(min(seconds), 3), round(min(cpu), 3), round(seconds[0], 3)), answer
