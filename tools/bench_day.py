"""Play a day of a real workload by several policies: what consolidation saves, and what it costs in churn.

`openb`: a day made of the pods of a GPU cluster; `azure`: replicas that follow an hour of requests, stretched to a day
(`tools/make_traces.py` says how). Every policy has the same pool, all x86 types on sale with whole NVIDIA GPUs or none,
on demand, no limits but budgets of 10 %, and the same simulated world by the same seed.

`none`: nodes that are empty go after a minute, nodes in use never do. `ours`: consolidationPolicy
WhenEmptyOrUnderutilized as Nodewright has it. `karpenter`: Karpenter's rules, imitated (`tools/karpenter_day.py`).

`tools/bench_day.py --trace openb --policies none,karpenter,ours`; results also go to .nodewright/bench/day-TRACE.json,
and a report with a picture beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import evolve
from make_traces import DAY, Row, azure, openb

from engine.catalog.build import build_catalog
from engine.decide import decide
from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.environment import Caps, Cluster, Environment, Network, NetworkMode, Pricing
from engine.model.money import UsdPerHour
from engine.model.pod import Owner, Placing, Pod, PodKey
from engine.model.policy import Policy
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.observe.catalog_source import read_catalog_data
from engine.policy.load import load_policy
from engine.report.simulation_picture import simulation_svg
from engine.report.simulation_report import simulation_markdown
from engine.simulate.beginning import empty_world
from engine.simulate.conditions import Conditions
from engine.simulate.record import Run
from engine.simulate.simulation import Pace, Simulation
from engine.simulate.tasks import Stay, Task
from engine.simulate.world import Decider, World

PROJECT = Path(__file__).resolve().parents[1]
REGION = "us-east-1"
ZONES = {"us-east-1b": "use1-az1", "us-east-1c": "use1-az2", "us-east-1d": "use1-az4"}
_BEGIN = datetime(2026, 11, 30, tzinfo=UTC)
POLICIES = ("none", "karpenter", "ours")

FILES = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: day
  annotations: {nodewright.dev/open-to-all-pods: "true"}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: day}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
  disruption:
    consolidationPolicy: CONSOLIDATION
    consolidateAfter: 1m
    budgets: [{nodes: 10%}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: day}
spec:
  role: bench-nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: bench}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: bench}}]
"""


def environment() -> Environment:
    return Environment(
        name="bench-day",
        region=REGION,
        cluster=Cluster("bench-day", "https://127.0.0.1:6443", "dGVzdA==", "10.100.0.0/16"),
        network=Network(NetworkMode.OWNED, ZONES),
        caps=Caps(launches=10**6, removals=1000, added_usd_per_hour=UsdPerHour(10**15)),
    )


def catalog() -> Catalog:
    """On-demand offerings of types with whole NVIDIA GPUs, or none: those that pods of the traces can use."""
    every = build_catalog(REGION, ZONES, read_catalog_data(), Pricing())
    kept = {
        each.name
        for each in every.instance_types
        if each.arch == "amd64"
        and "metal" not in each.name
        and (each.accelerators.amount(NVIDIA_GPU) > 0 or not each.is_accelerated)
    }
    return evolve(
        every,
        instance_types=tuple(each for each in every.instance_types if each.name in kept),
        offerings=tuple(
            each
            for each in every.offerings
            if each.instance_type in kept and each.capacity_type == keys.ON_DEMAND and each.usd_per_hour is not None
        ),
    )


def policy_of(name: str, within: Environment) -> Policy:
    consolidation = "WhenEmptyOrUnderutilized" if name == "ours" else "WhenEmpty"
    return load_policy([("bench.yaml", FILES.replace("CONSOLIDATION", consolidation).encode())], within)


def decider_of(name: str) -> Decider:
    if name != "karpenter":
        return decide
    from karpenter_day import KarpenterDay

    return KarpenterDay(consolidate_after=timedelta(minutes=1))


def tasks(trace: str, scale: float, seed: int) -> list[Task]:
    rows = openb(seed, scale) if trace == "openb" else azure(load=10 * scale)
    return [_task(row) for row in rows]


def _task(row: Row) -> Task:
    name, arrival, duration, cpu, memory, gpus, stay = row
    asked: dict[str, str | int | float] = {"cpu": cpu, "memory": memory, "pods": 1}
    if gpus:
        asked[NVIDIA_GPU] = gpus
    pod = Pod(PodKey("day", name), Placing(Resources.parse(asked)), _BEGIN, owner=Owner("ReplicaSet", name))
    return Task(timedelta(seconds=arrival), pod, timedelta(seconds=duration), Stay(stay))


def played(name: str, work: list[Task], sold: Catalog, every: timedelta, hours: float) -> tuple[Run, float]:
    """One policy's day, and the CPU seconds that it took."""
    within = environment()
    policy = policy_of(name, within)
    world = World(empty_world(within, policy, sold, _BEGIN), work, sold, Conditions(seed=1))
    pace = Pace(urgent=every, calm=max(every, timedelta(minutes=1)), quiet=timedelta(minutes=10))
    began = time.process_time()

    def told(now: datetime, plan: object) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}: {now:%H:%M}", end="", file=sys.stderr, flush=True)

    simulation = Simulation(world, policy, sold, within, pace=pace, decider=decider_of(name), watch=told)
    run = simulation.run(timedelta(hours=hours), name)
    return run, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", choices=["openb", "azure"], default="openb")
    parser.add_argument("--policies", default=",".join(POLICIES), help="of none, karpenter, ours")
    parser.add_argument("--scale", type=float, default=1.0, help="the share of the load that comes")
    parser.add_argument("--hours", type=float, default=DAY / 3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two passes, at the least")
    given = parser.parse_args()
    names = given.policies.split(",")
    if not set(names) <= set(POLICIES):
        raise SystemExit(f"bench-day: --policies are of {', '.join(POLICIES)}")
    work, sold = tasks(given.trace, given.scale, given.seed), catalog()
    print(f"{given.trace}: {len(work):,} pods over {given.hours:g} h, {len(sold.instance_types)} instance types")
    runs, seconds = [], {}
    for name in names:
        run, cpu = played(name, work, sold, timedelta(seconds=given.every), given.hours)
        runs.append(run)
        seconds[name] = round(cpu, 1)
        print(f"\n{name}: {run.passes:,} passes in {cpu:,.0f} s of CPU", flush=True)
    told: dict[str, Any] = {"trace": given.trace, "pods": len(work), "scale": given.scale, "cpu_seconds": seconds}
    notes = [f"{len(work):,} pods of {given.trace}, scale {given.scale:g}, a pass every {given.every:g} s at the least"]
    page = simulation_markdown(runs, notes, f"day-{given.trace}.svg")
    print(page)
    told["usd"] = {run.name: round(run.usd, 2) for run in runs}
    told["evictions"] = {run.name: sum(run.evictions.values()) for run in runs}
    told["violations"] = {run.name: len(run.violations) for run in runs}
    kept = PROJECT / ".nodewright" / "bench" / f"day-{given.trace}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    kept.with_suffix(".md").write_text(page, encoding="utf-8")
    kept.with_suffix(".svg").write_text(simulation_svg(runs, f"A day of {given.trace}"), encoding="utf-8")


if __name__ == "__main__":
    main()
