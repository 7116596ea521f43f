"""Taking a node out of service: cordon and taint it, and have its pods leave.

They are asked through the eviction API. Only at the end of a terminationGracePeriod are they deleted instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote

from attrs import frozen

from engine.actuate.api_server import MERGE_PATCH, NOT_FOUND, OK, ApiConnection, message_of, refused
from engine.actuate.failure import ActuationFailed
from engine.model import labels as keys
from engine.model.constraint import TaintEffect
from engine.model.drain import Mark
from engine.model.eviction import Eviction, EvictionStatus
from engine.model.pod import PodKey

_ATTEMPTS = 3
_CONFLICT = 409
_TAINT = {"key": keys.DISRUPTED_TAINT, "effect": TaintEffect.NO_SCHEDULE.value}
_ADDED = "timeAdded"
# The label's value tells it from one that was there for another reason, and stays.
_OUR_EXCLUSION = "nodewright"


class Drainer(Protocol):
    """What a pass does to a cluster. Each call may be repeated: what is done already stays done.

    ``mark`` and ``unmark`` say whether the node still exists. All raise a Fault when the cluster does not answer.
    """

    def mark(self, node_name: str, mark: Mark) -> bool: ...

    def unmark(self, node_name: str) -> bool: ...

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]: ...

    def delete(self, pods: Sequence[tuple[PodKey, int]]) -> tuple[Eviction, ...]:
        """Delete pods, each with so many seconds to end, whatever budget would keep it."""
        ...


class KubernetesDrainer:
    """On a real API server. Raises ActuationFailed when it refuses, the connection's own Fault when it is silent."""

    def __init__(self, api_server: ApiConnection) -> None:
        self._api_server = api_server

    def mark(self, node_name: str, mark: Mark) -> bool:
        """Cordon the node, taint it ``karpenter.sh/disrupted:NoSchedule``, and take it from external load balancers,
        all in one patch. The taint bears the time, an annotation the reason; a node that is marked keeps its own.

        False when there is no such node.
        """
        return self._changed(node_name, lambda node: _marked(node, mark))

    def unmark(self, node_name: str) -> bool:
        """Undo ``mark``: the node takes pods again. False when there is no such node."""
        return self._changed(node_name, _unmarked)

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]:
        """Ask each pod to leave; one that is refused does not stop the next."""
        return tuple(self._evicted(pod) for pod in pods)

    def delete(self, pods: Sequence[tuple[PodKey, int]]) -> tuple[Eviction, ...]:
        """Delete each pod with so many seconds to end; one that is going already is given no more than those."""
        return tuple(self._deleted(pod, seconds) for pod, seconds in pods)

    def _changed(self, node_name: str, change_of: Callable[[_Node], dict[str, Any] | None]) -> bool:
        """Change the node, unless it changed since it was read: then look again."""
        path = f"/api/v1/nodes/{quote(node_name, safe='')}"
        for attempt in range(1, _ATTEMPTS + 1):
            status, body = self._api_server.ask("GET", path)
            if status == OK:
                node = _node(body, node_name)
                change = change_of(node)
                if change is None:
                    return True
                # A strategic merge would merge the taints by key; the version makes it safe to replace the list.
                change = {**change, "metadata": {**change["metadata"], "resourceVersion": node.version}}
                status, body = self._api_server.ask("PATCH", path, body=change, content_type=MERGE_PATCH)
            if status == NOT_FOUND:
                return False
            if status == OK:
                return True
            if status != _CONFLICT or attempt == _ATTEMPTS:
                raise refused(f"the change of node {node_name}", status, body)
        return False

    def _evicted(self, pod: PodKey) -> Eviction:
        request = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
        }
        return _answer(pod, "eviction", *self._api_server.ask("POST", f"{_path(pod)}/eviction", body=request))

    def _deleted(self, pod: PodKey, seconds: int) -> Eviction:
        request = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": seconds}
        return _answer(pod, "deletion", *self._api_server.ask("DELETE", _path(pod), body=request))


@frozen
class _Node:
    """What is read of a node before it is changed."""

    version: str
    taints: list[Any]
    is_cordoned: bool
    labels: dict[str, Any]
    annotations: dict[str, Any]


def _path(pod: PodKey) -> str:
    return f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"


def _answer(pod: PodKey, what: str, status: int, body: bytes) -> Eviction:
    if 200 <= status <= 299:
        return Eviction(pod, EvictionStatus.EVICTED)
    if status in (401, 403):
        raise refused(f"the {what} of pod {pod}", status, body)
    message = message_of(body)
    return Eviction(pod, _eviction_status(status, message), message)


def _node(body: bytes, node_name: str) -> _Node:
    try:
        node = json.loads(body)
        metadata, spec = node["metadata"], node.get("spec") or {}
        return _Node(
            version=metadata["resourceVersion"],
            taints=[dict(taint) for taint in spec.get("taints") or []],
            is_cordoned=bool(spec.get("unschedulable")),
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ActuationFailed(
            f"the API server's answer about node {node_name} is no node: {message_of(body)}",
            "check that the kubeconfig's server is a Kubernetes API server and not a proxy's page",
        ) from None


def _marked(node: _Node, mark: Mark) -> dict[str, Any] | None:
    """The patch that marks the node, None where it is marked so already."""
    ours = [taint for taint in node.taints if _is_mark(taint)]
    others = [taint for taint in node.taints if taint.get("key") != keys.DISRUPTED_TAINT]
    is_whole = len(ours) == 1 and bool(ours[0].get(_ADDED)) and len(others) + 1 == len(node.taints)
    is_excluded = keys.EXCLUDED_FROM_LOAD_BALANCERS in node.labels
    if is_whole and node.is_cordoned and is_excluded:
        return None
    added_at = next((taint[_ADDED] for taint in ours if taint.get(_ADDED)), _timestamp(mark.at))
    metadata: dict[str, Any] = {}
    if not is_excluded:
        metadata["labels"] = {keys.EXCLUDED_FROM_LOAD_BALANCERS: _OUR_EXCLUSION}
    # A reason that outlived its mark says nothing of this one.
    if not ours or keys.MARKED_FOR not in node.annotations:
        metadata["annotations"] = {keys.MARKED_FOR: mark.reason.value}
    return {"metadata": metadata, "spec": {"unschedulable": True, "taints": [*others, {**_TAINT, _ADDED: added_at}]}}


def _unmarked(node: _Node) -> dict[str, Any] | None:
    """The patch that takes a mark off, None where there is none."""
    others = [taint for taint in node.taints if taint.get("key") != keys.DISRUPTED_TAINT]
    is_excluded = node.labels.get(keys.EXCLUDED_FROM_LOAD_BALANCERS) == _OUR_EXCLUSION
    if len(others) == len(node.taints) and not node.is_cordoned and not is_excluded:
        return None
    metadata: dict[str, Any] = {}
    if is_excluded:
        metadata["labels"] = {keys.EXCLUDED_FROM_LOAD_BALANCERS: None}
    if keys.MARKED_FOR in node.annotations:
        metadata["annotations"] = {keys.MARKED_FOR: None}
    return {"metadata": metadata, "spec": {"unschedulable": None, "taints": others}}


def _is_mark(taint: Any) -> bool:
    """Whether a taint is the mark, whenever it was added."""
    essence = taint.get("key"), taint.get("value") or "", taint.get("effect")
    return essence == (_TAINT["key"], "", _TAINT["effect"])


def _timestamp(moment: datetime) -> str:
    """As Kubernetes writes times, whole seconds in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _eviction_status(status: int, message: str) -> EvictionStatus:
    match status:
        case 404:
            return EvictionStatus.GONE
        case 429:
            return EvictionStatus.REFUSED_BY_BUDGET
        case 500 if "more than one PodDisruptionBudget" in message:
            return EvictionStatus.SEVERAL_BUDGETS
    return EvictionStatus.FAILED
