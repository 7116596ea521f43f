"""Workloads drawn from a seed: pods, daemonsets and the pools they are meant for, as the API server would take them.

Every node, pod and daemonset of one workload carries its own label, so that several share a cluster undisturbed.
"""

from __future__ import annotations

import random
from typing import Any

from attrs import frozen

RUN = "test.example.com/run"
TEAM = "test.example.com/team"
GPU = "nvidia.com/gpu"
GPU_TAINT = {"key": GPU, "value": "true", "effect": "NoSchedule"}
TEAM_TAINT = {"key": TEAM, "value": "ml", "effect": "NoSchedule"}
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@frozen
class Workload:
    """``pools`` are NodePools, ``pods`` and ``daemon_sets`` manifests without a namespace."""

    name: str
    pools: tuple[dict[str, Any], ...]
    pods: tuple[dict[str, Any], ...]
    daemon_sets: tuple[dict[str, Any], ...]


def workload(seed: int) -> Workload:
    """One workload that its pools can serve: a few groups of equal pods, each with its own constraints."""
    draw = random.Random(seed)
    name = f"run-{seed}"
    tainted, for_team = draw.random() < 0.7, draw.random() < 0.4
    pools = [
        _pool(name, "gpu", ["g5", "g6", "g4dn"], [GPU_TAINT] if tainted else [], {TEAM: "ml"} if for_team else {}),
        _pool(name, "cpu", ["m5", "c5", "r5"], [TEAM_TAINT] if for_team else [], {TEAM: "ml"} if for_team else {}),
    ]
    groups = [_group(draw, name, number, for_team=for_team) for number in range(draw.randint(1, 4))]
    daemon_sets = [_daemon_set(draw, name, number) for number in range(draw.randint(0, 2))]
    pods = [pod for group in groups for pod in group]
    draw.shuffle(pods)
    return Workload(name=name, pools=tuple(pools), pods=tuple(pods), daemon_sets=tuple(daemon_sets))


def _pool(
    run: str, kind: str, families: list[str], taints: list[dict[str, str]], labels: dict[str, str]
) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {
            "name": f"{run}-{kind}",
            **({"annotations": {"nodewright.dev/open-to-all-pods": "true"}} if kind == "gpu" and not taints else {}),
        },
        "spec": {
            "template": {
                "metadata": {"labels": {RUN: run, **labels}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "taints": taints,
                    "requirements": [
                        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": families},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    ],
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "30s",
                "budgets": [{"nodes": "100%"}],
            },
        },
    }


def _group(draw: random.Random, run: str, number: int, *, for_team: bool) -> list[dict[str, Any]]:
    """Equal pods, as the replicas of one deployment are."""
    gpus = draw.choice([0, 1, 1, 1, 2, 4])
    requests = {"cpu": draw.choice(["250m", "1", "2500m", "3"]), "memory": draw.choice(["512Mi", "3Gi", "9Gi"])}
    if gpus:
        requests[GPU] = str(gpus)
    spec: dict[str, Any] = {
        "containers": [
            {"name": "main", "image": "model:1", "resources": {"requests": requests, "limits": _limits(requests)}}
        ],
        "nodeSelector": {RUN: run, **_selector(draw, for_team=for_team)},
        "tolerations": [{"key": GPU, "operator": "Exists"}] if gpus else [],
    }
    if for_team:
        spec["tolerations"].append({"key": TEAM, "operator": "Equal", "value": "ml", "effect": "NoSchedule"})
    terms = _affinity(draw, has_gpus=gpus > 0)
    if terms:
        required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{run}-{number}-{replica}", "labels": {RUN: run, "app": f"{run}-{number}"}},
            "spec": spec,
        }
        for replica in range(draw.randint(1, 8))
    ]


def _limits(requests: dict[str, str]) -> dict[str, str]:
    # Extended resources must be limited to what they request; the others are left open.
    return {GPU: requests[GPU]} if GPU in requests else {}


def _selector(draw: random.Random, *, for_team: bool) -> dict[str, str]:
    chosen: dict[str, str] = {}
    if draw.random() < 0.3:
        chosen["topology.kubernetes.io/zone"] = draw.choice(ZONES)
    if for_team and draw.random() < 0.5:
        chosen[TEAM] = "ml"
    return chosen


def _affinity(draw: random.Random, *, has_gpus: bool) -> list[list[dict[str, Any]]]:
    """ORed terms that at least one type of the pools can meet."""
    family = "karpenter.k8s.aws/instance-family"
    choices: list[list[list[dict[str, Any]]]] = [
        [],
        [],
        [[{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["7"]}]],
        [[{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["49"]}]],
        [
            [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}],
            [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(ZONES)}],
        ],
    ]
    if has_gpus:
        choices += [
            [[{"key": family, "operator": "NotIn", "values": ["g4dn"]}]],
            [[{"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "Exists"}]],
            [[{"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["a10g", "t4"]}]],
        ]
    else:
        choices.append([[{"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "DoesNotExist"}]])
    return draw.choice(choices)


def _daemon_set(draw: random.Random, run: str, number: int) -> dict[str, Any]:
    labels = {"daemon": f"{run}-{number}"}
    tolerations = draw.choice([[{"operator": "Exists"}], [{"key": GPU, "operator": "Exists"}], []])
    requests = {"cpu": draw.choice(["50m", "300m"]), "memory": draw.choice(["64Mi", "512Mi"])}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": f"{run}-agent-{number}"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {RUN: run},
                    "tolerations": tolerations,
                    "containers": [{"name": "agent", "image": "agent:1", "resources": {"requests": requests}}],
                },
            },
        },
    }
