"""Turn two public traces into traces that `nodewright simulate` plays, where they lie in `shared` beside the checkout.

`openb`: the pods of a GPU cluster. By its own clock its list is thin (150 days, at most 56 pods at once), so a day is
made of it: every pod comes once, at a time of the day that is drawn by a seed, more of them by day than by night, and
runs as long as it ran, at most a day. A share of a GPU is rounded up to a whole one.

`azure`: an hour of requests to a language model. Replicas follow: in each five minutes as many as the requests of that
time need at so many tokens a second and GPU; the hour is stretched over a day.

`tools/make_traces.py openb day.csv`; `tools/make_traces.py azure day.csv`. Neither trace is part of this project.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "traces"
OPENB, AZURE = DATA / "openb_pod_list_default.csv", DATA / "azure_llm_2023_conv.csv"
COLUMNS = ("name", "arrival", "duration", "cpu", "memory", "gpu", "stay")
DAY = 86_400
# A request's context is read this many times faster than an answer is written.
_READ_FASTER = 10
# Tokens a second of answers that one GPU writes for all its requests together.
TOKENS_PER_GPU = 400
_STEP_OF_HOUR = 12.5

Row = tuple[str, int, int, str, str, int, str]


def openb(seed: int, scale: float = 1.0, most_gpus: int = 8) -> Iterator[Row]:
    """A day of the pods that ran; ``scale`` of them, drawn. Those of more GPUs than ``most_gpus`` are left out."""
    chance = Random(seed)
    for row in rows_of(OPENB):
        begun, ended = row["scheduled_time"], row["deletion_time"]
        gpus = int(row["num_gpu"])
        if not begun or not ended or gpus > most_gpus or chance.random() >= scale:
            continue
        lasts = max(30, min(DAY, int(float(ended) - float(begun))))
        yield (row["name"], _time_of_day(chance), lasts, f"{row['cpu_milli']}m", f"{row['memory_mib']}Mi", gpus, "job")


def azure(tokens_per_gpu: float = TOKENS_PER_GPU, load: float = 10.0) -> Iterator[Row]:
    """Replicas of one GPU each, for ``load`` times the trace's requests."""
    tokens: dict[int, float] = {}
    first: datetime | None = None
    for row in rows_of(AZURE):
        at = datetime.fromisoformat(row["TIMESTAMP"][:26])
        first = first or at
        step = int((at - first).total_seconds() // _STEP_OF_HOUR)
        work = int(row["GeneratedTokens"]) + int(row["ContextTokens"]) / _READ_FASTER
        tokens[step] = tokens.get(step, 0.0) + work * load
    wanted = [math.ceil(tokens.get(step, 0.0) / _STEP_OF_HOUR / tokens_per_gpu) for step in range(max(tokens) + 1)]
    yield from replicas(wanted, round(DAY / len(wanted)))


def replicas(wanted: Iterable[int], seconds: int) -> Iterator[Row]:
    """One row for each replica's stay, where so many are wanted in each step: the last to come is the first to go."""
    standing: list[int] = []
    number = 0
    at = 0
    found: list[Row] = []
    for count in (*wanted, 0):
        while len(standing) > count:
            came = standing.pop()
            found.append((f"replica-{number:05d}", came, at - came, "3", "12Gi", 1, "replica"))
            number += 1
        standing += [at] * (count - len(standing))
        at += seconds
    yield from sorted(found, key=lambda row: (row[1], row[0]))


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    if not path.is_file():
        raise SystemExit(f"make-traces: {path} is not there: the trace is no part of this project")
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _time_of_day(chance: Random) -> int:
    """Three times as many at two in the afternoon as at two in the morning."""
    while True:
        at = chance.uniform(0, DAY)
        if chance.uniform(0, 1.5) < 1 - 0.5 * math.cos(2 * math.pi * (at / 3600 - 2) / 24):
            return int(at)


def write(rows: Iterable[Row], file: Path) -> int:
    count = 0
    with file.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(COLUMNS)
        for row in rows:
            lines.writerow(row)
            count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", choices=["openb", "azure"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="of openb's pods, the share that comes")
    parser.add_argument("--load", type=float, default=10.0, help="times the requests of azure's")
    given = parser.parse_args()
    rows = openb(given.seed, given.scale) if given.trace == "openb" else azure(load=given.load)
    print(f"{write(rows, given.file):,} pods in {given.file}")


if __name__ == "__main__":
    main()
