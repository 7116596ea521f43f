"""Workloads drawn from a seed: pods, daemonsets and the pools they are meant for, as the API server would take them.

Every node, pod and daemonset of one workload carries its own label, so that several share a cluster undisturbed.
"""

from __future__ import annotations

import random
from typing import Any

from attrs import frozen

from engine.model import labels as keys
from tests.cluster.pod_groups import (
    CAPACITY_TYPES,
    GPU,
    RACKS,
    RUN,
    TEAM,
    ZONES,
    Ground,
    Group,
    group,
    rack_key,
    waiting_class,
)

GPU_TAINT = {"key": GPU, "value": "true", "effect": "NoSchedule"}
TEAM_TAINT = {"key": TEAM, "value": "ml", "effect": "NoSchedule"}


@frozen
class Workload:
    """``pools`` are NodePools; ``pods`` have namespaces of ``namespaces``, and the daemonsets the first of them.

    ``first`` are objects that pods need before them: a storage class, volumes, claims.
    """

    name: str
    pools: tuple[dict[str, Any], ...]
    pods: tuple[dict[str, Any], ...]
    daemon_sets: tuple[dict[str, Any], ...]
    namespaces: tuple[dict[str, Any], ...]
    first: tuple[dict[str, Any], ...] = ()


def workload(seed: int) -> Workload:
    """One workload that its pools can serve: a few groups of equal pods, each with its own constraints."""
    draw = random.Random(seed)
    name = f"run-{seed}"
    tainted, for_team, has_spot = draw.random() < 0.7, draw.random() < 0.4, draw.random() < 0.5
    labels = {TEAM: "ml"} if for_team else {}
    types = CAPACITY_TYPES if has_spot else (keys.ON_DEMAND,)
    # A pool gives a label of ours one value, so there is a pool for each rack.
    pools = [
        pool
        for rack in RACKS
        for pool in (
            _pool(name, "gpu", rack, ["g5", "g6", "g4dn"], types, [GPU_TAINT] if tainted else [], labels),
            _pool(name, "cpu", rack, ["m5", "c5", "r5"], types, [TEAM_TAINT] if for_team else [], labels),
        )
    ]
    ground = Ground(name, (f"promise-{seed}", f"promise-{seed}-b"), for_team=for_team, has_spot=has_spot)
    groups: list[Group] = []
    for number in range(draw.randint(1, 4)):
        groups.append(group(draw, ground, number, tuple(groups)))
    daemon_sets = [_daemon_set(draw, name, ground.namespaces[0], number) for number in range(draw.randint(0, 2))]
    pods = [pod for each in groups for pod in each.pods]
    draw.shuffle(pods)
    return Workload(
        name=name,
        pools=tuple(pools),
        pods=tuple(pods),
        daemon_sets=tuple(daemon_sets),
        namespaces=tuple(_namespace(each, name) for each in ground.namespaces),
        first=(
            waiting_class(name),
            *(volume for each in groups for volume in each.volumes),
            *(claim for each in groups for claim in each.claims),
        ),
    )


def _pool(
    run: str,
    kind: str,
    rack: str,
    families: list[str],
    capacity_types: tuple[str, ...],
    taints: list[dict[str, str]],
    labels: dict[str, str],
) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {
            "name": f"{run}-{kind}-{rack}",
            **({"annotations": {"nodewright.dev/open-to-all-pods": "true"}} if kind == "gpu" and not taints else {}),
        },
        "spec": {
            "template": {
                "metadata": {"labels": {RUN: run, rack_key(run): rack, **labels}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "taints": taints,
                    "requirements": [
                        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": families},
                        {"key": keys.CAPACITY_TYPE, "operator": "In", "values": list(capacity_types)},
                        {"key": keys.ARCH, "operator": "In", "values": ["amd64"]},
                        {"key": keys.ZONE, "operator": "In", "values": list(ZONES)},
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


def _namespace(name: str, run: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {RUN: run}}}


def _daemon_set(draw: random.Random, run: str, namespace: str, number: int) -> dict[str, Any]:
    labels = {"daemon": f"{run}-{number}"}
    tolerations = draw.choice([[{"operator": "Exists"}], [{"key": GPU, "operator": "Exists"}], []])
    requests = {"cpu": draw.choice(["50m", "300m"]), "memory": draw.choice(["64Mi", "512Mi"])}
    agent: dict[str, Any] = {"name": "agent", "image": "agent:1", "resources": {"requests": requests}}
    if draw.random() < 0.2:
        agent["ports"] = [{"containerPort": 9100, "hostPort": 9100 + number}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": f"{run}-agent-{number}", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeSelector": {RUN: run}, "tolerations": tolerations, "containers": [agent]},
            },
        },
    }
