"""``nodewright replace``: asking for another node in one's stead, by an annotation that each pass reads.

The annotation is all there is of a request. ``kubectl annotate node NODE nodewright.dev/replace=now`` makes the same.
"""

from __future__ import annotations

from datetime import datetime

from attrs import evolve, frozen

from engine.decide.fleet import Sighting
from engine.model import labels as keys
from engine.model.fault import Fault
from engine.model.node import Node
from engine.reconcile import passes
from engine.reconcile.explaining import Asked
from engine.reconcile.explaining_nodes import explain_node, machine_named
from engine.reconcile.ports import Ports
from engine.report.explain_report import NodeExplanation


@frozen
class Request:
    """What came of asking. ``explained`` is what a pass would do about the node now, None where it was taken back;
    ``was_asked``: it was asked for already, and that stands. ``asked_at`` is when."""

    node: str
    claim: str
    explained: NodeExplanation | None
    was_asked: bool = False
    asked_at: datetime | None = None

    @property
    def outcome(self) -> str:
        """The same in sentences."""
        return self.explained.outcome if self.explained is not None else ""


def ask(ports: Ports, name: str) -> Request:
    """Ask for another node in place of ``name``, which is a node's or a claim's. Changes nothing else.

    Raises Fault where there is no such node of ours, or it is on its way out already.
    """
    seen = _seen(ports)
    sighting = machine_named(seen, name)
    _refuse_if_left_alone(seen, sighting, name)
    node = _staying(seen, sighting, name)
    if node.replace_asked:
        standing = explain_node(seen, node.name)
        return Request(node.name, sighting.claim.name, standing, was_asked=True, asked_at=node.replace_asked_at)
    at = seen.snapshot.taken_at
    asking = evolve(node, replace_asked=True, replace_asked_at=at)
    nodes = tuple(asking if each.name == node.name else each for each in seen.snapshot.nodes)
    then = Asked(seen.environment, seen.policy, seen.catalog, evolve(seen.snapshot, nodes=nodes))
    explained = explain_node(then, node.name)
    _annotate(ports, node, f"{at:%Y-%m-%dT%H:%M:%SZ}")
    return Request(node.name, sighting.claim.name, explained, asked_at=at)


def withdraw(ports: Ports, name: str) -> Request:
    """Ask no more for another node in place of ``name``. Raises Fault where it is no node of ours, or is marked."""
    seen = _seen(ports)
    sighting = machine_named(seen, name)
    node = _staying(seen, sighting, name)
    # One that nobody could read is taken away too.
    _annotate(ports, node, None)
    return Request(node.name, sighting.claim.name, None, was_asked=node.replace_asked)


def _seen(ports: Ports) -> Asked:
    return Asked(ports.environment, ports.policy, ports.catalog, passes.observe(ports)[0])


def _staying(seen: Asked, sighting: Sighting, name: str) -> Node:
    node = sighting.node
    if node is None:
        raise Fault(f"{name} has no node yet, so there is nothing to replace", "ask again once it is up")
    if node.is_marked or node.deleting:
        since = f" since {node.marked_at:%Y-%m-%d %H:%M:%SZ}" if node.marked_at is not None else ""
        why = f", {node.marked_for.value}" if node.marked_for is not None else ""
        raise Fault(
            f"node {node.name} is on its way out already{since}{why}",
            f"nodewright explain node {node.name} {seen.environment.name} says what it waits for",
        )
    return node


def _refuse_if_left_alone(seen: Asked, sighting: Sighting, name: str) -> None:
    pool = sighting.claim.node_pool
    if sighting.is_karpenters:
        raise Fault(
            f"{name} belongs to a Karpenter that runs in this cluster, so nothing here replaces it",
            "kubectl delete nodeclaim asks Karpenter for another",
        )
    if seen.policy.node_pool(pool) is None:
        raise Fault(
            f"{name} is of pool {pool}, which no policy file of {seen.environment.name} has, so it is left alone",
            f"write the pool {pool} again, or take the machine down by hand",
        )


def _annotate(ports: Ports, node: Node, value: str | None) -> None:
    if not ports.registrar.annotate(node.name, {keys.REPLACE: value}):
        raise Fault(f"node {node.name} is gone since it was looked at", "nothing more is to be done about it")
