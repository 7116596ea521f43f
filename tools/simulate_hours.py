"""Play drawn worlds for many simulated hours and look for what must never happen.

Each world is drawn by a seed: pools, budgets, rules that fail, pods that come and go, late device plugins, lost nodes,
shortages, wrong clocks, bad reads, policies and images that change. Every pass is held against the world as it is; at
the end nothing happens any more, and the world has to come to rest. What the worlds went through is told as well.
`tools/simulate_hours.py --hours 10000 --seed 1`; exit 1 where something was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from engine.catalog.build import build_catalog
from engine.model.environment import Pricing
from engine.observe.catalog_source import read_catalog_data
from engine.simulate.drawn_policies import small_catalog
from engine.simulate.drawn_worlds import REGION, ZONES, draw, play
from engine.simulate.record import Run
from engine.simulate.witness import Witness

_SHOWN = 5
_TOLD_EVERY = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=10_000, help="simulated hours, of all worlds together")
    parser.add_argument("--seed", type=int, default=1, help="of the first world; each next one has the next seed")
    parser.add_argument("--world-hours", type=int, default=48, help="simulated hours of one world")
    parser.add_argument("--verbose", action="store_true", help="a line for each world, and totals each 1,000 hours")
    given = parser.parse_args()
    catalog = small_catalog(build_catalog(REGION, ZONES, read_catalog_data(), Pricing()))
    totals, seed, told = Totals(), given.seed, 0
    while totals.hours < given.hours:
        length = min(given.world_hours, given.hours - totals.hours)
        run = play(draw(seed, length, catalog), totals.witness)
        totals.add(length, run)
        tell(seed, length, run, verbose=given.verbose)
        if sys.stderr.isatty():
            print(f"\r{totals.hours:,} of {given.hours:,} hours", end="", file=sys.stderr, flush=True)
        seed += 1
        if totals.hours >= given.hours or (given.verbose and totals.hours // _TOLD_EVERY > told):
            told = totals.hours // _TOLD_EVERY
            totals.tell(given.seed, seed - 1)
    raise SystemExit(1 if totals.found else 0)


class Totals:
    """What all worlds came to by now."""

    def __init__(self) -> None:
        self.hours = self.passes = 0
        self.done: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.witness = Witness()
        self._began = time.process_time()

    def add(self, hours: int, run: Run) -> None:
        self.hours, self.passes = self.hours + hours, self.passes + run.passes
        self.done.update(counted(run))
        self.found.update(each.rule for each in run.violations)

    def tell(self, first: int, last: int) -> None:
        """``first`` and ``last`` are the seeds."""
        seconds = time.process_time() - self._began
        rules = "".join(f"; {rule} {count}" for rule, count in sorted(self.found.items()))
        print(f"{self.hours:,} simulated hours in {last - first + 1} worlds, seeds {first} to {last}")
        print(f"{self.passes:,} passes, {seconds:,.0f} s of CPU, {1000 * seconds / max(1, self.passes):.1f} ms a pass")
        print("What was done:", listed(self.done))
        print("Things that happened:", listed(self.witness.times))
        print("Passes in which:", listed(self.witness.passes))
        print(f"{sum(self.found.values())} violations{rules}", flush=True)


def listed(counts: Counter[str]) -> str:
    return "; ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def counted(run: Run) -> dict[str, int]:
    return {
        "launches": sum(run.launches.values()),
        "refused": sum(run.refused.values()),
        "evictions": sum(run.evictions.values()),
        "evictions refused": run.refused_evictions,
        "pods lost with machines": run.lost_pods,
        **{f"removed {reason}": count for reason, count in run.removals.items()},
    }


def tell(seed: int, hours: int, run: Run, *, verbose: bool) -> None:
    if verbose:
        what = "; ".join(f"{name} {count}" for name, count in counted(run).items())
        print(f"seed {seed}: {run.passes} passes, {run.usd:,.0f} $, {what}", flush=True)
    for each in run.violations[:_SHOWN]:
        print(f"seed {seed}, {hours} h: {each.at:%d %b %H:%M:%S} {each.rule}: {each.what}", flush=True)
    if len(run.violations) > _SHOWN:
        print(f"seed {seed}: and {len(run.violations) - _SHOWN} more", flush=True)


if __name__ == "__main__":
    main()
