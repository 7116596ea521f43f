"""A small project in a Git repository of its own, and a recorded moment of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from attrs import evolve, frozen

from engine.model.canonical import canonical_json
from engine.model.pod import Owner, Pod
from engine.model.snapshot import CloudFacts, Snapshot
from engine.model.workload import ObjectKey, Workload, WorkloadOwner
from tests.builders import NOON, pod, toleration

STACK = """\
config:
  nodewright:region: us-east-1
  nodewright:cluster:
    name: test
    endpoint: https://test.eks.example.com
    certificateAuthority: dGVzdA==
    serviceCidr: 10.100.0.0/16
  nodewright:network:
    mode: owned
    cidr: 10.0.0.0/16
    zones: {us-east-1b: use1-az1}
    discoveryTags: {karpenter.sh/discovery: test}
  nodewright:pricing:
    overrides: {g5.xlarge: 1, g5.2xlarge: 1.5, g6.xlarge: 0.8, g6.2xlarge: 1.2, g6e.xlarge: 2, g6e.2xlarge: 2.5}
"""
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g6, g6e]}
        - {key: karpenter.k8s.aws/instance-size, operator: In, values: [xlarge, 2xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
  disruption:
    consolidateAfter: 5m
    budgets: [{nodes: 20%}]
  limits: {nvidia.com/gpu: "8"}
"""
CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: gpu}
spec:
  role: gpu-nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: test}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: test}}]
"""
MEMORY_RULE = """\
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: gold-memory}
spec:
  match: {pods: {selector: {tier: gold}}}
  params: {minMem: {type: int, default: 40}}
  require: instanceType.gpuMemoryGiB >= params.minMem
  message: gold pods need a large GPU
"""
SIZE_GUARDRAIL = """\
apiVersion: nodewright.dev/v1alpha1
kind: Guardrail
metadata: {name: plan-size}
spec:
  blocks: [add]
  expression: plan.launchCount <= 2
  message: too many nodes at once
"""
TEAM_LIMIT = """\
apiVersion: nodewright.dev/v1alpha1
kind: LimitRule
metadata: {name: team-gpus}
spec:
  resource: gpus
  groupBy: "'team' in pod.labels ? pod.labels['team'] : 'nobody'"
  ceiling: "3"
  message: the team has its GPUs
"""
QUIET = """\
apiVersion: nodewright.dev/v1alpha1
kind: DisruptionBudget
metadata: {name: quiet}
spec:
  reasons: [Empty]
  candidate: node.age > duration('2h')
  message: young nodes stay
"""
_AUTHOR = {
    "GIT_AUTHOR_NAME": "A. Person",
    "GIT_AUTHOR_EMAIL": "person@example.com",
    "GIT_COMMITTER_NAME": "A. Person",
    "GIT_COMMITTER_EMAIL": "person@example.com",
    "GIT_AUTHOR_DATE": "2026-11-30T12:00:00Z",
    "GIT_COMMITTER_DATE": "2026-11-30T12:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


@frozen
class Repository:
    """``root`` is the project's folder, which is the repository's too."""

    root: Path

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def commit(self, subject: str) -> str:
        """Everything, as it lies there; the commit's name."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD").strip()

    def record(self, seen: Snapshot, name: str = "monday") -> Path:
        file = self.root / "policies" / "snapshots" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(canonical_json(seen))
        return file

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        done = subprocess.run(command, env={**os.environ, **_AUTHOR}, capture_output=True, text=True, check=True)
        return done.stdout


def repository(root: Path, **more: str) -> Repository:
    """With one pool, one environment ``test`` and a first commit; ``more`` are further files of policies/rules."""
    made = Repository(root)
    root.mkdir(parents=True, exist_ok=True)
    made.git("init", "--quiet", "--initial-branch=main")
    made.write(
        {
            "Pulumi.yaml": "name: test\nruntime: python\n",
            "stacks/Pulumi.test.yaml": STACK,
            "policies/gpu.yaml": POOL,
            "policies/class.yaml": CLASS,
            **{f"policies/rules/{name}.yaml": text for name, text in more.items()},
        }
    )
    return made


def replicas(count: int, name: str = "llm", **labels: str) -> list[Pod]:
    """Pods of a Deployment that ask for one GPU each."""
    made = (
        pod(f"{name}-{number}", gpu=1, namespace="ml", tolerations=(toleration("nvidia.com/gpu"),))
        for number in range(count)
    )
    return [evolve(each, owner=Owner("ReplicaSet", f"{name}-7d9c"), labels=labels) for each in made]


def a_moment(pods: Iterable[Pod], taken_at: datetime = NOON, **more: object) -> Snapshot:
    """Pods wait, and no node is there. Replica sets are those of Deployments of the same name."""
    waiting = tuple(pods)
    owned = sorted({each.owner.name for each in waiting if each.owner is not None})
    owners = tuple(
        WorkloadOwner("ReplicaSet", ObjectKey("ml", name), 1, f"Deployment/{name.rpartition('-')[0]}") for name in owned
    )
    images = {"gpu": {"nvidia-amd64": "ami-nvidia", "standard-amd64": "ami-standard"}}
    fields: dict[str, object] = {"cloud": CloudFacts(images=images), "workload": Workload(owners=owners), **more}
    return Snapshot(environment="test", taken_at=taken_at, pods=waiting, **fields)  # type: ignore[arg-type]
