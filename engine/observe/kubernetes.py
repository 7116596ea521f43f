"""Kubernetes JSON as model values. A broken object is named and set apart; it never stops the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from engine.model.node import Node
from engine.model.pod import DaemonSet, Pod
from engine.model.snapshot import ObjectProblem
from engine.observe.json_fields import BrokenObject, shown
from engine.observe.node_decoder import decode_node, unreadable_node
from engine.observe.pod_decoder import decode_daemon_set, decode_pod, unreadable_pod

Problems = tuple[ObjectProblem, ...]


def decode_pods(items: Iterable[Any], now: datetime | None = None) -> tuple[tuple[Pod, ...], Problems]:
    """Pods, and a problem for each one that is broken.

    A broken pod is still among the pods, refused when it waits and holding its node when it runs: dropping it would
    make a node look emptier than it is. ``now`` ends do-not-disrupt annotations that are durations.
    """
    pods: list[Pod] = []
    problems: list[ObjectProblem] = []
    for position, raw in enumerate(items):
        try:
            pods.append(decode_pod(_object(raw), now))
        except BrokenObject as error:
            problems.append(_problem("Pod", raw, position, str(error)))
            if isinstance(raw, dict):
                pods.append(unreadable_pod(raw, position, str(error)))
    return tuple(pods), tuple(problems)


def decode_nodes(items: Iterable[Any]) -> tuple[tuple[Node, ...], Problems]:
    """Nodes, and a problem for each one that is broken; a broken node that has a name is kept, without room."""
    nodes: list[Node] = []
    problems: list[ObjectProblem] = []
    for position, raw in enumerate(items):
        try:
            nodes.append(decode_node(_object(raw)))
        except BrokenObject as error:
            problems.append(_problem("Node", raw, position, str(error)))
            kept = unreadable_node(raw) if isinstance(raw, dict) else None
            if kept is not None:
                nodes.append(kept)
    return tuple(nodes), tuple(problems)


def decode_daemon_sets(items: Iterable[Any]) -> tuple[tuple[DaemonSet, ...], Problems]:
    """Daemonsets, and a problem for each one that is broken and therefore not counted as overhead."""
    daemon_sets: list[DaemonSet] = []
    problems: list[ObjectProblem] = []
    for position, raw in enumerate(items):
        try:
            daemon_sets.append(decode_daemon_set(_object(raw)))
        except BrokenObject as error:
            problems.append(_problem("DaemonSet", raw, position, str(error)))
    return tuple(daemon_sets), tuple(problems)


def _object(raw: Any) -> Mapping[str, Any]:
    if not isinstance(raw, dict):
        raise BrokenObject(f"it is {shown(raw)}, expected an object")
    return raw


def _problem(kind: str, raw: Any, position: int, what: str) -> ObjectProblem:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    named = metadata if isinstance(metadata, dict) else {}
    namespace, name = named.get("namespace"), named.get("name")
    return ObjectProblem(
        kind=kind,
        namespace=namespace if isinstance(namespace, str) else "",
        name=name if isinstance(name, str) and name else f"number {position + 1} of the list",
        what=what,
    )
