"""Measure the repacking of scattered load: nodes bought for a burst, of whose pods most have gone at random.

All of a repacking is carried out at once, budgets apart, and the rest is repacked again until nothing is left to do.
With `--budget PERCENT` whole passes decide instead, over a simulated cluster and within that budget of each pool.
The bound is a packing's: of the same pods, with nothing there, on whatever is on sale. `make bench-scattered`; results
also go to .nodewright/bench/scattered.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve
from scattered_passes import settled
from scattered_world import Load, equal_pods, least_usd, openb_pods, scattered, sized_pods

from engine.scheduling.estate import Estate
from engine.scheduling.packing.compiled import compile_ahead
from engine.scheduling.problem import Solution
from engine.scheduling.repacking import Repacking, repacked

PROJECT = Path(__file__).resolve().parents[1]
# Part of the pods that are left; how far the rest may be above the bound, and CPU seconds of a repacking or a pass.
LEFT, MOST_ABOVE, MOST_SECONDS = 0.3, 0.05, 5.0
# Of a packing that is as good as can be.
_STEPS = 16_000_000
_MOST_ROUNDS = 10


def measured(load: Load, seed: int) -> dict[str, Any]:
    estate = scattered(load, LEFT, seed)
    best, bound = least_usd(estate, _STEPS)
    nodes, before = len(estate.movable), estate.price.micros / 1e6
    pods = sum(len(each.pods) for each in estate.movable)
    rounds = []
    for _ in range(_MOST_ROUNDS):
        began = time.process_time()
        found = repacked(estate.problem, estate.movable)
        seconds = time.process_time() - began
        estate = carried_out(estate, found)
        rounds.append(
            {
                "cpu_seconds": round(seconds, 2),
                "moves": len(found.moves),
                "gone": len(found.going),
                "bought": sum(len(move.new_nodes) for move in found.moves),
                "usd": found.after.micros / 1e6,
            }
        )
        if not found.moves:
            break
    after = estate.price.micros / 1e6
    return {
        "seed": seed,
        "nodes": nodes,
        "pods": pods,
        "before_usd": before,
        "after_usd": after,
        "nodes_after": len(estate.movable),
        "best_usd": best,
        "bound_usd": bound,
        "above": after / bound - 1,
        "rounds": rounds,
    }


def carried_out(estate: Estate, found: Repacking) -> Estate:
    going = [each for each in estate.movable if each.claim in set(found.going)]
    answer = Solution(
        tuple(place for move in found.moves for place in move.placements),
        tuple(node for move in found.moves for node in move.new_nodes),
        (),
    )
    return evolve(estate.after(going, answer), bought={}, moved={})


def passed(load: Load, seed: int, budget_percent: int) -> dict[str, Any]:
    estate = scattered(load, LEFT, seed)
    _, bound = least_usd(estate, _STEPS)
    found = settled(load, LEFT, seed, budget_percent)
    return {
        "seed": seed,
        "nodes": len(estate.movable),
        "pods": sum(len(each.pods) for each in estate.movable),
        "before_usd": estate.price.micros / 1e6,
        "after_usd": found.usd,
        "nodes_after": found.nodes,
        "bound_usd": bound,
        "above": found.usd / bound - 1,
        "minutes": found.took.total_seconds() / 60,
        "passes": found.passes,
        "evicted": found.evicted,
        "longest_cpu_seconds": found.longest_cpu_seconds,
        "cpu_seconds": found.cpu_seconds,
        "waiting": found.waiting,
        "violations": Counter(each.partition(":")[0] for each in found.violations),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--budget", type=int, help="percent of each pool's nodes; whole passes decide then")
    given = parser.parse_args()
    told: dict[str, Any] = {"load_average_before": round(os.getloadavg()[0], 2), "loads": {}}
    print(f"Load average {told['load_average_before']}.")
    # The first question of a process loads what is compiled.
    compile_ahead()
    measured(equal_pods(40), 0)
    last = "CPU seconds a round" if given.budget is None else "passes, minutes, evicted, CPU seconds: longest, all"
    print(f"load         nodes  pods      before       after  nodes       bound  above  {last}")
    for seed in given.seeds:
        loads = {"equal": equal_pods(4000), "openb": openb_pods(2250, seed), "ten sizes": sized_pods(22_000, seed)}
        for name, load in loads.items():
            found = measured(load, seed) if given.budget is None else passed(load, seed, given.budget)
            told["loads"].setdefault(name, []).append(found)
            show(f"{name} {seed}", found)
    told["load_average_after"] = round(os.getloadavg()[0], 2)
    print(f"Load average {told['load_average_after']} at the end.")
    kept = PROJECT / ".nodewright" / "bench" / "scattered.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    every = [each for loads in told["loads"].values() for each in loads]
    if any(each["above"] > MOST_ABOVE or is_at_unrest(each) for each in every):
        raise SystemExit(f"bench-scattered: some load is left more than {MOST_ABOVE:.0%} above the bound, or at unrest")
    if any(longest(each) > MOST_SECONDS for each in every):
        raise SystemExit(f"bench-scattered: some took more than {MOST_SECONDS:.0f} s of CPU at once")


def is_at_unrest(told: Mapping[str, Any]) -> bool:
    if "rounds" in told:
        return bool(told["rounds"][-1]["moves"])
    return bool(told["violations"] or told["waiting"])


def longest(told: Mapping[str, Any]) -> float:
    if "rounds" in told:
        return max(float(each["cpu_seconds"]) for each in told["rounds"])
    return float(told["longest_cpu_seconds"])


def show(name: str, told: Mapping[str, Any]) -> None:
    if "rounds" in told:
        last = " ".join(f"{each['cpu_seconds']:.1f}" for each in told["rounds"])
    else:
        last = (
            f"{told['passes']} {told['minutes']:.0f} {told['evicted']}"
            f" {told['longest_cpu_seconds']:.1f} {told['cpu_seconds']:.0f}"
        )
        last += "".join(f"; {rule}: {times} times" for rule, times in sorted(told["violations"].items()))
    print(
        f"{name:12} {told['nodes']:5,} {told['pods']:5,} {told['before_usd']:9,.2f} $ {told['after_usd']:9,.2f} $"
        f" {told['nodes_after']:6,} {told['bound_usd']:9,.2f} $ {told['above']:6.2%}  {last}",
        flush=True,
    )


if __name__ == "__main__":
    main()
