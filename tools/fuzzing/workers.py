"""Cases in several processes, each of which may hang or crash without ending the others."""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any

from attrs import define, field

from tools.fuzzing.cases import Name
from tools.fuzzing.judging import Failure

# Of CPU time, so that a machine that does much else does not make a case look slow.
MOST_SECONDS = 10
_MOST_MEMORY = 4 * 2**30
_BATCH = 50


Judge = Callable[[Name, Callable[[], None]], Failure | str]
"""What is wrong with a case, else what became of it. It calls the function whenever it begins anew."""


def _work(cases: Connection, results: Connection, judge: Judge, most_seconds: float) -> None:
    """Takes cases until there are none; tells each before it begins with it, so that whoever hears knows the last one.

    Timers with their default effect end the process whatever it is at, a library's own loop included.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who hears of it ends this process, too
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    while (batch := cases.recv()) is not None:
        for name in batch:
            results.send(("begins", name))
            found = judge(name, lambda: _wind(most_seconds))
            _wind(0)
            results.send(("done", found))
        results.send(("wants more", None))


def _wind(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds)


@define
class _Worker:
    """A process, and what it was last heard to be at."""

    judge: Judge
    most_seconds: float
    process: Any = field(init=False)
    cases: Any = field(init=False)
    results: Any = field(init=False)
    at: Name | None = None
    batch: list[Name] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("fork")
        theirs, self.cases = context.Pipe(duplex=False)
        self.results, ours = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(theirs, ours, self.judge, self.most_seconds), daemon=True)
        self.process.start()
        theirs.close()
        ours.close()

    def give(self, batch: list[Name] | None) -> None:
        self.batch = batch or []
        self.cases.send(batch)

    def ended_by(self) -> str:
        self.process.join()
        code = self.process.exitcode
        if code == -signal.SIGPROF:
            return f"hangs: more than {self.most_seconds:g} seconds of CPU time"
        return f"crashes: the process ended with {signal.Signals(-code).name if code < 0 else code}"


class Fuzzing:
    """Runs cases in several processes and gathers what becomes of them."""

    def __init__(
        self, judge: Judge, workers: int, told: Callable[[Failure], None], most_seconds: float = MOST_SECONDS
    ) -> None:
        self._judge, self._workers, self._told, self._most_seconds = judge, workers, told, most_seconds
        self.counts: Counter[tuple[str, str]] = Counter()
        self.failures: list[Failure] = []

    def run(self, names: Iterator[Name]) -> None:
        workers = [_Worker(self._judge, self._most_seconds) for _ in range(self._workers)]
        for worker in workers:
            worker.give(_next_batch(names))
        while workers:
            for ready in wait([each.results for each in workers]):
                worker = next(each for each in workers if each.results is ready)
                if not self._heard(worker, names):
                    workers.remove(worker)

    def _heard(self, worker: _Worker, names: Iterator[Name]) -> bool:
        """Whether the worker goes on."""
        try:
            what, value = worker.results.recv()
        except EOFError:
            if worker.at is None:
                return False
            self._fails(Failure(worker.at, how := worker.ended_by(), how, ""))
            rest = worker.batch[worker.batch.index(worker.at) + 1 :]
            worker.at = None
            worker.start()
            worker.give(rest or _next_batch(names))
            return True
        if what == "begins":
            worker.at = value
        elif what == "wants more":
            worker.at = None
            worker.give(_next_batch(names))
        elif isinstance(value, Failure):
            self._fails(value)
        elif worker.at is not None:
            self.counts[worker.at[0], value] += 1
        return True

    def _fails(self, failure: Failure) -> None:
        self.counts[failure.name[0], "fails"] += 1
        self.failures.append(failure)
        if sum(each.promise == failure.promise for each in self.failures) <= 2 and len(self.failures) <= 200:
            self._told(failure)


def _next_batch(names: Iterator[Name]) -> list[Name] | None:
    return list(islice(names, _BATCH)) or None
