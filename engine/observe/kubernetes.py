"""Kubernetes JSON as model values. A broken object is named and set apart; it never stops the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from engine.model.node import Node
from engine.model.pod import DaemonSet, Pod
from engine.model.snapshot import ObjectProblem
from engine.model.workload import ObjectKey, PodDisruptionBudget
from engine.observe.json_fields import BrokenObject, Json, shown
from engine.observe.node_decoder import decode_node, unread_request, unreadable_node
from engine.observe.pod_decoder import decode_daemon_set, decode_pod, hold_ends_at, unread_warm_up, unreadable_pod
from engine.observe.workload_decoder import unreadable_disruption_budget

Problems = tuple[ObjectProblem, ...]
Key = tuple[str, str]


@frozen
class Seen:
    """One object as it was understood. ``key`` is its namespace and name.

    ``value`` None: nothing can be said of it, and ``problem`` says why. ``held_until`` ends a pod's do-not-disrupt.
    """

    key: Key
    value: Any | None
    problem: ObjectProblem | None = None
    held_until: datetime | None = None


def seen(
    kind: str,
    decode: Callable[[Json], Any],
    raw: Any,
    position: int,
    unreadable: Callable[[Json, int, str], Any] = lambda raw, position, why: None,
) -> Seen:
    """An object of a kind. ``unreadable`` says what can be said of a broken one; ``position`` names a nameless one."""
    key = _key(raw, position)
    if not isinstance(raw, dict):
        return Seen(key, None, _problem(kind, key, f"it is {shown(raw)}, expected an object"))
    try:
        return Seen(key, decode(raw))
    except BrokenObject as error:
        return Seen(key, unreadable(raw, position, str(error)), _problem(kind, key, str(error)))


def seen_pod(raw: Any, position: int = 0, now: datetime | None = None) -> Seen:
    """A pod. A broken one is still a pod, refused when it waits and holding its node when it runs.

    Dropping it would make a node look emptier than it is. One whose warm-up is no duration is as any other, and told.
    """
    found = seen("Pod", lambda pod: decode_pod(pod, now), raw, position, unreadable_pod)
    if found.problem:
        return found
    ignored = unread_warm_up(raw)
    return Seen(found.key, found.value, _problem("Pod", found.key, ignored) if ignored else None, hold_ends_at(raw))


def seen_node(raw: Any, position: int = 0) -> Seen:
    """A node; a broken one that has a name is kept, without room. One that asks for another in words that nobody
    understands is kept as it is, and that is told."""
    found = seen("Node", decode_node, raw, position, lambda node, _, why: unreadable_node(node))
    ignored = "" if found.problem else unread_request(raw)
    return Seen(found.key, found.value, _problem("Node", found.key, ignored)) if ignored else found


def seen_daemon_set(raw: Any, position: int = 0) -> Seen:
    """A daemonset; a broken one is not counted as overhead."""
    return seen("DaemonSet", decode_daemon_set, raw, position)


def seen_disruption_budget(decode: Callable[[Json], PodDisruptionBudget], raw: Any, position: int = 0) -> Seen:
    """A budget; a broken one protects its whole namespace."""

    def unreadable(budget: Json, position: int, why: str) -> PodDisruptionBudget:
        return unreadable_disruption_budget(ObjectKey(*_key(budget, position)))

    return seen("PodDisruptionBudget", decode, raw, position, unreadable)


def decode_pods(items: Iterable[Any], now: datetime | None = None) -> tuple[tuple[Pod, ...], Problems]:
    """Pods, and a problem for each one that is broken. ``now`` ends do-not-disrupt annotations that are durations."""
    return _apart([seen_pod(raw, position, now) for position, raw in enumerate(items)])


def decode_nodes(items: Iterable[Any]) -> tuple[tuple[Node, ...], Problems]:
    """Nodes, and a problem for each one that is broken."""
    return _apart([seen_node(raw, position) for position, raw in enumerate(items)])


def decode_daemon_sets(items: Iterable[Any]) -> tuple[tuple[DaemonSet, ...], Problems]:
    """Daemonsets, and a problem for each one that is broken."""
    return _apart([seen_daemon_set(raw, position) for position, raw in enumerate(items)])


def _apart(all_seen: list[Seen]) -> tuple[tuple[Any, ...], Problems]:
    values = tuple(each.value for each in all_seen if each.value is not None)
    return values, tuple(each.problem for each in all_seen if each.problem is not None)


def _key(raw: Any, position: int) -> Key:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    named: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    namespace, name = named.get("namespace"), named.get("name")
    return (
        namespace if isinstance(namespace, str) else "",
        name if isinstance(name, str) and name else f"number {position + 1} of the list",
    )


def _problem(kind: str, key: Key, what: str) -> ObjectProblem:
    namespace, name = key
    return ObjectProblem(kind=kind, namespace=namespace, name=name, what=what)
