"""Measure a pod's way to EC2: from its POST to the RunInstances call that its node comes from.

A real API server and scheduler, real Pulumi; EC2 is moto on loopback and the AWS plugin the stand-in that the sandbox
brings, attached to the engine. The official plugin's configuration alone has been reported to take seconds, so the
figures flatter. `make bench-reaction`; results also go to .nodewright/bench/reaction.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from attrs import define, field, frozen

from engine.reconcile import sandboxed
from engine.reconcile.workspace import Workspace
from engine.sandbox.control_plane import Plane
from engine.sandbox.ec2 import ec2_up
from engine.sandbox.plane_client import PlaneClient

PROJECT = Path(__file__).resolve().parents[1]
ENVIRONMENT = "bench"
# Real Karpenter on two cores, one pod, by default and with BATCH_IDLE_DURATION=50ms: from POST to its NodeClaim, which
# is before any call to EC2.
KARPENTER_SECONDS = {"Karpenter, as it comes": 1.029, "Karpenter, batch window 50 ms": 0.076}
PATIENCE_SECONDS = 120.0
SINGLE_CPU, SINGLE_MEMORY = "3", "10Gi"

POLICY = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: bench}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: bench}
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g4dn, g5, g6]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 24h}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: bench}
spec:
  role: bench-nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: bench}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: bench}}]
"""


Look = Callable[[], Any]


@frozen
class Sample:
    """Seconds from the POST of a pod to the call that launches its machine, and the phases of the pass that did."""

    scenario: str
    nodes: int
    seconds: float


@define
class Bench:
    root: Path
    client: PlaneClient
    endpoint_url: str
    random: random.Random = field(factory=lambda: random.Random(1))
    samples: list[Sample] = field(factory=list)
    _pods: int = 0

    def pod(self, gpus: int = 1, cpu: str = SINGLE_CPU, memory: str = SINGLE_MEMORY) -> float:
        """Create one; the wall-clock time just before its POST."""
        self._pods += 1
        requests = {"cpu": cpu, "memory": memory, "nvidia.com/gpu": str(gpus)}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"bench-{self._pods}", "namespace": "default"},
            "spec": {
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "containers": [
                    {
                        "name": "main",
                        "image": "model:1",
                        "resources": {"requests": requests, "limits": {"nvidia.com/gpu": str(gpus)}},
                    }
                ],
            },
        }
        at = time.time()
        self.client.create("/api/v1/namespaces/default/pods", body)
        return at

    def launches(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.endpoint_url}/nodewright/launches", timeout=10) as answer:
            told: list[dict[str, Any]] = json.load(answer)
        return told

    def launched_after(self, known: int, count: int = 1) -> list[float]:
        """When each of ``count`` further launches was received, once all are."""
        return until(lambda: self._times(known, count), f"{count} more launches")

    def _times(self, known: int, count: int) -> list[float]:
        times = [float(one["received_at"]) for one in self.launches()[known:]]
        return times if len(times) >= count else []

    def took(self, scenario: str, nodes: int, seconds: float) -> None:
        self.samples.append(Sample(scenario, nodes, seconds))
        print(f"  {scenario}: {seconds:.3f} s", flush=True)

    def waiting(self) -> int:
        pods = self.client.get("/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D")["items"]
        return len(pods)

    def settle(self) -> None:
        until(lambda: self.waiting() == 0, "all pods are bound")
        time.sleep(1.0)


def until(look: Look, what: str, seconds: float = PATIENCE_SECONDS) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise SystemExit(f"bench-reaction: not within {seconds:.0f} s: {what}")
        time.sleep(0.02)


def singles(bench: Bench, nodes: int, count: int) -> None:
    """One pod at a time, each on a node of its own, nothing under way."""
    for _ in range(count):
        known = len(bench.launches())
        at = bench.pod()
        [called, *_] = bench.launched_after(known)
        bench.took("single pod, at rest", nodes, called - at)
        bench.settle()


def while_in_flight(bench: Bench, nodes: int, count: int) -> None:
    """A pod that comes while the machine before it still boots, so that its lane is taken."""
    for _ in range(count):
        known = len(bench.launches())
        bench.pod()
        bench.launched_after(known)
        time.sleep(bench.random.uniform(0.2, 4.0))
        at = bench.pod()
        times = bench.launched_after(known, 2)
        bench.took("pod during a launch", nodes, times[1] - at)
        bench.settle()


def burst(bench: Bench, nodes: int, count: int) -> None:
    """Pods of several sizes created as fast as one client can: until the first and until the last call."""
    known = len(bench.launches())
    sizes = [(1, "3", "10Gi"), (1, "7", "25Gi"), (2, "15", "60Gi"), (4, "40", "150Gi")]
    weights = [6, 2, 1, 1]
    at = time.time()
    for gpus, cpu, memory in bench.random.choices(sizes, weights, k=count):
        bench.pod(gpus, cpu, memory)
    created = time.time() - at
    until(lambda: len(bench.launches()) > known and bench.waiting() == 0, "the burst is bound", 600)
    times = sorted(float(one["received_at"]) for one in bench.launches()[known:])
    bench.took(f"burst of {count}: first call", nodes, times[0] - at)
    # A machine that is bought minutes later, since pods went elsewhere than planned, is the last call too.
    bench.took(f"burst of {count}: nine in ten calls", nodes, times[-(-len(times) * 9 // 10) - 1] - at)
    bench.took(f"burst of {count}: last call", nodes, times[-1] - at)
    print(f"  burst of {count}: created in {created:.2f} s, {len(times)} launches", flush=True)


def grow(bench: Bench, nodes: int) -> None:
    """As many one-pod nodes as wanted."""
    missing = nodes - len(bench.launches())
    for _ in range(max(0, missing)):
        bench.pod()
    until(lambda: len(bench.launches()) >= nodes and bench.waiting() == 0, f"{nodes} nodes", 900)
    time.sleep(3.0)


@contextmanager
def a_runner(root: Path, variables: dict[str, str]) -> Iterator[Path]:
    """``nodewright run`` on the bench's environment; its passes, as JSON lines, go to the file."""
    log = root / "passes.jsonl"
    with log.open("wb") as out, (root / "run.err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine", "-C", str(root), "run", ENVIRONMENT, "-o", "json"],
            env={**os.environ, **variables},
            stdout=out,
            stderr=err,
            cwd=root,
        )
        try:
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def project(root: Path) -> None:
    """A project of its own: the bench's policy and stack, nothing of this machine's."""
    (root / "policies").mkdir(parents=True)
    (root / "stacks").mkdir()
    (root / "policies" / "bench.yaml").write_text(POLICY, encoding="utf-8")
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(PROJECT / name, root / name)
    shutil.copy(PROJECT / "stacks" / "sandbox.passphrase", root / "stacks" / "sandbox.passphrase")
    (root / "tools").symlink_to(PROJECT / "tools")
    stack = yaml.safe_load((PROJECT / "stacks" / "Pulumi.sandbox-real.yaml").read_text(encoding="utf-8"))
    config = stack["config"]
    config["nodewright:cluster"]["name"] = ENVIRONMENT
    config["nodewright:network"] |= {"discoveryTags": {"karpenter.sh/discovery": "bench"}, "cidr": "10.0.0.0/16"}
    config["nodewright:defaultNodeClass"] = "bench"
    config["nodewright:caps"] = {"launches": 500, "removals": 10, "addedUsdPerHour": 100_000}
    config["nodewright:sandbox"] = {"cluster": "real", "pods": 0}
    config["nodewright:run"] = {"holdNewNodes": True}
    (root / "stacks" / f"Pulumi.{ENVIRONMENT}.yaml").write_text(yaml.safe_dump(stack), encoding="utf-8")


def nodewright(root: Path, variables: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "engine", "-C", str(root), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"bench-reaction: nodewright {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def phases(log: Path) -> dict[str, list[float]]:
    """The phases of every pass that launched, by name."""
    found: dict[str, list[float]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        told = json.loads(line) if line.startswith("{") else {}
        if told.get("launches"):
            for name, seconds in (told.get("seconds") or {}).items():
                found.setdefault(name, []).append(float(seconds))
    return found


def table(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, int], list[float]] = {}
    for sample in samples:
        groups.setdefault((sample.scenario, sample.nodes), []).append(sample.seconds)
    return [
        {
            "scenario": scenario,
            "nodes": nodes,
            "samples": len(seconds),
            "median_seconds": round(statistics.median(seconds), 3),
            "p99_seconds": round(sorted(seconds)[max(0, -(-len(seconds) * 99 // 100) - 1)], 3),
            "max_seconds": round(max(seconds), 3),
            "median_over_karpenter_default": round(
                statistics.median(seconds) / KARPENTER_SECONDS["Karpenter, as it comes"], 2
            ),
        }
        for (scenario, nodes), seconds in groups.items()
    ]


def measure(root: Path, plane: Plane, endpoint_url: str, variables: dict[str, str], asked: argparse.Namespace) -> Any:
    bench = Bench(root, plane.client(), endpoint_url)
    rows, passes = [], {}
    with a_runner(root, variables) as log:
        for nodes in asked.nodes:
            print(f"growing to {nodes} nodes", flush=True)
            grow(bench, nodes)
            print(f"measuring at {nodes} nodes", flush=True)
            singles(bench, nodes, asked.singles)
            while_in_flight(bench, nodes, asked.in_flight)
        if asked.burst:
            burst(bench, asked.nodes[-1], asked.burst)
        passes = phases(log)
    rows = table(bench.samples)
    return {"rows": rows, "phases": {name: round(statistics.median(each), 3) for name, each in passes.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 300])
    parser.add_argument("--singles", type=int, default=40)
    parser.add_argument("--in-flight", type=int, default=10, dest="in_flight")
    parser.add_argument("--burst", type=int, default=200)
    parser.add_argument("--launch-seconds", type=float, default=12.0, help="from launch to running, as EC2 takes")
    parser.add_argument("--keep", action="store_true", help="leave the bench's folder, for a look at its logs")
    asked = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="nodewright-bench-")) / "project"
    root.mkdir()
    project(root)
    # As an interrupt: what runs is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    variables = {"NODEWRIGHT_SANDBOX_LAUNCH_SECONDS": str(asked.launch_seconds), "PYTHONPATH": str(PROJECT)}
    load = os.getloadavg()[0]
    try:
        nodewright(root, variables, "sandbox", "up", ENVIRONMENT)
        plane, endpoint_url = running_parts(root)
        told = measure(root, plane, endpoint_url, variables, asked)
    finally:
        nodewright(root, variables, "sandbox", "down", ENVIRONMENT)
        if not asked.keep:
            shutil.rmtree(root.parent, ignore_errors=True)
    told |= {"provider": "the sandbox's stand-in, attached", "launch_seconds": asked.launch_seconds}
    told |= {"load_average_before": round(load, 2), "load_average_after": round(os.getloadavg()[0], 2)}
    show(told)
    kept = PROJECT / ".nodewright" / "bench" / "reaction.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def running_parts(root: Path) -> tuple[Plane, str]:
    """The control plane and the EC2 endpoint that `sandbox up` has started."""
    workspace = Workspace(root)
    plane = sandboxed.plane_status(workspace, ENVIRONMENT)
    if plane is None:
        raise SystemExit("bench-reaction: the control plane does not run")
    return plane, ec2_up(sandboxed.ec2_folder(workspace, ENVIRONMENT)).url


def show(told: dict[str, Any]) -> None:
    print(f"\nPod POST to RunInstances received; provider: {told['provider']}; boot {told['launch_seconds']} s")
    print(f"load average {told['load_average_before']} before, {told['load_average_after']} after\n")
    print(f"{'scenario':<28} {'nodes':>5} {'n':>4} {'median s':>9} {'p99 s':>7} {'x Karpenter':>12}")
    for row in told["rows"]:
        print(
            f"{row['scenario']:<28} {row['nodes']:>5} {row['samples']:>4} {row['median_seconds']:>9.3f} "
            f"{row['p99_seconds']:>7.3f} {row['median_over_karpenter_default']:>12.2f}"
        )
    for name, seconds in KARPENTER_SECONDS.items():
        print(f"{name + ' (to its NodeClaim)':<48} {seconds:>9.3f}")
    print("\nmedian seconds from the begin of a launching pass to: " + str(told["phases"]))


if __name__ == "__main__":
    main()
