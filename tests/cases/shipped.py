"""A whole decision on the shipped catalog: policy text and pods in, a plan out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.catalog.build import build_catalog
from engine.decide import decide
from engine.model.catalog import Catalog
from engine.model.diagnostic import Diagnostic
from engine.model.environment import Environment
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.refusal import Refusal
from engine.model.snapshot import CloudFacts, Snapshot
from engine.observe.catalog_source import read_catalog_data
from engine.observe.cluster import decode_cluster
from engine.policy.launch_template import image_variant
from engine.policy.lint import lint
from engine.policy.load import load_policy
from tests.builders import environment

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)

NODE_CLASS = """
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {team: ml}}]
  securityGroupSelectorTerms: [{tags: {team: ml}}]
"""


def node_pool(name: str, *requirements: str, spec: str = "", template: str = "") -> str:
    """A NodePool of the class ``default``; a requirement is a line such as ``{key: k, operator: In, values: [v]}``."""
    lines = "".join(f"        - {line}\n" for line in requirements)
    return f"""
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: {name}}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
{lines}{template}
{spec}
"""


def pod(name: str, **requests: str) -> dict[str, Any]:
    """A waiting pod as the API server shows it; ``nvidia_com__gpu="1"`` asks for a GPU."""
    amounts = {key.replace("__", "/").replace("_", "."): amount for key, amount in requests.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": "2026-11-30T11:59:00Z"},
        "spec": {
            "containers": [{"name": "main", "image": "x", "resources": {"requests": amounts}}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
    }


class Shipped:
    """The shipped catalog in one environment, with policy from text."""

    def __init__(self, *pools: str) -> None:
        self.environment: Environment = environment()
        self.policy: Policy = load_policy([("pools.yaml", "---".join((*pools, NODE_CLASS)).encode())], self.environment)
        zones = self.environment.network.zones
        self.catalog: Catalog = build_catalog("us-east-1", zones, read_catalog_data(), self.environment.pricing)

    def plan(self, *pods: dict[str, Any], **more: Any) -> Plan:
        facts = decode_cluster(pods, [], [], NOON)
        images = {image_variant(kind): "ami-1" for kind in self.catalog.instance_types}
        cloud = CloudFacts(images={"default": images})
        snapshot = Snapshot(self.environment.name, NOON, pods=facts.pods, cloud=cloud, **more)
        return decide(snapshot, self.policy, self.catalog, self.environment)

    def lints(self) -> tuple[Diagnostic, ...]:
        return lint(self.policy, self.catalog)


def reasons(plan: Plan) -> dict[str, Refusal]:
    """The refusals of the only pod that got nothing, by pool."""
    [unplaced] = plan.unplaced
    return {one.node_pool: one.refusal for one in unplaced.refusals}
