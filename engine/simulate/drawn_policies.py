"""Policies drawn by chance for simulated worlds, as files: what a person could write, the odd ones included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from random import Random
from typing import Any

from attrs import evolve

from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.policy import Policy
from engine.policy.load import load_policy

FAMILIES = ("g4dn", "g5", "g6")
_TYPES = frozenset(f"{family}.{size}" for family in FAMILIES for size in ("xlarge", "4xlarge", "12xlarge"))
_LEAST_POOLS, _MOST_POOLS = 1, 3

# Most err now and then: on a number of nodes, at an hour, on a node without pods.
_RULES: tuple[Mapping[str, Any], ...] = (
    {"budget": "60 / (nodePool.nodes - 3)"},
    {"budget": "2"},
    {"candidate": "60 / node.pods.size() >= 0"},
    {"candidate": "node.age > duration('10m') && 60 / (node.pods.size() - 1) != 0"},
)
BUDGETS: tuple[list[dict[str, Any]], ...] = (
    [{"nodes": "10%"}],
    [{"nodes": "1"}],
    [{"nodes": "50%"}],
    [{"nodes": "2"}, {"nodes": "0", "schedule": "0 9 * * *", "duration": "3h"}],
    [{"nodes": "100%", "reasons": ["Empty"]}, {"nodes": "1", "reasons": ["Underutilized", "Drifted"]}],
    [{"nodes": "0", "schedule": "@daily", "duration": "20h"}],
)


def drawn_policy(chance: Random, environment: Environment) -> Policy:
    """One to three pools over one node class, and now and then a rule that fails."""
    return loaded(drawn_objects(chance), environment)


def drawn_objects(chance: Random) -> list[dict[str, Any]]:
    """The same as objects of a file."""
    pools = [_pool(chance, f"pool-{number}") for number in range(chance.randint(_LEAST_POOLS, _MOST_POOLS))]
    rules = [_rule(chance)] if chance.random() < 0.6 else []
    if chance.random() < 0.3:
        rules.append(_limit_rule(chance))
    return [*pools, deepcopy(dict(_NODE_CLASS)), *rules]


def loaded(objects: list[dict[str, Any]], environment: Environment) -> Policy:
    # JSON is YAML; a stream of documents needs its marks.
    files = "\n---\n".join(json.dumps(each) for each in objects)
    return load_policy([("drawn.yaml", files.encode())], environment)


def small_catalog(catalog: Catalog) -> Catalog:
    """The same with a few types: worlds are many, and each asks about every one."""
    kept = [each for each in catalog.instance_types if each.name in _TYPES]
    names = {each.name for each in kept}
    return evolve(
        catalog,
        instance_types=tuple(kept),
        offerings=tuple(each for each in catalog.offerings if each.instance_type in names),
        digest=f"{catalog.digest}-small",
    )


_NODE_CLASS: Mapping[str, Any] = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "drawn"},
    "spec": {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "drawn"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "drawn"}}],
    },
}


def _pool(chance: Random, name: str) -> dict[str, Any]:
    annotations = {}
    if chance.random() < 0.2:
        annotations["nodewright.dev/min-nodes"] = str(chance.randint(1, 2))
    if chance.random() < 0.2:
        annotations["nodewright.dev/headroom"] = "nvidia.com/gpu=1"
    if chance.random() < 0.2:
        annotations["nodewright.dev/surge"] = chance.choice(("0", "1"))
    if chance.random() < 0.4:
        annotations["nodewright.dev/rollout-canary"] = chance.choice(("0", "2"))
    capacity = chance.choice((["on-demand"], ["spot", "on-demand"], ["spot"]))
    template: dict[str, Any] = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "drawn"},
        "requirements": [
            {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": list(FAMILIES)},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity},
        ],
        "expireAfter": chance.choice(("Never", "Never", "6h", "24h")),
    }
    if chance.random() < 0.3:
        template["startupTaints"] = [{"key": "drawn.example.com/starting", "effect": "NoSchedule"}]
    if chance.random() < 0.2:
        template["terminationGracePeriod"] = chance.choice(("10m", "2h"))
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "template": {"spec": template},
            "weight": chance.choice((1, 1, 10)),
            "disruption": {
                "consolidationPolicy": chance.choice(("WhenEmpty", "WhenEmptyOrUnderutilized")),
                "consolidateAfter": chance.choice(("0s", "30s", "5m", "30m")),
                "budgets": chance.choice(BUDGETS),
            },
            "limits": {"nvidia.com/gpu": str(chance.choice((4, 8, 16, 40)))},
        },
    }


def _rule(chance: Random) -> dict[str, Any]:
    return {
        "apiVersion": "nodewright.dev/v1alpha1",
        "kind": "DisruptionBudget",
        "metadata": {"name": "drawn"},
        "spec": {**chance.choice(_RULES), "message": "a rule that fails now and then"},
    }


def _limit_rule(chance: Random) -> dict[str, Any]:
    resource, ceiling = chance.choice((("gpus", "6"), ("nodes", "4"), ("usdPerHour", "9.5")))
    return {
        "apiVersion": "nodewright.dev/v1alpha1",
        "kind": "LimitRule",
        "metadata": {"name": "ceiling"},
        "spec": {"resource": resource, "ceiling": ceiling, "message": "no pool has more than that"},
    }
