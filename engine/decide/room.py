"""The room that is left on what is there, for the pods that wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from engine.decide.bring_up import BringUp
from engine.decide.expected_labels import ComingLabels
from engine.decide.fleet import Fleet, is_foreign, is_passing
from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.constraint import Taint
from engine.model.money import FREE
from engine.model.node import Node
from engine.model.pod import DaemonSet, Pod
from engine.model.quantity import Resources
from engine.model.snapshot import Snapshot
from engine.scheduling.daemons import Daemons
from engine.scheduling.problem import ExistingNode
from engine.scheduling.requirements import canonical_labels


def existing_nodes(
    fleet: Fleet,
    brought: Mapping[str, BringUp],
    lost: Iterable[str],
    snapshot: Snapshot,
    catalog: Catalog,
    coming: ComingLabels,
) -> tuple[ExistingNode, ...]:
    """The nodes and the claims in flight that a pending pod may be put on.

    Nodes of ours that are up or still coming up; nodes that are not ours and ready. Not those that are cordoned,
    marked or being deleted, nor those of claims that are lost, that failed, or that are late without a node. The
    snapshot's held nodes are open already, and what cordons left behind on open ones is off.
    """
    gone = frozenset(lost)
    accelerated = {kind.name for kind in catalog.instance_types if kind.is_accelerated}
    daemons = _DaemonsToCome(snapshot.daemon_sets)
    found = [_on_claim(each, coming) for each in brought.values() if each.sighting.claim.name not in gone]
    found += [_on_foreign(node, fleet.pods_by_node.get(node.name, ())) for node in fleet.foreign_nodes]
    return tuple(_existing(ground, daemons, accelerated) for ground in found if ground is not None)


@frozen
class _Ground:
    """What a pod would stand on: a node, or a claim without one."""

    node: Node | None
    claim: Claim | None
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Resources
    pods: Sequence[Pod]


def _on_claim(brought: BringUp, coming: ComingLabels) -> _Ground | None:
    sighting = brought.sighting
    claim, node = sighting.claim, sighting.node
    if not brought.is_offered:
        return None
    if node is None:
        return _Ground(None, claim, {**coming.of(brought), **claim.labels}, claim.taints, claim.allocatable, ())
    if not _is_open(node):
        return None
    # A kubelet knows nothing of its instance type's labels. A node that lacks some is labelled, not doubled.
    labels = {**coming.of(brought), **claim.labels, **node.labels}
    taints = node.taints
    if brought.milestones.initialized_at is None and brought.counts_as_promised:
        lasting = (each for each in node.taints if not (is_passing(each, claim) or is_foreign(each, claim)))
        taints = tuple(dict.fromkeys((*claim.taints, *lasting)))
    elif brought.is_settling:
        taints = tuple(each for each in node.taints if not is_passing(each, claim))
    return _Ground(node, claim, labels, taints, brought.allocatable(), sighting.pods)


def _on_foreign(node: Node, pods: Sequence[Pod]) -> _Ground | None:
    if not (node.ready and _is_open(node)):
        return None
    return _Ground(node, None, node.labels, node.taints, node.allocatable, pods)


def _is_open(node: Node) -> bool:
    return not (node.unschedulable or node.deleting or node.is_marked)


def _existing(ground: _Ground, daemons: _DaemonsToCome, accelerated: set[str]) -> ExistingNode:
    kind = ground.claim.inputs.instance_type if ground.claim else ground.labels.get(keys.INSTANCE_TYPE, "")
    room = ground.allocatable - daemons.requests(ground)
    return ExistingNode(
        node=ground.node.name if ground.node else None,
        claim=ground.claim.name if ground.claim else None,
        labels=ground.labels,
        taints=ground.taints,
        room=room.less_each(pod.placing.requests for pod in ground.pods),
        is_accelerated=kind in accelerated or bool(ground.allocatable.accelerators()),
        usd_per_hour=ground.claim.usd_per_hour if ground.claim else FREE,
    )


class _DaemonsToCome:
    """The daemonsets that will put a pod on a node and have none there yet; many nodes ask alike."""

    def __init__(self, daemon_sets: tuple[DaemonSet, ...]) -> None:
        self._daemon_sets = daemon_sets
        self._known: dict[tuple[frozenset[str], tuple[Taint, ...]], Daemons] = {}

    def requests(self, ground: _Ground) -> Resources:
        there = frozenset(
            pod.owner.name for pod in ground.pods if pod.owner is not None and pod.owner.kind == "DaemonSet"
        )
        # The daemonset controller adds tolerations of the node's own troubles to each pod that it makes.
        standing = tuple(taint for taint in ground.taints if not taint.key.startswith("node.kubernetes.io/"))
        asked = (there, standing)
        if asked not in self._known:
            missing = (daemon for daemon in self._daemon_sets if daemon.name not in there)
            self._known[asked] = Daemons(missing, standing)
        return self._known[asked].overhead(canonical_labels(ground.labels))
