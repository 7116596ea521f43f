"""Measure how a whole decision grows: with the sizes of pods, with instance types, with nodes that are there already.

Then 10,000 pods of the mix on 1,000 nodes of 16 CPUs, which ten pods each run on. And pass after pass of such nodes on
which nobody waits: the first one, the next ones on the very same, and ones before each of which a pod became ready
anew. `make bench-growth`; results also go to .nodewright/bench/growth.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, evolve
from mix_pods import mixed_pods, sized_pods
from mix_world import World, standing, world
from standing_world import THIRD, Loop, Standing
from timed import timed

from engine.decide import decide
from engine.model.pod import Pod, PodKey

PROJECT = Path(__file__).resolve().parents[1]
PODS, TYPES, SIZES, NODES = 10_000, 100, 50, 1_000
RUNNING_EACH = 10
# Seconds for PODS of the mix on NODES nodes; and CPU milliseconds of a pass in which nothing changed.
TARGET, TARGET_PASS_MS = 2.0, 100.0
_PASSES = 10
_DRIFTED = NODES // 5


def with_sizes(sizes: int) -> World:
    return world(TYPES).with_pods(sized_pods(PODS, sizes))


def with_types(types: int) -> World:
    return world(types).with_pods(sized_pods(PODS, SIZES))


def with_nodes(nodes: int) -> World:
    """Plain pods, some of which go onto the nodes."""
    return standing(world(TYPES), nodes, _running(sized_pods(nodes * RUNNING_EACH, SIZES))).with_pods(
        sized_pods(PODS, SIZES)
    )


def mix_on_nodes(nodes: int) -> World:
    running = _running(mixed_pods(nodes * RUNNING_EACH, seed=1))
    return standing(world(400), nodes, running).with_pods(mixed_pods(PODS))


def _running(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Under names of their own."""
    return tuple(evolve(pod, key=PodKey(pod.key.namespace, f"running-{pod.key.name}")) for pod in pods)


GROWN: Mapping[str, tuple[Callable[[int], World], tuple[int, ...]]] = {
    f"sizes of pods ({PODS:,} pods, {TYPES} types)": (with_sizes, (10, 25, 50, 100, 200, 400)),
    f"types ({PODS:,} pods of {SIZES} sizes)": (with_types, (10, 25, 50, 100, 200, 400)),
    f"nodes ({PODS:,} pods of {SIZES} sizes, {TYPES} types)": (with_nodes, (0, 100, 500, 1_000, 2_000)),
    f"nodes ({PODS:,} pods of the mix, 400 types)": (mix_on_nodes, (NODES,)),
}


STANDING: Mapping[str, Standing] = {
    "consolidation off": Standing(NODES, consolidation="WhenEmpty"),
    "on, nothing to gain": Standing(NODES),
    "on, a third used, held by a budget": Standing(NODES, used=THIRD, budget="0"),
    "on, a third used, 10 % may go": Standing(NODES, used=THIRD),
    f"{_DRIFTED} drifted, 10 % may go": Standing(NODES, drifted=_DRIFTED),
    f"{_DRIFTED} drifted, 10 % may go, limits full": Standing(NODES, drifted=_DRIFTED, is_limited=True),
    f"{_DRIFTED} drifted, 10 % may go, a third used": Standing(NODES, drifted=_DRIFTED, used=THIRD),
}
_OF_PASSES = f"passes ({NODES:,} nodes, {NODES * RUNNING_EACH:,} pods)"


def measured_passes(asked: Standing) -> dict[str, Any]:
    """CPU milliseconds; the most and the median of several passes."""
    loop = Loop(asked.world())
    first, plan = timed(loop.next_pass, 1)
    told: dict[str, Any] = {"first": first.cpu_seconds * 1000, "plan": (len(plan.launches), len(plan.removals))}
    for name, changes in (("unchanged", False), ("a pod ready anew", True)):
        spent = []
        for _ in range(_PASSES):
            if changes:
                loop.change_a_pod()
            began = time.process_time()
            loop.next_pass()
            spent.append((time.process_time() - began) * 1000)
        told[name] = {"median": round(statistics.median(spent), 1), "most": round(max(spent), 1)}
    return told


def measured(asked: World, runs: int) -> dict[str, Any]:
    took, plan = timed(lambda: decide(asked.snapshot, asked.policy, asked.catalog, asked.environment), runs)
    return {
        **asdict(took),
        "placed": len(plan.placements),
        "launches": len(plan.launches),
        "unplaced": len(plan.unplaced),
        "added_usd_per_hour": (plan.usd_per_hour_after.micros - plan.usd_per_hour_before.micros) / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="what the name of a series begins with")
    given = parser.parse_args()
    told: dict[str, Any] = {"load_average_before": round(os.getloadavg()[0], 2), "runs": given.runs}
    print(f"Load average {told['load_average_before']}. Least of {given.runs} runs of a whole decision.")
    # The first question of a process loads what is compiled.
    measured(world(10).with_pods(mixed_pods(50)), 1)
    for name, (asked, amounts) in GROWN.items():
        if not name.startswith(given.only or ""):
            continue
        print(name)
        told[name] = {}
        for amount in amounts:
            told[name][amount] = found = measured(asked(amount), given.runs)
            print(
                f"  {amount:6,} {found['seconds']:7.2f} s, CPU {found['cpu_seconds']:7.2f} s, first"
                f" {found['first']:6.2f} s; {found['placed']:6,} placed, {found['launches']:6,} launches,"
                f" {found['unplaced']:4,} unplaced, {found['added_usd_per_hour']:10,.2f} $/h",
                flush=True,
            )
    print(f"target for the mix on {NODES:,} nodes: {TARGET:g} s")
    if _OF_PASSES.startswith(given.only or ""):
        print(f"{_OF_PASSES}, CPU milliseconds: target {TARGET_PASS_MS:g} where nothing changed")
        print(f"  {'':<42} {'first':>8} {'next, median':>13} {'most':>6} {'a pod ready anew':>17} {'most':>6}")
        told[_OF_PASSES] = {}
        for name, standing_nodes in STANDING.items():
            told[_OF_PASSES][name] = spent = measured_passes(standing_nodes)
            same, changed = spent["unchanged"], spent["a pod ready anew"]
            print(
                f"  {name:<42} {spent['first']:8,.0f} {same['median']:13,.0f} {same['most']:6,.0f}"
                f" {changed['median']:17,.0f} {changed['most']:6,.0f}",
                flush=True,
            )
    told["load_average_after"] = round(os.getloadavg()[0], 2)
    kept = PROJECT / ".nodewright" / "bench" / "growth.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
