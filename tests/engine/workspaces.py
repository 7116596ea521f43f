"""A whole project in a temporary folder, and the commands a person would type in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from attrs import frozen

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND_SECONDS = 300

NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: inference
spec:
  template:
    metadata:
      labels: {workload-type: online-inference, accelerator: nvidia-l40s}
    spec:
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g6e]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      taints:
        - {key: nvidia.com/gpu, effect: NoSchedule}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
  limits: {nvidia.com/gpu: "8"}
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 0s
    budgets: [{nodes: "100%"}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: gpu
spec:
  role: gpu-nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: sandbox}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: sandbox}}]
"""

OTHER_NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: other
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m6i]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
"""


@frozen
class Ran:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def words(self) -> str:
        return self.stdout + self.stderr


@frozen
class Project:
    """A copy of this project with its own policies, stack, state and sandbox."""

    root: Path
    environment: str = "sandbox"

    def nodewright(self, *arguments: str, **variables: str) -> Ran:
        return self._ran([sys.executable, "-m", "engine", "-C", str(self.root), *arguments], variables)

    def up(self, *arguments: str, **variables: str) -> Ran:
        return self.nodewright("up", self.environment, "--yes", *arguments, **variables)

    def started_up(self, **variables: str) -> subprocess.Popen[str]:
        """``up`` in a process group of its own, so that all of it can be killed at once."""
        command = [sys.executable, "-m", "engine", "-C", str(self.root), "up", self.environment, "--yes"]
        return subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def pulumi(self, *arguments: str) -> Ran:
        """A plain ``pulumi`` command in a shell prepared as the README says."""
        prepared = self.nodewright("env", self.environment)
        assert prepared.code == 0, prepared.words
        script = f'{prepared.stdout}\ncd "{self.root}" && exec pulumi "$@"'
        return self._ran(["sh", "-c", script, "sh", *arguments], {})

    def scale(self, replicas: int) -> None:
        ran = self.nodewright("sandbox", "scale", str(replicas), self.environment)
        assert ran.code == 0, ran.words

    def write_policy(self, *documents: str) -> None:
        (self.root / "policies" / "pools.yaml").write_text("---".join(documents))

    def ec2(self) -> Any:
        noted = json.loads((self.root / ".nodewright" / self.environment / "ec2" / "ec2.json").read_text())
        return boto3.client(
            "ec2",
            endpoint_url=noted["url"],
            region_name="us-east-1",
            aws_access_key_id="sandbox",
            aws_secret_access_key="sandbox",
        )

    def instances(self) -> list[dict[str, Any]]:
        """Every instance that is not going, in claim order."""
        alive = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
        pages = self.ec2().get_paginator("describe_instances").paginate(Filters=alive)
        found = [each for page in pages for group in page["Reservations"] for each in group["Instances"]]
        return sorted(found, key=claim_of)

    def document(self) -> dict[str, Any]:
        newest = max((self.root / ".nodewright" / self.environment / "documents").iterdir())
        return dict(json.loads(newest.read_text()))

    def claims(self) -> list[str]:
        return sorted(claim["name"] for node_set in self.document()["node_sets"] for claim in node_set["claims"])

    def _ran(self, command: list[str], variables: dict[str, str]) -> Ran:
        done = subprocess.run(
            command,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


def claim_of(instance: dict[str, Any]) -> str:
    return next(str(tag["Value"]) for tag in instance["Tags"] if tag["Key"] == "nodewright.dev/claim")


@contextmanager
def project(folder: Path, pods: int = 0) -> Iterator[Project]:
    """A project whose sandbox has no pods of the trace unless asked; its EC2 is stopped at the end."""
    root = folder / "project"
    root.mkdir()
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(REPOSITORY / name, root / name)
    for name in ("stacks", "tools"):
        shutil.copytree(REPOSITORY / name, root / name)
    (root / "policies").mkdir()
    stack = root / "stacks" / "Pulumi.sandbox.yaml"
    stack.write_text(_with_sandbox(stack.read_text(), pods))
    made = Project(root)
    made.write_policy(NODE_POOL)
    try:
        yield made
    finally:
        made.nodewright("sandbox", "down", made.environment)


def kill_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)


def _with_sandbox(stack: str, pods: int) -> str:
    """The shipped stack file with another number of pods and no default node class."""
    lines = []
    for line in stack.splitlines():
        if line.strip().startswith("pods:"):
            line = f"{line[: len(line) - len(line.lstrip())]}pods: {pods}"
        if "defaultNodeClass" not in line:
            lines.append(line)
    return "\n".join(lines) + "\n"
