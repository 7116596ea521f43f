"""Measure the mix of pods of Karpenter's own benchmark: 400 types, one pool, nothing there, from 1 to 20,000 pods.

Twice: the scheduler alone, which is what Karpenter's benchmark times, and the whole decision. What `decide` plans is
judged by the tests' checker, which knows nothing of the scheduler. `make bench-mix`; results also go to
.nodewright/bench/mix.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import asdict
from mix_bound import least_usd_per_hour
from mix_pods import mixed_pods
from mix_world import World, world
from timed import Timed, timed

from engine.decide import decide
from engine.model.plan import Plan
from engine.scheduling.solve import solve

PROJECT = Path(__file__).resolve().parents[1]
COUNTS = (1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000)
TYPES = 400
# Seconds that Karpenter's scheduler took, and its nodes: core 22664681 on a quiet machine of two CPUs.
KARPENTER = {1000: (3.8, 200), 5000: (21.2, 1000), 10_000: (57.2, 2000)}
# Pods, seconds.
TARGET = (10_000, 1.0)


def measured(count: int, runs: int, judged: int) -> dict[str, Any]:
    asked = world(TYPES).with_pods(mixed_pods(count))
    problem = asked.problem()
    alone, solution = timed(lambda: solve(problem), runs)
    whole, plan = timed(lambda: decide(asked.snapshot, asked.policy, asked.catalog, asked.environment), runs)
    micros = sum(new.option.usd_per_hour.micros for new in solution.new_nodes if new.option.usd_per_hour is not None)
    if micros != plan.usd_per_hour_after.micros:
        raise SystemExit(f"bench-mix: the scheduler alone plans for {micros} micro-dollars, the decision for others")
    bound = least_usd_per_hour(problem.pods, problem.pools[0].options)
    return {
        "pods": count,
        "solve": asdict(alone),
        "decide": asdict(whole),
        "pods_per_second": round(count / alone.seconds, 1),
        "nodes": len(plan.launches),
        "unplaced": len(plan.unplaced),
        "usd_per_hour": micros / 1e6,
        "bound_usd_per_hour": round(bound, 4),
        "gap": micros / 1e6 / bound - 1,
        "violations": faults(asked, plan) if count <= judged else None,
        "karpenter_seconds": KARPENTER.get(count, (None, None))[0],
        "karpenter_nodes": KARPENTER.get(count, (None, None))[1],
    }


def faults(asked: World, plan: Plan) -> list[str]:
    """What the tests' checker finds wrong with the plan."""
    # The tests are no package of the project's.
    sys.path.append(str(PROJECT))
    from tests.scheduling.checker.plan import violations

    return [str(each) for each in violations(asked.snapshot, plan, asked.policy, asked.environment, asked.catalog)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--pods", type=int, nargs="*", default=COUNTS)
    parser.add_argument("--judged", type=int, default=500, help="plans of more pods than that are not judged")
    given = parser.parse_args()
    told: dict[str, Any] = {"load_average_before": round(os.getloadavg()[0], 2), "runs": given.runs, "counts": []}
    print(f"Load average {told['load_average_before']}. Least of {given.runs} runs.")
    # The first question of a process loads what is compiled.
    measured(50, 1, 0)
    print("  pods    solve      CPU   pods/s   decide      CPU  nodes       $/h     bound    over  Karpenter  faults")
    for count in given.pods:
        told["counts"].append(measured(count, given.runs, given.judged))
        show(told["counts"][-1])
    told["load_average_after"] = round(os.getloadavg()[0], 2)
    print(f"Load average {told['load_average_after']} at the end.")
    kept = PROJECT / ".nodewright" / "bench" / "mix.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    if any(each["violations"] or each["unplaced"] for each in told["counts"]):
        raise SystemExit("bench-mix: a plan is wrong or leaves pods out; mix.json says which")


def show(told: Mapping[str, Any]) -> None:
    alone, whole = Timed(**told["solve"]), Timed(**told["decide"])
    karpenter = f"{told['karpenter_seconds']} s" if told["karpenter_seconds"] else ""
    found = "unseen" if told["violations"] is None else str(len(told["violations"]))
    print(
        f"{told['pods']:6,} {alone.seconds:7.2f}s {alone.cpu_seconds:7.2f}s {told['pods_per_second']:8,.0f}"
        f" {whole.seconds:7.2f}s {whole.cpu_seconds:7.2f}s {told['nodes']:6,} {told['usd_per_hour']:9,.2f}"
        f" {told['bound_usd_per_hour']:9,.2f} {told['gap']:7.2%} {karpenter:>10} {found:>7}",
        flush=True,
    )
    if told["pods"] == TARGET[0]:
        print(f"       target: {TARGET[1]:g} s")


if __name__ == "__main__":
    main()
