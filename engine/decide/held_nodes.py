"""Nodes that we hold closed ourselves until they are whole: to a decision they are open."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.node import Node
from engine.model.snapshot import Snapshot


def as_if_open(snapshot: Snapshot) -> Snapshot:
    """The snapshot with its held nodes uncordoned: what is planned there counts, and nothing is bought instead.

    A node that is marked for removal stays closed, held or not. Where there is nothing to open, the snapshot itself.
    """
    if not any(_is_as_good_as_open(node) for node in snapshot.nodes):
        return snapshot
    nodes = tuple(_opened(node) if _is_as_good_as_open(node) else node for node in snapshot.nodes)
    return evolve(snapshot, nodes=nodes)


def _is_as_good_as_open(node: Node) -> bool:
    if keys.HELD in node.labels:
        return not node.is_marked
    return not node.unschedulable and any(taint.key == keys.UNSCHEDULABLE_TAINT for taint in node.taints)


def _opened(node: Node) -> Node:
    taints = tuple(taint for taint in node.taints if taint.key != keys.UNSCHEDULABLE_TAINT)
    return evolve(node, unschedulable=False, taints=taints)
