"""Fuzz the reading of policy: files and expressions changed at random may do nothing but load with sense, or be told.

`make fuzz` (FUZZ=100000 cases, half of them files, half expressions, on two cores). A case is a number: the same seed
and number make the same case, so what fails is made again with ``--only document:NUMBER``. Each case runs in a process
that the kernel ends when it takes too much CPU time, so that a hang, a crash of a library and an exception are told.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from tools.fuzzing.cases import DOCUMENT, EXPRESSION, Name, made_case
from tools.fuzzing.documents import ROOT
from tools.fuzzing.judging import Failure, failure_of
from tools.fuzzing.workers import Fuzzing

_MOST_TOLD = 20


def _names(documents: int, expressions: int, start: int) -> Iterator[Name]:
    for number in range(start, start + max(documents, expressions)):
        if number < start + documents:
            yield DOCUMENT, number
        if number < start + expressions:
            yield EXPRESSION, number


def _counting(names: Iterator[Name], total: int) -> Iterator[Name]:
    """The same names, with progress on a terminal."""
    for count, name in enumerate(names):
        if sys.stderr.isatty() and count % 200 == 0:
            print(f"\r{count:,} of {total:,} cases", end="", file=sys.stderr, flush=True)
        yield name


def _read_name(text: str) -> Name:
    kind, _, number = text.partition(":")
    if kind not in (DOCUMENT, EXPRESSION) or not number.isdecimal():
        raise argparse.ArgumentTypeError("write document:NUMBER or expression:NUMBER")
    return kind, int(number)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000, help="half of them files, half expressions")
    parser.add_argument("--start", type=int, default=0, help="the first number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", type=_read_name, help="one case: document:NUMBER or expression:NUMBER")
    parser.add_argument("--show", action="store_true", help="with --only: the whole file, as it was made")
    given = parser.parse_args(arguments)
    os.chdir(ROOT)
    if given.only:
        return _one(given.only, given.seed, given.show)
    half = given.cases // 2
    fuzzing = Fuzzing(
        lambda name, begins: failure_of(name, given.seed, begins),
        given.workers,
        lambda failure: print(_failure_text(failure, given.seed), flush=True),
    )
    try:
        fuzzing.run(_counting(_names(given.cases - half, half, given.start), given.cases))
    except KeyboardInterrupt:
        print(f"\nstopped; of {given.cases:,} cases:")
    for (kind, became), count in sorted(fuzzing.counts.items()):
        print(f"{count:,} {kind}s: {became}")
    for told, count in Counter(each.promise for each in fuzzing.failures).most_common(_MOST_TOLD):
        print(f"{count:,} x {told}")
    print(
        "no crash, no hang, no accepted nonsense" if not fuzzing.failures else f"{len(fuzzing.failures):,} cases fail"
    )
    return 1 if fuzzing.failures else 0


def _failure_text(failure: Failure, seed: int) -> str:
    kind, number = failure.name
    again = f"python tools/fuzz_policy.py --seed {seed} --only {kind}:{number}"
    return f"\n=== {failure.promise}\n{again}\n{failure.told.rstrip()}\n{failure.content.rstrip()[:3000]}\n"


def _one(name: Name, seed: int, show: bool) -> int:
    if show:
        print(made_case(name, seed).changed[1].decode("utf-8", "backslashreplace"))
    found = failure_of(name, seed)
    print(found if isinstance(found, str) else _failure_text(found, seed))
    return 0 if isinstance(found, str) else 1


if __name__ == "__main__":
    sys.exit(main())
