"""A project as a person has it on a real cluster: `nodewright run` in processes of its own, real Pulumi, EC2 by moto.

It is no sandbox environment: its stack file names a kubeconfig and an endpoint, as one of a real account would.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from attrs import define, field, frozen

from engine.converge.store import FileStore
from engine.model import labels as keys
from engine.model.document import DesiredDocument
from engine.sandbox.control_plane import Plane
from engine.sandbox.faults import Delay, write_faults
from tests.cluster.api import Cluster, eventually

REPOSITORY = Path(__file__).resolve().parents[2]
REGION = "us-east-1"
# Machines of one GPU, so that a pod and a machine come to the same. A large pod fits on the larger type alone.
INSTANCE_TYPE, LARGER_TYPE = "g6.xlarge", "g6.2xlarge"
POD = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
LARGE_POD = {"cpu": "6", "memory": "1Gi", "nvidia.com/gpu": "1"}
STOP_SECONDS = 60.0
ALIVE = ("pending", "running", "stopping", "stopped")


def policy(environment: str, consolidate_after: str) -> str:
    """One pool. Its taint is the environment's own: pods of other tests on the same plane are none of its business."""
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {
            "template": {
                "metadata": {"labels": {"workload-type": environment}},
                "spec": {
                    "requirements": [
                        {"key": keys.INSTANCE_TYPE, "operator": "In", "values": [INSTANCE_TYPE, LARGER_TYPE]},
                        {"key": keys.CAPACITY_TYPE, "operator": "In", "values": [keys.ON_DEMAND]},
                        {"key": keys.ARCH, "operator": "In", "values": ["amd64"]},
                    ],
                    "taints": [{"key": environment, "effect": "NoSchedule"}],
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": consolidate_after,
                "budgets": [{"nodes": "100%"}],
            },
        },
    }
    node_class = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu"},
        "spec": {
            "role": f"{environment}-nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": environment}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": environment}}],
        },
    }
    return yaml.safe_dump_all([pool, node_class])


@frozen
class Ran:
    code: int
    stdout: str
    stderr: str

    @property
    def words(self) -> str:
        return self.stdout + self.stderr


@define
class Runner:
    """``nodewright run`` in a session of its own. What it says is kept in ``log``."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def words(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def passes(self) -> list[dict[str, Any]]:
        """The passes that it told of: those that did something, and heartbeats."""
        return [json.loads(line) for line in self.words.splitlines() if line.startswith("{") and line.endswith("}")]

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.words.splitlines() if line.startswith("warning:")]

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def ask_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self) -> int:
        return self.process.wait(STOP_SECONDS)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        self.ask_to_stop()
        return self.exit_code()

    def kill_with_all_it_started(self) -> None:
        """As when its machine loses power: neither it nor a Pulumi of its may say a last word."""
        tree = _tree(self.process.pid)
        for pid in tree:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        for pid in dict.fromkeys((*tree, *_tree(self.process.pid))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(STOP_SECONDS)


@frozen
class LiveProject:
    """``folder`` holds a checkout for each runner, one store and one Pulumi backend for all of them."""

    folder: Path
    environment: str
    plane: Plane
    ec2: Any
    ec2_state: Path
    endpoint_url: str
    consolidate_after: str = "0s"
    run: Mapping[str, object] = field(factory=dict)
    runners: list[Runner] = field(factory=list)

    def checkout(self, name: str = "checkout") -> Path:
        """The project's files, written when it is new."""
        root = self.folder / name
        if root.is_dir():
            return root
        for part in ("policies", "stacks"):
            (root / part).mkdir(parents=True)
        for file in ("Pulumi.yaml", "__main__.py"):
            shutil.copy(REPOSITORY / file, root / file)
        (root / "tools").symlink_to(REPOSITORY / "tools")
        (root / "policies" / "gpu.yaml").write_text(policy(self.environment, self.consolidate_after))
        shipped = yaml.safe_load((REPOSITORY / "stacks" / "Pulumi.sandbox-real.yaml").read_text())
        config = shipped["config"]
        del config["nodewright:sandbox"], config["nodewright:defaultNodeClass"]
        config["nodewright:cluster"] = {
            "name": self.environment,
            "endpoint": self.plane.endpoint,
            "certificateAuthority": self.plane.certificate_authority,
            "serviceCidr": "10.100.0.0/16",
            "kubeconfig": str(self.plane.kubeconfig),
        }
        config["nodewright:network"]["discoveryTags"] = {"karpenter.sh/discovery": self.environment}
        config["nodewright:endpoint"] = self.endpoint_url
        config["nodewright:store"] = str(self.folder / "store")
        config["nodewright:backend"] = self.backend.as_uri()
        config["nodewright:run"] = {"every": "2s", "cloudEvery": "2s", "holdNewNodes": True, **self.run}
        (root / "stacks" / f"Pulumi.{self.environment}.yaml").write_text(yaml.safe_dump(shipped))
        self.backend.mkdir(exist_ok=True)
        return root

    @property
    def backend(self) -> Path:
        return self.folder / "backend"

    @property
    def store(self) -> FileStore:
        return FileStore(self.folder / "store", self.environment)

    def nodewright(self, *arguments: str, checkout: str = "checkout") -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "engine", "-C", str(self.checkout(checkout)), *arguments],
            env=self._variables(),
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, checkout: str = "checkout", clock_ahead_seconds: float = 0.0) -> Runner:
        """``nodewright run``, if need be under a wall clock of its own; it is ended with the project."""
        root = self.checkout(checkout)
        log = self.folder / f"run-{len(self.runners)}-{checkout}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*_program(clock_ahead_seconds), "-C", str(root), "run", self.environment, "-o", "json"],
                env=self._variables(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=root,
                start_new_session=True,
            )
        runner = Runner(process, log)
        self.runners.append(runner)
        return runner

    def end(self) -> None:
        for runner in self.runners:
            if runner.is_running:
                runner.kill_with_all_it_started()

    def instances(self, *states: str) -> list[dict[str, Any]]:
        """Those of the environment, of these states or alive."""
        filters = [
            {"Name": f"tag:{keys.TAG_ENVIRONMENT}", "Values": [self.environment]},
            {"Name": "instance-state-name", "Values": list(states or ALIVE)},
        ]
        pages = self.ec2.get_paginator("describe_instances").paginate(Filters=filters)
        return [one for page in pages for group in page["Reservations"] for one in group["Instances"]]

    def every_instance(self) -> list[dict[str, Any]]:
        """Those that are gone too: what was ever launched."""
        return self.instances(*ALIVE, "shutting-down", "terminated")

    def launched(self) -> Counter[str]:
        """How often each claim was ever launched."""
        return Counter(claim_of(instance) for instance in self.every_instance())

    def launches_received(self) -> list[str]:
        """The claims of the launches that EC2 was asked for, in their order, whatever became of them."""
        with urllib.request.urlopen(f"{self.endpoint_url}/nodewright/launches", timeout=10) as answer:
            return [str(one["claim"]) for one in json.load(answer)]

    def document(self) -> DesiredDocument | None:
        return self.store.document()

    def claims(self) -> list[str]:
        document = self.document()
        return sorted(claim.name for claim in document.claims) if document else []

    def is_at_rest(self) -> bool:
        """Whether EC2, the document and the state of every lane name the same machines."""
        alive = sorted(claim_of(instance) for instance in self.instances())
        ids = sorted(instance["InstanceId"] for instance in self.instances())
        return alive == self.claims() and ids == self.ids_in_state()

    def resources(self) -> dict[str, list[dict[str, Any]]]:
        """What Pulumi's state says of each stack."""
        files = sorted(self.backend.glob(".pulumi/stacks/*/*.json"))
        return {file.stem: _resources(json.loads(file.read_text())) for file in files}

    def ids_in_state(self) -> list[str]:
        """The instances in all stacks' states."""
        kinds = [one for stack in self.resources().values() for one in stack]
        return sorted(str(one["id"]) for one in kinds if one["type"] == "aws:ec2/instance:Instance")

    def delay(self, action: str, seconds: float) -> None:
        """From now on EC2 answers it that much later."""
        write_faults(self.ec2_state / "faults.json", [Delay(action, seconds)])

    def mend(self) -> None:
        write_faults(self.ec2_state / "faults.json", [])

    def _variables(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            "PYTHONPATH": str(REPOSITORY),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(REPOSITORY / "stacks" / "sandbox.passphrase"),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": REGION,
        }


@contextmanager
def ended(project: LiveProject) -> Iterator[LiveProject]:
    try:
        yield project
    finally:
        project.end()


def claim_of(instance: Mapping[str, Any]) -> str:
    return next((str(tag["Value"]) for tag in instance["Tags"] if tag["Key"] == keys.TAG_CLAIM), "")


def tolerations(environment: str) -> list[dict[str, str]]:
    """What a pod needs to be the environment's."""
    return [{"key": environment, "operator": "Exists"}]


def nodes_of(cluster: Cluster, environment: str) -> list[dict[str, Any]]:
    return cluster.list("Node", f"workload-type={environment}")


def taints_of(node: Mapping[str, Any]) -> set[str]:
    return {taint["key"] for taint in node["spec"].get("taints") or []}


def bound_to(pods: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(pod["spec"]["nodeName"] for pod in pods)


def holds_for(seconds: float, look: Callable[[], bool], what: str) -> None:
    """It is so, and stays so: the only way to see that something does not happen."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        assert look(), f"not for {seconds:.0f} s: {what}"
        time.sleep(0.1)


def until_at_rest(project: LiveProject, machines: int, seconds: float = 60.0) -> None:
    eventually(
        lambda: len(project.claims()) == machines and project.is_at_rest(), f"{machines} machines, all known", seconds
    )


def _program(clock_ahead_seconds: float) -> list[str]:
    """The command line, or the same with the one clock that a run decides by put ahead."""
    if not clock_ahead_seconds:
        return [sys.executable, "-m", "engine"]
    return [
        sys.executable,
        "-c",
        f"""
import sys
from datetime import UTC, datetime, timedelta
from engine.reconcile import running
from engine.reconcile.host import Host
ahead = timedelta(seconds={clock_ahead_seconds})
real = running.run_environment
running.run_environment = lambda *given: real(*given, host=Host(now=lambda: datetime.now(UTC) + ahead))
sys.argv[0] = "nodewright"
from engine.cli.main import run
run()
""",
    ]


def _resources(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    latest = (state.get("checkpoint") or {}).get("latest") or {}
    return list(latest.get("resources") or [])


def _tree(pid: int) -> list[int]:
    """A process and all that descends from it, parents first."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children.get(one, [])
    return found
