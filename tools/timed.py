"""How long something takes, by the clock and of the CPU: the least of some runs, since other work only ever adds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

from attrs import frozen

Answer = TypeVar("Answer")


@frozen
class Timed:
    """Seconds. ``first`` is the first run's by the clock: what is remembered from pass to pass was not yet known."""

    seconds: float
    cpu_seconds: float
    first: float


def timed(ask: Callable[[], Answer], runs: int) -> tuple[Timed, Answer]:
    """The last answer, too."""
    seconds, cpu = [], []
    for _ in range(runs):
        gc.collect()
        began, began_cpu = time.perf_counter(), time.process_time()
        answer = ask()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
    return Timed(round(min(seconds), 3), round(min(cpu), 3), round(seconds[0], 3)), answer
