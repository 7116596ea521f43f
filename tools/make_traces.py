"""Turn two public traces into traces that `nodewright simulate` plays, where they lie in `shared` beside the checkout.

`openb`: the pods of a GPU cluster that ran and ended. By its own clock the list is thin: 150 days, nearly all of it in
the last 36, at most 56 pods at once. So its days are laid over each other: every pod comes once, at the time of the day
at which it came, and runs as long as it ran, at most a day. A share of a GPU is rounded up to a whole one.

`azure`: an hour of requests to a language model, stretched over a day. Replicas of one GPU follow: for each five
minutes of that day as many as its requests need at so many a second for each, and like a HorizontalPodAutoscaler none
goes before five minutes have passed in which it was not needed.

`tools/make_traces.py openb day.csv`; `tools/make_traces.py azure day.csv`. Neither trace is part of this project.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "traces"
OPENB, AZURE = DATA / "openb_pod_list_default.csv", DATA / "azure_llm_2023_conv.csv"
COLUMNS = ("name", "arrival", "duration", "cpu", "memory", "gpu", "stay")
DAY = 86_400
# Requests a second that one replica answers, and how many times the trace's come.
REQUESTS_PER_REPLICA, LOAD = 1.0, 10.0
# Seconds of the day in which the number of replicas does not change.
_STEP = 300

Row = tuple[str, int, int, str, str, int, str]


def openb(seed: int, scale: float = 1.0, most_gpus: int = 8) -> Iterator[Row]:
    """A day of the pods that ran; ``scale`` of them, drawn. Those of more GPUs than ``most_gpus`` are left out."""
    chance = Random(seed)
    for row in rows_of(OPENB):
        came, begun, ended = row["creation_time"], row["scheduled_time"], row["deletion_time"]
        gpus = int(row["num_gpu"])
        if not begun or not ended or gpus > most_gpus or chance.random() >= scale:
            continue
        lasts = max(1, min(DAY, round(float(ended) - float(begun))))
        arrival = int(float(came)) % DAY
        yield (row["name"], arrival, lasts, f"{row['cpu_milli']}m", f"{row['memory_mib']}Mi", gpus, "job")


def azure(load: float = LOAD, requests_per_replica: float = REQUESTS_PER_REPLICA) -> Iterator[Row]:
    """Replicas of one GPU each, for ``load`` times the trace's requests."""
    times = [datetime.fromisoformat(row["TIMESTAMP"][:26]) for row in rows_of(AZURE)]
    steps = DAY // _STEP
    apart = (max(times) - times[0]).total_seconds() / steps
    requests = Counter(min(steps - 1, int((at - times[0]).total_seconds() // apart)) for at in times)
    needed = [math.ceil(requests[step] / apart * load / requests_per_replica) for step in range(steps)]
    wanted = [max(now, before) for before, now in zip([0, *needed], needed, strict=False)]
    yield from replicas(wanted, _STEP)


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
    parser.add_argument("--load", type=float, default=LOAD, help="times the requests of azure's")
    given = parser.parse_args()
    rows = openb(given.seed, given.scale) if given.trace == "openb" else azure(load=given.load)
    print(f"{write(rows, given.file):,} pods in {given.file}")


if __name__ == "__main__":
    main()
