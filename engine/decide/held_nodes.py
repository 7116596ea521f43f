"""Nodes that we hold closed ourselves until they are whole: to a decision they are open."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.node import Node
from engine.model.snapshot import Snapshot

# What Kubernetes puts on each node that is cordoned.
_CORDON_TAINT = "node.kubernetes.io/unschedulable"


def as_if_open(snapshot: Snapshot) -> Snapshot:
    """The snapshot with its held nodes uncordoned: what is planned there counts, and nothing is bought instead.

    A node that is marked for removal stays closed, held or not. Where none is held, the snapshot itself.
    """
    if not any(_is_held(node) for node in snapshot.nodes):
        return snapshot
    return evolve(snapshot, nodes=tuple(_opened(node) if _is_held(node) else node for node in snapshot.nodes))


def _is_held(node: Node) -> bool:
    return keys.HELD in node.labels and not node.is_marked


def _opened(node: Node) -> Node:
    taints = tuple(taint for taint in node.taints if taint.key != _CORDON_TAINT)
    return evolve(node, unschedulable=False, taints=taints)
