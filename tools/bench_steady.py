"""Measure a loop that has nothing to do: 1,000 nodes of ours with 10,000 pods on them.

A real API server (no kubelets: nothing changes but what the bench changes) and the real loop with its watches, store,
rules, metrics and events. EC2's answers are values and nothing converges: neither moto nor Pulumi runs.
`make bench-steady`; results also go to .nodewright/bench/steady.json. All times are of the CPU, since other processes
share the machine; the lags are not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import asdict
from steady_feed import patch_at, patch_on_demand, serve_replay
from steady_world import ENVIRONMENT, PROJECT, decided_fleet, populate, write_project

from engine.model.canonical import canonical_json
from engine.observe.api_server import ApiServer
from engine.programs.cache import user_cache_dir
from engine.programs.go_program import CONTROL_PLANE, require_program
from engine.sandbox.control_plane import ControlPlane, Plane

_RUNNER_AND_KUBELETS = ("kwok", "kube-scheduler", "kube-controller-manager")
# A node would be tainted as not ready until a controller, of which there is none here, has seen it.
_API_SERVER = ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",)
_PAGE = 500
TARGET_PASS_MS, TARGET_RSS_MB, TARGET_EVENTS = 100.0, 400.0, 500.0


@contextmanager
def a_plane(folder: Path) -> Iterator[Plane]:
    """An API server and its etcd; the other parts, which a real cluster runs elsewhere, are stopped."""
    program = require_program(CONTROL_PLANE, os.environ.get("PATH", ""), user_cache_dir(os.environ), PROJECT / "tools")
    made = ControlPlane(program, folder, {"kube-apiserver": _API_SERVER}, owner=os.getpid())
    try:
        plane = made.up()
        for part in _RUNNER_AND_KUBELETS:
            made.stop(part)
        yield plane
    finally:
        made.down()


def decoding_cost(plane: Plane) -> dict[str, float]:
    """What one JSON decoding of all pods costs here, the unit of figures that other machines can compare."""
    server, pages, token = ApiServer(str(plane.kubeconfig)), [], ""
    while not pages or token:
        query = {"limit": str(_PAGE)} | ({"continue": token} if token else {})
        pages.append(server.ask("GET", "/api/v1/pods", query=query)[1])
        token = json.loads(pages[-1])["metadata"].get("continue", "")
    costs = []
    for _ in range(5):
        began = time.process_time()
        for page in pages:
            json.loads(page)
        costs.append(time.process_time() - began)
    return {"milliseconds": min(costs) * 1000, "megabytes": sum(map(len, pages)) / 2**20}


def measured(root: Path, plane: Plane, source: str, asked: argparse.Namespace) -> Any:
    """What a loop of its own process tells of itself."""
    told = root.parent / f"{source}.json"
    arguments = ["--measure", str(root), "--plane", _as_json(plane), "--source", source, "--told", str(told)]
    for name in ("nodes", "pods_each", "passes", "rate", "seconds", "clients"):
        arguments += [f"--{name.replace('_', '-')}", str(getattr(asked, name))]
    if asked.profile:
        arguments += ["--profile", f"{asked.profile}.{source}"]
    subprocess.run([sys.executable, __file__, *arguments], check=True, cwd=PROJECT)
    return json.loads(told.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods-each", type=int, default=10, dest="pods_each")
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--rate", type=float, default=500.0, help="pod events a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--profile", help="where to write a profile of the deciding thread; it slows everything down")
    parser.add_argument("--keep", type=Path, help="a folder that holds the cluster for the next time")
    for hidden in ("--measure", "--plane", "--source", "--told", "--feed"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    for hidden in ("--first", "--step"):
        parser.add_argument(hidden, type=int, default=1, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.feed:
        feed(asked)
    elif asked.measure:
        measure(asked)
    else:
        bench(asked)


def bench(asked: argparse.Namespace) -> None:
    folder = asked.keep or Path(tempfile.mkdtemp(prefix="nodewright-bench-"))
    root, load = folder / "project", os.getloadavg()[0]
    try:
        with a_plane(folder / "plane") as plane:
            if not root.exists():
                fleet = decided_fleet(write_project(root), asked.nodes)
                (root / "cloud.json").write_bytes(canonical_json(fleet.cloud))
                print(f"creating {asked.nodes} nodes with {asked.pods_each} pods each", flush=True)
                began = time.monotonic()
                pods = populate(plane, fleet, asked.pods_each)
                print(f"  {pods} pods in {time.monotonic() - began:.0f} s", flush=True)
            decoding = decoding_cost(plane)
            real = measured(root, plane, "real", asked)
            told = {"decoding_all_pods": decoding, "real": real}
            if real["events"]["sent_per_second"] < 0.95 * asked.rate:
                told["replayed"] = measured(root, plane, "replayed", asked)
    finally:
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)
    told |= {
        "nodes": asked.nodes,
        "pods": asked.nodes * asked.pods_each,
        "provider": "none: nothing converges, and EC2's answers are values",
        "load_average_before": round(load, 2),
        "load_average_after": round(os.getloadavg()[0], 2),
    }
    show(told)
    kept = PROJECT / ".nodewright" / "bench" / "steady.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def feed(asked: argparse.Namespace) -> None:
    plane = _from_json(asked.plane)
    if asked.feed == "demand":
        patch_on_demand(plane, asked.nodes, asked.pods_each)
    elif asked.feed == "rate":
        patch_at(plane, asked.nodes, asked.pods_each, asked.first, asked.step, asked.rate, asked.seconds)
    else:
        serve_replay(plane, asked.rate, asked.seconds)


def measure(asked: argparse.Namespace) -> None:
    # Only here: the other processes of the bench have no use for all that a loop imports.
    from steady_loop import Settings, measured_loop

    plane = _from_json(asked.plane)
    common = ["--plane", asked.plane, "--nodes", str(asked.nodes), "--pods-each", str(asked.pods_each)]

    def fed(kind: str, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, "--feed", kind, *common, *more]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=PROJECT)

    settings = Settings(
        root=Path(asked.measure),
        environment=ENVIRONMENT,
        plane=plane,
        is_replayed=asked.source == "replayed",
        passes=asked.passes,
        rate=asked.rate,
        seconds=asked.seconds,
        clients=asked.clients,
        feed=fed,
        profile=asked.profile,
    )
    Path(asked.told).write_text(json.dumps(measured_loop(settings)), encoding="utf-8")


def _as_json(plane: Plane) -> str:
    return json.dumps({name: str(value) for name, value in asdict(plane).items()})


def _from_json(text: str) -> Plane:
    values = json.loads(text)
    return Plane(**values | {name: Path(values[name]) for name in ("kubeconfig", "authority_file")})


def show(told: Mapping[str, Any]) -> None:
    unit = told["decoding_all_pods"]["milliseconds"]
    print(f"\n{told['nodes']} nodes, {told['pods']} pods; {told['provider']}")
    print(f"load average {told['load_average_before']} before, {told['load_average_after']} after")
    print(f"one JSON decoding of all pods ({told['decoding_all_pods']['megabytes']:.0f} MB): {unit:.0f} ms = 1 d\n")
    for source in ("real", "replayed"):
        if source in told:
            _show_source(source, told[source], unit)


def _show_source(source: str, one: Mapping[str, Any], unit: float) -> None:
    def row(what: str, milliseconds: float, p99: float | None = None, target: str = "") -> None:
        worst = f"{p99:>9.1f}" if p99 is not None else " " * 9
        print(f"  {what:<46} {milliseconds:>9.1f} {worst} {milliseconds / unit:>8.3f} d  {target}")

    print({"real": "against the API server", "replayed": "watch lines replayed by a local HTTP source"}[source])
    print(f"  {'CPU milliseconds':<46} {'median':>9} {'p99':>9}")
    row("to sync, and decide for the first time", one["sync"]["cpu_ms"])
    if one["passes"]:
        whole = one["passes"]["whole"]
        row("a pass", whole["median_ms"], whole["p99_ms"], f"target {TARGET_PASS_MS:.0f} ms")
        for name, part in one["passes"].items():
            if name not in ("whole", "process_ms", "count"):
                row(f"  {name}", part["median_ms"], part["p99_ms"])
        row("the whole process, for each pass", one["passes"]["process_ms"])
    print(f"  synced after {one['sync']['seconds']:.1f} s, first plan after {one['sync']['first_pass_seconds']:.1f} s")
    print(f"  resident: {one['rss_mb']:.0f} MB, at most {one['peak_rss_mb']:.0f} MB  target {TARGET_RSS_MB:.0f} MB")
    events = one["events"]
    print(
        f"  events: {events['sent_per_second']:.0f} sent a second (target {TARGET_EVENTS:.0f}), "
        f"{events['unseen']} unseen; {events['passes']} passes; {events['cpu_share']:.0%} of one CPU"
    )
    for name in ("in_facts", "decided"):
        lag = events[name]
        print(
            f"    seconds until {name.replace('_', ' ')}: median {lag['median']:.3f}, p99 {lag['p99']:.3f}, "
            f"at most {lag['most']:.3f}"
        )
    print()


if __name__ == "__main__":
    main()
