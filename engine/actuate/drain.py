"""Taking a node out of service: cordon and taint it, and ask its pods to leave through the eviction API."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from urllib.parse import quote

from engine.actuate.api_server import MERGE_PATCH, NOT_FOUND, OK, ApiConnection, message_of, refused
from engine.actuate.failure import ActuationFailed
from engine.model import labels as keys
from engine.model.constraint import TaintEffect
from engine.model.eviction import Eviction, EvictionStatus
from engine.model.pod import PodKey

_ATTEMPTS = 3
_CONFLICT = 409
_TAINT = {"key": keys.DISRUPTED_TAINT, "effect": TaintEffect.NO_SCHEDULE.value}


class Drainer(Protocol):
    """What a pass does to a cluster. Each call may be repeated: what is done already stays done.

    ``mark`` and ``unmark`` say whether the node still exists. All raise a Fault when the cluster does not answer.
    """

    def mark(self, node_name: str) -> bool: ...

    def unmark(self, node_name: str) -> bool: ...

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]: ...


class KubernetesDrainer:
    """On a real API server. Raises ActuationFailed when it refuses, the connection's own Fault when it is silent."""

    def __init__(self, api_server: ApiConnection) -> None:
        self._api_server = api_server

    def mark(self, node_name: str) -> bool:
        """Cordon the node and taint it ``karpenter.sh/disrupted:NoSchedule``, both in one patch.

        False when there is no such node.
        """
        return self._changed(node_name, lambda taints: [*taints, _TAINT], unschedulable=True)

    def unmark(self, node_name: str) -> bool:
        """Undo ``mark``: the node takes pods again. False when there is no such node."""
        return self._changed(node_name, lambda taints: taints, unschedulable=None)

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]:
        """Ask each pod to leave; one that is refused does not stop the next."""
        return tuple(self._evicted(pod) for pod in pods)

    def _changed(
        self, node_name: str, retainted: Callable[[list[Any]], list[Any]], *, unschedulable: bool | None
    ) -> bool:
        """Replace the node's taints, unless it changed since it was read: then look again."""
        path = f"/api/v1/nodes/{quote(node_name, safe='')}"
        for attempt in range(1, _ATTEMPTS + 1):
            status, body = self._api_server.ask("GET", path)
            if status == OK:
                change = _change(_node(body, node_name), retainted, unschedulable=unschedulable)
                if change is None:
                    return True
                # A strategic merge would merge the taints by key; the version makes it safe to replace the list.
                status, body = self._api_server.ask("PATCH", path, body=change, content_type=MERGE_PATCH)
            if status == NOT_FOUND:
                return False
            if status == OK:
                return True
            if status != _CONFLICT or attempt == _ATTEMPTS:
                raise refused(f"the change of node {node_name}", status, body)
        return False

    def _evicted(self, pod: PodKey) -> Eviction:
        namespace, name = quote(pod.namespace, safe=""), quote(pod.name, safe="")
        request = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        status, body = self._api_server.ask("POST", path, body=request)
        if 200 <= status <= 299:
            return Eviction(pod, EvictionStatus.EVICTED)
        if status in (401, 403):
            raise refused(f"the eviction of pod {pod}", status, body)
        message = message_of(body)
        return Eviction(pod, _eviction_status(status, message), message)


def _node(body: bytes, node_name: str) -> Any:
    try:
        node = json.loads(body)
        return {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": node.get("spec") or {}}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ActuationFailed(
            f"the API server's answer about node {node_name} is no node: {message_of(body)}",
            "check that the kubeconfig's server is a Kubernetes API server and not a proxy's page",
        ) from None


def _change(
    node: Any, retainted: Callable[[list[Any]], list[Any]], *, unschedulable: bool | None
) -> dict[str, Any] | None:
    """The patch that is wanted, None where the node is so already."""
    spec = node["spec"]
    taints = spec.get("taints") or []
    wanted = retainted([taint for taint in taints if taint.get("key") != keys.DISRUPTED_TAINT])
    if [*map(_essence, wanted)] == [*map(_essence, taints)] and bool(spec.get("unschedulable")) is bool(unschedulable):
        return None
    return {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "spec": {"unschedulable": unschedulable, "taints": wanted},
    }


def _essence(taint: Any) -> tuple[object, ...]:
    """A taint without the time when it was added."""
    return taint.get("key"), taint.get("value") or "", taint.get("effect")


def _eviction_status(status: int, message: str) -> EvictionStatus:
    match status:
        case 404:
            return EvictionStatus.GONE
        case 429:
            return EvictionStatus.REFUSED_BY_BUDGET
        case 500 if "more than one PodDisruptionBudget" in message:
            return EvictionStatus.SEVERAL_BUDGETS
    return EvictionStatus.FAILED
