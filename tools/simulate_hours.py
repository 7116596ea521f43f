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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=10_000, help="simulated hours, of all worlds together")
    parser.add_argument("--seed", type=int, default=1, help="of the first world; each next one has the next seed")
    parser.add_argument("--world-hours", type=int, default=48, help="simulated hours of one world")
    parser.add_argument("--verbose", action="store_true", help="a line for each world")
    given = parser.parse_args()
    catalog = small_catalog(build_catalog(REGION, ZONES, read_catalog_data(), Pricing()))
    hours = passes = 0
    done: Counter[str] = Counter()
    found: Counter[str] = Counter()
    witness = Witness()
    began, seed = time.process_time(), given.seed
    while hours < given.hours:
        length = min(given.world_hours, given.hours - hours)
        run = play(draw(seed, length, catalog), witness)
        hours, passes = hours + length, passes + run.passes
        done.update(counted(run))
        found.update(each.rule for each in run.violations)
        tell(seed, length, run, verbose=given.verbose)
        if sys.stderr.isatty():
            print(f"\r{hours:,} of {given.hours:,} hours", end="", file=sys.stderr, flush=True)
        seed += 1
    seconds = time.process_time() - began
    print(f"{hours:,} simulated hours in {seed - given.seed} worlds, seeds {given.seed} to {seed - 1}")
    print(f"{passes:,} passes, {seconds:,.0f} s of CPU, {1000 * seconds / max(1, passes):.1f} ms a pass")
    print("What was done:", listed(done))
    print("Things that happened:", listed(witness.times))
    print("Passes in which:", listed(witness.passes))
    print(f"{sum(found.values())} violations" + "".join(f"; {rule} {count}" for rule, count in sorted(found.items())))
    raise SystemExit(1 if found else 0)


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
