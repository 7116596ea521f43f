"""Which images the nodes of each pool should hold before a pod asks for them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from engine.model import labels as keys
from engine.model.canonical import digest
from engine.model.constraint import Toleration
from engine.model.environment import InCluster
from engine.model.in_cluster import PrePull
from engine.model.node import Node
from engine.model.pod import Pod
from engine.model.policy import NodePool, Policy
from engine.scheduling.groups import Demand
from engine.scheduling.requirements import Requirements

NOTHING_STANDS: Mapping[str, tuple[str, ...]] = {}
# Inference images have ten gigabytes and more, and a node's disk must hold those of its pods besides.
MOST_READ_IMAGES = 6
_LONGEST_NAME = 63
_PREFIX = "nodewright-pre-pull-"
_DIGEST_DIGITS = 8


def pre_pulls(
    asked: InCluster,
    policy: Policy,
    pods: Iterable[Pod],
    nodes: Iterable[Node],
    standing: Mapping[str, tuple[str, ...]] = NOTHING_STANDS,
) -> tuple[PrePull, ...]:
    """A DaemonSet for each pool, in name order, that has images to keep; the same whatever order pods come in.

    Images that a pool names in its annotation come without a bound. With `pre_pull` on, those of workload pods that run
    on the pool, or wait and could, are added: the most used MOST_READ_IMAGES. `standing` are those that pods named
    before, by pool.
    """
    used = _used_images(policy, pods, nodes) if asked.pre_pull else {}
    made = []
    for pool in sorted(policy.node_pools, key=lambda each: each.name):
        named = frozenset(pool.pre_pull)
        counts = used.get(pool.name, Counter())
        read = _chosen(counts, frozenset(standing.get(pool.name, ()))) - named if asked.pre_pull else frozenset()
        images = tuple(sorted(named | read))
        if images:
            name = daemon_set_name(pool.name)
            made.append(PrePull(pool.name, name, images, _tolerations(pool), read_from_pods=tuple(sorted(read))))
    return tuple(made)


def daemon_set_name(pool: str) -> str:
    """The pool's name in it as far as it fits: a changed pool must keep its DaemonSet, and no two may share one."""
    if len(_PREFIX + pool) <= _LONGEST_NAME and "." not in pool:
        return _PREFIX + pool
    start = re.sub(r"[^a-z0-9-]", "-", pool)[: _LONGEST_NAME - len(_PREFIX) - _DIGEST_DIGITS - 1]
    return f"{_PREFIX}{start.rstrip('-')}-{digest(pool)[:_DIGEST_DIGITS]}"


def _chosen(counts: Counter[str], standing: frozenset[str]) -> frozenset[str]:
    """The most used, where one that stands already yields only to one that is used more than twice as much.

    So a pod that comes or goes changes nothing, and a workload that is scaled to nothing for the night keeps its image;
    but not once another version of the same image is in use, lest old versions fill the disk.
    """
    in_use = {_repository(image) for image in counts}
    kept = {image for image in standing if image in counts or _repository(image) not in in_use}
    weights = {image: counts[image] * (2 if image in kept else 1) for image in {*counts, *kept}}
    ranked = sorted(weights, key=lambda image: (-weights[image], image not in kept, image))
    return frozenset(ranked[:MOST_READ_IMAGES])


def _repository(image: str) -> str:
    """The image without tag and digest; a port's colon is followed by a slash."""
    return re.sub(r":[^/:]+$", "", image.partition("@")[0])


def _used_images(policy: Policy, pods: Iterable[Pod], nodes: Iterable[Node]) -> Mapping[str, Counter[str]]:
    """How many pods use each image, by pool. Daemons are on each node anyway, and ours would keep what they pull."""
    pool_of = {node.name: node.labels.get(keys.NODE_POOL, "") for node in nodes}
    offered = {pool.name: (_labels_of(pool), pool) for pool in policy.node_pools}
    used: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.is_daemon or pod.is_finished or pod.deleting:
            continue
        if pod.node_name is not None:
            pools: Sequence[str] = [pool_of.get(pod.node_name, "")]
        else:
            pools = _pools_for(pod, offered) if pod.is_waiting else ()
        for pool in pools:
            used.setdefault(pool, Counter()).update(set(pod.images))
    return used


def _pools_for(pod: Pod, offered: Mapping[str, tuple[Requirements, NodePool]]) -> list[str]:
    """The pools whose nodes the pod could go to as far as labels and taints say.

    One without accelerators counts only where a pool is open to it: GPU nodes are not bought for such pods.
    """
    demand = Demand.of(pod.placing)
    has_accelerator = bool(pod.placing.requests.accelerators())
    return [
        name
        for name, (labels, pool) in offered.items()
        if (has_accelerator or pool.open_to_all_pods)
        and demand.barring_taint(pool.taints) is None
        and any(labels.conflict(Requirements.of(term), keys.WELL_KNOWN) is None for term in demand.terms)
    ]


def _labels_of(pool: NodePool) -> Requirements:
    given = Requirements.of_labels({**pool.labels, keys.NODE_POOL: pool.name})
    return Requirements.of(pool.requirements).intersection(given)


def _tolerations(pool: NodePool) -> tuple[Toleration, ...]:
    """Startup taints and the unregistered one too: pulling begins while the node's drivers still do."""
    tolerated = {*pool.taints, *pool.startup_taints}
    return (
        *(
            Toleration(key=taint.key, value=taint.value, exists=not taint.value, effect=taint.effect)
            for taint in sorted(tolerated, key=str)
        ),
        Toleration(key=keys.UNREGISTERED_TAINT, exists=True),
    )
