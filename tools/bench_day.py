"""Play a day of a real workload by several policies: what consolidation saves, and what it costs in churn.

`openb`: a day made of the pods of a GPU cluster; `azure`: replicas that follow an hour of requests, stretched to a day
(`tools/make_traces.py` says how). All policies have the same two pools (types with whole NVIDIA GPUs, tainted, and
types without), all x86 types on sale on demand, each in one zone, no limits, budgets of 10 %, and the same simulated
world: machines, kubelets, device plugins and image pulls take as long, drawn by one seed. Each pod leaves when its time
is up, moved or not, so that all policies serve the same; with `--jobs` it runs from the beginning again where it is
stopped.

`none`: nodes that are empty go, nodes in use never do. `ours`: consolidationPolicy WhenEmptyOrUnderutilized as
Nodewright has it, asked for moves once a minute at the most. `karpenter`: Karpenter's rules for new nodes and
consolidation, imitated (`tools/karpenter_day.py`). `packed`: Karpenter's rules for new nodes, without consolidation.
`NAME:5m` sets consolidateAfter, which is 0s.

The bound is what pods would cost if each ran at once and paid no more than its share of the cheapest machine for it.

`tools/bench_day.py --trace openb --policies none,karpenter,ours`; results also go to .nodewright/bench/day-TRACE.json,
and a report with a picture beside it. By default a tenth of openb's pods comes; `--full` plays all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from attrs import define, evolve
from make_traces import DAY, LOAD, Row, azure, openb

from engine.catalog.build import build_catalog
from engine.catalog.node_shape import node_shape
from engine.catalog.price import ebs_usd_per_hour
from engine.decide import decide
from engine.decide.elsewhere import Elsewhere
from engine.model import labels as keys
from engine.model.catalog import Catalog, Offering
from engine.model.constraint import Toleration
from engine.model.duration import parse_duration
from engine.model.environment import Caps, Cluster, Environment, Network, NetworkMode, Pricing
from engine.model.money import UsdPerHour
from engine.model.plan import Plan
from engine.model.pod import Owner, Placing, Pod, PodKey
from engine.model.policy import Policy
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.snapshot import Snapshot
from engine.observe.catalog_source import read_catalog_data
from engine.policy.load import load_policy
from engine.report.simulation_picture import simulation_svg
from engine.report.simulation_report import simulation_markdown
from engine.report.simulation_rows import percentile
from engine.scheduling.repacking import Repacking
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
POLICIES = ("none", "packed", "karpenter", "ours")
# Pods that come of openb's by default, and seconds between two passes.
_SCALE, _EVERY = 0.1, 15.0
# Where kube-scheduler and all policies keep pods without GPUs off GPU nodes.
_TAINT = "nvidia.com/gpu"
_REPACK_APART = timedelta(minutes=1)

_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: day}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.k8s.aws/instance-gpu-count, operator: GPUS}
      taints: [TAINT]
  disruption:
    consolidationPolicy: CONSOLIDATION
    consolidateAfter: AFTER
    budgets: [{nodes: 10%}]
---
"""
_NODE_CLASS = """
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
    """On-demand offerings of types with whole NVIDIA GPUs, or none: those that pods of the traces can use. The price is
    the same in all zones, so one zone each is enough."""
    every = build_catalog(REGION, ZONES, read_catalog_data(), Pricing())
    kept = {
        each.name
        for each in every.instance_types
        if each.arch == "amd64"
        and "metal" not in each.name
        and (each.accelerators.amount(NVIDIA_GPU) > 0 or not each.is_accelerated)
    }
    offerings: dict[str, Offering] = {}
    for each in sorted(every.offerings, key=lambda one: one.key):
        if each.instance_type in kept and each.capacity_type == keys.ON_DEMAND and each.usd_per_hour is not None:
            offerings.setdefault(each.instance_type, each)
    return evolve(
        every,
        instance_types=tuple(each for each in every.instance_types if each.name in offerings),
        offerings=tuple(offerings[name] for name in sorted(offerings)),
    )


def policy_of(name: str, within: Environment) -> Policy:
    """``NAME`` or ``NAME:AFTER``."""
    rule, _, after = name.partition(":")
    pools = "".join(
        _POOL.replace("NAME", pool).replace("GPUS", gpus).replace("TAINT", taint)
        for pool, gpus, taint in (
            ("gpu", "Exists", f"{{key: {_TAINT}, effect: NoSchedule}}"),
            ("cpu", "DoesNotExist", ""),
        )
    )
    consolidation = "WhenEmptyOrUnderutilized" if rule == "ours" else "WhenEmpty"
    written = (pools + _NODE_CLASS).replace("CONSOLIDATION", consolidation).replace("AFTER", after or "0s")
    return load_policy([("bench.yaml", written.encode())], within)


def decider_of(name: str) -> Decider:
    rule, _, after = name.partition(":")
    if rule == "none":
        return decide
    if rule == "ours":
        return Unhurried()
    from karpenter_day import KarpenterDay

    return KarpenterDay(parse_duration(after or "0s") if rule == "karpenter" else None)


@define
class Unhurried:
    """The real decisions, but that moves for money are looked for once a minute at the most: what is begun goes on."""

    _asked_at: datetime | None = None

    def __call__(self, snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
        now = snapshot.taken_at
        if self._asked_at is None or now >= self._asked_at + _REPACK_APART:
            self._asked_at = now
            return decide(snapshot, policy, catalog, environment)
        with patch.object(Elsewhere, "repacked", lambda *asked: Repacking()):
            return decide(snapshot, policy, catalog, environment)


def tasks(trace: str, scale: float, seed: int, *, are_jobs: bool = False) -> list[Task]:
    rows = openb(seed, scale) if trace == "openb" else azure(load=LOAD * scale)
    return [_task(row, Stay.JOB if are_jobs else Stay.REPLICA) for row in rows]


def _task(row: Row, stay: Stay) -> Task:
    name, arrival, duration, cpu, memory, gpus, _ = row
    asked: dict[str, str | int | float] = {"cpu": cpu, "memory": memory, "pods": 1}
    if gpus:
        asked[NVIDIA_GPU] = gpus
    tolerations = (Toleration(key=_TAINT, exists=True),) if gpus else ()
    placing = Placing(Resources.parse(asked), tolerations=tolerations)
    pod = Pod(PodKey("day", name), placing, _BEGIN, owner=Owner("ReplicaSet", name))
    return Task(timedelta(seconds=arrival), pod, timedelta(seconds=duration), stay)


def least_usd(work: list[Task], sold: Catalog, hours: float) -> float:
    """What the pods cost at the least, each by the machine on which its share of the scarcest resource is cheapest."""
    within = environment()
    (of,) = policy_of("none", within).node_classes
    volumes = ebs_usd_per_hour(sold, of).micros
    shapes = {each.name: node_shape(each, of, within).allocatable for each in sold.instance_types}
    prices = {
        each.instance_type: each.usd_per_hour.micros + volumes
        for each in sold.offerings
        if each.usd_per_hour is not None
    }

    @cache
    def least(requests: Resources) -> float:
        fitting = [(name, room) for name, room in shapes.items() if requests.fits_in(room)]
        shares = (
            (name, max(amount / room.amount(what) for what, amount in requests.items())) for name, room in fitting
        )
        return min((prices[name] * share for name, share in shares), default=0.0)

    end = timedelta(hours=hours)
    found = 0.0
    for each in work:
        lasts = max(timedelta(0), min(end - each.after, each.lasts or end))
        found += least(each.pod.placing.requests) * lasts.total_seconds() / 3600 / 1e6
    return found


def played(name: str, work: list[Task], sold: Catalog, every: timedelta, hours: float) -> tuple[Run, float]:
    """One policy's day, and the CPU seconds that it took."""
    within = environment()
    policy = policy_of(name, within)
    world = World(empty_world(within, policy, sold, _BEGIN), work, sold, Conditions(seed=1))
    pace = Pace(urgent=every, calm=every, quiet=timedelta(minutes=10))
    began = time.process_time()

    def show(now: datetime, plan: object) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}: {now:%H:%M}", end="", file=sys.stderr, flush=True)

    simulation = Simulation(world, policy, sold, within, pace=pace, decider=decider_of(name), watch=show)
    run = simulation.run(timedelta(hours=hours), name)
    return run, time.process_time() - began


def told(run: Run) -> dict[str, Any]:
    """The numbers of a run that tell policies apart."""
    waits, again = run.waits.first, run.waits.again
    return {
        "usd": round(run.usd, 2),
        "usd_at_most": round(max(each.usd_per_hour.micros for each in run.samples) / 1e6, 2),
        "gpu_hours": round(run.gpu_hours, 1),
        "gpu_hours_used": round(run.gpu_hours_used, 1),
        "gpu_hours_idle": round(run.gpu_hours - run.gpu_hours_used, 1),
        "wait_p50": percentile(waits, 0.5) if waits else None,
        "wait_p99": percentile(waits, 0.99) if waits else None,
        "wait_again_p50": percentile(again, 0.5) if again else None,
        "evicted": sum(run.evictions.values()),
        "launched": sum(run.launches.values()),
        "removed": sum(run.removals.values()),
        "jobs_done": run.jobs_done,
        "hours_lost": round(run.work_lost.total_seconds() / 3600, 1),
        "waiting_at_end": len(run.waits.still),
        "violations": len(run.violations),
        "passes": run.passes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", choices=["openb", "azure"], default="openb")
    parser.add_argument("--policies", default="none,karpenter,ours", help=f"of {', '.join(POLICIES)}")
    parser.add_argument("--scale", type=float, help=f"the share of the load that comes; {_SCALE:g} for openb")
    parser.add_argument("--full", action="store_true", help="all of the load")
    parser.add_argument("--jobs", action="store_true", help="what is stopped runs from the beginning again")
    parser.add_argument("--hours", type=float, default=DAY / 3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=_EVERY, help="seconds between two passes, at the least")
    parser.add_argument("--out", type=Path, default=PROJECT / ".nodewright" / "bench")
    given = parser.parse_args()
    names = given.policies.split(",")
    if not {name.partition(":")[0] for name in names} <= set(POLICIES):
        raise SystemExit(f"bench-day: --policies are of {', '.join(POLICIES)}, each with :DURATION where wanted")
    scale = given.scale or (1.0 if given.full or given.trace == "azure" else _SCALE)
    work, sold = tasks(given.trace, scale, given.seed, are_jobs=given.jobs), catalog()
    least = least_usd(work, sold, given.hours)
    print(f"{given.trace}: {len(work):,} pods over {given.hours:g} h, {len(sold.instance_types)} instance types")
    print(f"bound ${least:,.2f}", flush=True)
    result: dict[str, Any] = {"trace": given.trace, "pods": len(work), "scale": scale, "bound_usd": round(least, 2)}
    result["policies"] = {}
    runs = []
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / f"day-{given.trace}.json"
    for name in names:
        run, cpu = played(name, work, sold, timedelta(seconds=given.every), given.hours)
        runs.append(run)
        result["policies"][name] = {**told(run), "cpu_seconds": round(cpu, 1)}
        print(f"{name}: {json.dumps(result['policies'][name])}", flush=True)
        kept.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    notes = [f"{len(work):,} pods of {given.trace}, scale {scale:g}, a pass every {given.every:g} s at the least"]
    # The audit is of Nodewright's plans: of an imitation it says only what that does otherwise.
    shown = [run if run.name.startswith(("none", "ours")) else evolve(run, violations=()) for run in runs]
    page = simulation_markdown(shown, notes, f"day-{given.trace}.svg")
    print(page)
    kept.with_suffix(".md").write_text(page, encoding="utf-8")
    kept.with_suffix(".svg").write_text(simulation_svg(runs, f"A day of {given.trace}"), encoding="utf-8")


if __name__ == "__main__":
    main()
