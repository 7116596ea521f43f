"""Taking a node out of service: cordon and taint it, and ask its pods to leave through the eviction API."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from engine.actuate.failure import ActuationFailed
from engine.model import labels as keys
from engine.model.constraint import TaintEffect
from engine.model.eviction import Eviction, EvictionStatus
from engine.model.pod import PodKey

_TIMEOUT_SECONDS = (3.0, 30.0)
_ATTEMPTS = 3
_TAINT = {"key": keys.DISRUPTED_TAINT, "effect": TaintEffect.NO_SCHEDULE.value}


class Drainer(Protocol):
    """What a pass does to a cluster. Each call may be repeated: what is done already stays done.

    ``mark`` and ``unmark`` say whether the node still exists. All raise a Fault when the cluster does not answer.
    """

    def mark(self, node_name: str) -> bool: ...

    def unmark(self, node_name: str) -> bool: ...

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]: ...


class KubernetesDrainer:
    """On a real API server; ``core_api`` gives the official client's CoreV1Api, made when it is first needed."""

    def __init__(self, core_api: Callable[[], Any]) -> None:
        self._core_api = core_api

    def mark(self, node_name: str) -> bool:
        """Cordon the node and taint it ``karpenter.sh/disrupted:NoSchedule``, both in one patch.

        False when there is no such node. Raises ActuationFailed.
        """
        return self._changed(node_name, lambda taints: [*taints, _TAINT], unschedulable=True)

    def unmark(self, node_name: str) -> bool:
        """Undo ``mark``: the node takes pods again. False when there is no such node. Raises ActuationFailed."""
        return self._changed(node_name, lambda taints: taints, unschedulable=None)

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]:
        """Ask each pod to leave; one that is refused does not stop the next. Raises ActuationFailed on no answer."""
        return tuple(self._evicted(pod) for pod in pods)

    def _changed(
        self, node_name: str, retainted: Callable[[list[Any]], list[Any]], *, unschedulable: bool | None
    ) -> bool:
        """Replace the node's taints, unless it changed since it was read: then look again."""
        from kubernetes.client.exceptions import ApiException

        with _Told(f"the change of node {node_name}"):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    node = json.loads(self._call("read_node", node_name).data)
                    spec = node.get("spec", {})
                    others = [taint for taint in spec.get("taints") or [] if taint.get("key") != keys.DISRUPTED_TAINT]
                    wanted = retainted(others)
                    if wanted == (spec.get("taints") or []) and bool(spec.get("unschedulable")) is bool(unschedulable):
                        return True
                    # Strategic merge would merge two lists of taints by key; the version makes it safe to replace them.
                    change = {
                        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
                        "spec": {"unschedulable": unschedulable, "taints": wanted},
                    }
                    self._call("patch_node", node_name, change, _content_type="application/merge-patch+json")
                    return True
                except ApiException as error:
                    if error.status == 404:
                        return False
                    if error.status != 409 or attempt == _ATTEMPTS:
                        raise
        return False

    def _evicted(self, pod: PodKey) -> Eviction:
        from kubernetes.client.exceptions import ApiException

        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
        }
        with _Told(f"the eviction of pod {pod}"):
            try:
                self._call("create_namespaced_pod_eviction", pod.name, pod.namespace, body)
            except ApiException as error:
                if error.status in (None, 0, 401):
                    raise
                return Eviction(pod, _status(error), _message(error))
        return Eviction(pod, EvictionStatus.EVICTED)

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        call = getattr(self._core_api(), method)
        return call(*arguments, _preload_content=False, _request_timeout=_TIMEOUT_SECONDS, **options)


class _Told:
    """Errors of the client inside this block become ActuationFailed."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        if isinstance(error, ApiException):
            hint = (
                "give the user of the kubeconfig the right to patch nodes and to create pods/eviction"
                if error.status in (401, 403)
                else "run it again: a pass goes on from what it finds"
            )
            status = f" with {error.status}" if error.status else ""
            raise ActuationFailed(f"the API server refused {self._what}{status}: {_message(error)}", hint) from None
        if isinstance(error, HTTPError | OSError):
            raise ActuationFailed(
                f"the API server gave no answer to {self._what}: {error}",
                "check `kubectl get nodes`, then run it again",
            ) from None


def _status(error: Any) -> EvictionStatus:
    match error.status:
        case 404:
            return EvictionStatus.GONE
        case 429:
            return EvictionStatus.REFUSED_BY_BUDGET
        case 500 if "more than one PodDisruptionBudget" in _message(error):
            return EvictionStatus.SEVERAL_BUDGETS
    return EvictionStatus.FAILED


def _message(error: Any) -> str:
    try:
        told = json.loads(error.body)
        causes = (told.get("details") or {}).get("causes") or []
        return "; ".join([told["message"], *(cause["message"] for cause in causes)])
    except (ValueError, TypeError, KeyError, AttributeError):
        return str(error.reason)
