"""Measure what is left of bursts: 200 pods in a real cluster, of which 70 % leave, moved together pass by pass.

A real API server, scheduler and controllers; EC2 and the kubelets are left out. Mixes of a trace's commonest classes,
against the best packing that is known of the pods that stay. Needs what `make bench-burst` installs:
`.venv/bin/python -m tools.bench_leaving`. Results also go to .nodewright/bench/leaving.json.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import attrs

from engine.programs.cache import user_cache_dir
from engine.programs.go_program import CONTROL_PLANE, require_program
from engine.sandbox.control_plane import ControlPlane
from tests.cluster.bursts import mixed_pods
from tests.cluster.leaving import Settled, settled
from tests.cluster.promised_world import Stage

PROJECT = Path(__file__).resolve().parents[1]
MOST_OVER_BEST_KNOWN = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--budgets", type=int, nargs="*", default=[10, 100], help="percent of each pool's nodes")
    given = parser.parse_args()
    program = require_program(CONTROL_PLANE, os.environ.get("PATH", ""), user_cache_dir(os.environ), PROJECT / "tools")
    told: dict[str, Any] = {"load_average_before": round(os.getloadavg()[0], 2), "mixes": []}
    print(f"Load average {told['load_average_before']}.")
    print(
        "mix budget  $/h before  at rest     best  over best  nodes  passes  evicted  seconds  longest pass", flush=True
    )
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(program, Path(folder), owner=os.getpid())
        try:
            stage = Stage(plane.up())
            for seed in given.seeds:
                for budget in given.budgets:
                    found = settled(stage, f"leaving-{seed}-{budget}", mixed_pods(seed), seed, budget)
                    told["mixes"].append(attrs.asdict(found) | {"seed": seed, "budget_percent": budget})
                    show(seed, budget, found)
        finally:
            plane.down()
    told["load_average_after"] = round(os.getloadavg()[0], 2)
    print(f"Load average {told['load_average_after']} at the end.")
    print(f"At most {MOST_OVER_BEST_KNOWN:.0%} over the best is the target.")
    kept = PROJECT / ".nodewright" / "bench" / "leaving.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def show(seed: int, budget: int, found: Settled) -> None:
    print(
        f"{seed:3} {budget:5}% {found.before:11.2f} {found.usd:8.2f} {found.best_known:8.2f}"
        f" {found.over_best_known:+10.2%} {found.nodes:6} {len(found.passes):7} {found.evicted:8} {found.seconds:8.0f}"
        f" {max(each.cpu_seconds for each in found.passes):9.1f} s CPU",
        flush=True,
    )
    for each in found.passes:
        for what in (*each.beyond(budget), *(f"{pod} has no place" for pod in each.homeless)):
            print(f"  {what}")
    for what in (*(f"{pod} is bound nowhere" for pod in found.waiting), *found.restless):
        print(f"  {what}")


if __name__ == "__main__":
    main()
