"""Measure packing: real pods onto the instance types that AWS sells, against first fit and Karpenter's rule.

Three lists: 10,000 pods drawn from the 50 commonest classes of a GPU cluster's trace, its whole list, and the whole
list with the GPU models that a third of the pods ask for. `make bench-packing`; results also go to
.nodewright/bench/packing.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karpenter_rule import karpenter_nodes
from packing_data import drawn, instance_types, pods, problem

from engine.scheduling.packing.pack import DEFAULT_STEPS, pack
from engine.scheduling.packing.problem import NodeKind, PackClass, PackingProblem

PROJECT = Path(__file__).resolve().parents[1]
# Most seconds; most gap over the proven bound.
TARGETS = {"50x10k": (3.0, 0.01), "default": (10.0, 0.02)}


def problems(node_micros: int) -> dict[str, PackingProblem]:
    shapes, listed = instance_types(), pods("default")
    return {
        "50x10k": problem(drawn(listed, 50, 10_000, seed=1), shapes, node_micros),
        "default": problem(listed, shapes, node_micros),
        "spec33": problem(pods("spec33"), shapes, node_micros),
    }


def measured(asked: PackingProblem, steps: int, runs: int) -> dict[str, Any]:
    """Medians of the runs, whose answers must be the same."""
    seconds, cpu, answers = [], [], []
    for _ in range(runs):
        began, began_cpu = time.perf_counter(), time.process_time()
        answers.append(pack(asked, steps))
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
    if any(each != answers[0] for each in answers):
        raise SystemExit("bench-packing: the same question got two answers")
    best = answers[0]
    return {
        "usd_per_hour": best.cost_micros / 1e6,
        "bound_usd_per_hour": best.lower_bound_micros / 1e6,
        "gap": best.gap,
        "seconds": round(statistics.median(seconds), 2),
        "cpu_seconds": round(statistics.median(cpu), 2),
        "nodes": sum(each.nodes for each in best.nodes),
        "unplaced": sum(count for _, count in best.unplaced),
        "steps": best.steps,
    }


def by_karpenter(asked: PackingProblem, bound: float) -> dict[str, Any]:
    began = time.perf_counter()
    micros, nodes = karpenter_nodes(asked)
    return {
        "usd_per_hour": micros / 1e6,
        "gap": micros / 1e6 / bound - 1,
        "seconds": round(time.perf_counter() - began, 2),
        "nodes": nodes,
    }


def compared(asked: PackingProblem, steps: int, runs: int) -> dict[str, Any]:
    best, first = measured(asked, steps, runs), measured(asked, 0, runs)
    bound = best["bound_usd_per_hour"]
    first |= {"gap": first["usd_per_hour"] / bound - 1, "bound_usd_per_hour": first["bound_usd_per_hour"]}
    return {
        "pods": sum(each.count for each in asked.classes),
        "classes": len(asked.classes),
        "types": len(asked.kinds),
        "nodewright": best,
        "first fit": first,
        "Karpenter's rule": by_karpenter(asked, bound),
    }


def seconds_to_load() -> float:
    """What the first question of a process costs: the compiler's import, and compiling if the machine is new to it."""
    began = time.perf_counter()
    # Too many loads to list them all, so that the search is asked.
    classes = tuple(PackClass((3 + 2 * size, 50 - size), 20, frozenset({0})) for size in range(12))
    pack(PackingProblem(classes, (NodeKind((101, 203), 1_000_000),)), 1)
    return round(time.perf_counter() - began, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS)
    parser.add_argument("--only", choices=["50x10k", "default", "spec33"])
    parser.add_argument("--node-usd", type=float, default=0.0, help="what a node costs an hour beside its price")
    given = parser.parse_args()
    node_micros = round(given.node_usd * 1_000_000)
    asked = {name: each for name, each in problems(node_micros).items() if given.only in (None, name)}
    told: dict[str, Any] = {"load_average_before": round(os.getloadavg()[0], 2), "steps": given.steps}
    told["node_usd_per_hour"] = given.node_usd
    print(f"Load average {told['load_average_before']}; at most {given.steps:,} steps.")
    told["seconds_to_load"] = seconds_to_load()
    print(f"The compiled search took {told['seconds_to_load']} s to load, once a process.")
    for name, each in asked.items():
        told[name] = compared(each, given.steps, given.runs)
        show(name, told[name])
    told["load_average_after"] = round(os.getloadavg()[0], 2)
    print(f"Load average {told['load_average_after']} at the end.")
    kept = PROJECT / ".nodewright" / "bench" / "packing.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def show(name: str, told: Mapping[str, Any]) -> None:
    print(f"{name}: {told['pods']:,} pods in {told['classes']} classes, {told['types']} instance types")
    print(f"  proven lower bound {told['nodewright']['bound_usd_per_hour']:,.2f} $/h")
    for rule in ("nodewright", "first fit", "Karpenter's rule"):
        got = told[rule]
        print(
            f"  {rule:17} {got['usd_per_hour']:10,.2f} $/h {got['gap']:+9.3%} {got['nodes']:6,} nodes"
            f" {got['seconds']:6.2f} s"
        )
    if name in TARGETS:
        seconds, gap = TARGETS[name]
        print(f"  targets: {seconds:g} s, {gap:.0%}; CPU {told['nodewright']['cpu_seconds']} s")


if __name__ == "__main__":
    main()
