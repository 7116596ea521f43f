"""Policy texts that load as they are, and what becomes of them when one thing is changed."""

from __future__ import annotations

from attrs import evolve, frozen

from engine.model.diagnostic import Diagnostic, InvalidInput
from engine.model.environment import Environment
from engine.model.policy import NodeClass, NodePool, Policy
from engine.policy.load import load_policy

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu
spec:
  template:
    metadata:
      labels:
        team: search
    spec:
      nodeClassRef:
        group: karpenter.k8s.aws
        kind: EC2NodeClass
        name: gpu-nodes
      requirements:
        - key: karpenter.k8s.aws/instance-family
          operator: In
          values: [g5, g6]
        - key: karpenter.sh/capacity-type
          operator: In
          values: [spot, on-demand]
      taints:
        - key: nvidia.com/gpu
          effect: NoSchedule
  disruption:
    consolidateAfter: 5m
  limits:
    nvidia.com/gpu: "8"
"""
CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: gpu-nodes
spec:
  role: gpu-node
  amiSelectorTerms:
    - alias: al2023@latest
  subnetSelectorTerms:
    - tags: {karpenter.sh/discovery: prod}
  securityGroupSelectorTerms:
    - tags: {karpenter.sh/discovery: prod}
"""


@frozen
class Edited:
    """A file's text with one change, and the line where it was made."""

    text: str
    line: int


def edited(text: str, old: str, new: str) -> Edited:
    """``text`` with its only ``old`` replaced; ``line`` is where ``old`` began."""
    assert text.count(old) == 1, f"{old!r} is in the text {text.count(old)} times"
    return Edited(text.replace(old, new), text[: text.index(old)].count("\n") + 1)


def added(text: str, below: str, line: str) -> Edited:
    """``text`` with a line added below the only line that is ``below``, as deep as that one unless it is indented."""
    lines = text.splitlines()
    assert lines.count(below) == 1, f"{below!r} is in the text {lines.count(below)} times"
    at = lines.index(below) + 1
    return Edited("\n".join([*lines[:at], *line.splitlines(), *lines[at:]]) + "\n", at + 1)


def policy_of(*texts: str, environment: Environment | None = None) -> Policy:
    return load_policy([(f"f{number}.yaml", text.encode()) for number, text in enumerate(texts)], environment)


def pool_of(text: str, environment: Environment | None = None) -> NodePool:
    return policy_of(text, CLASS, environment=environment).node_pools[0]


def class_of(text: str) -> NodeClass:
    return policy_of(POOL, text).node_classes[0]


def findings_of(*texts: str | bytes, environment: Environment | None = None) -> tuple[Diagnostic, ...]:
    """All findings, whether the texts load or not."""
    files = [
        (f"f{number}.yaml", text if isinstance(text, bytes) else text.encode()) for number, text in enumerate(texts)
    ]
    try:
        return load_policy(files, environment).warnings
    except InvalidInput as invalid:
        return invalid.diagnostics


def rules(findings: tuple[Diagnostic, ...]) -> list[str]:
    return [found.rule for found in findings]


def without_places(pool: NodePool) -> NodePool:
    """The pool's meaning."""
    return evolve(pool, position=evolve(pool.position, file="", line=0, column=0, source_line=""))
