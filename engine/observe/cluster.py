"""Reading a Kubernetes cluster: whole lists, page by page, decoded here. A read that is cut short is a failed read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from attrs import frozen

from engine.model.node import Node
from engine.model.pod import DaemonSet, Pod
from engine.model.snapshot import KarpenterFacts, ObjectProblem
from engine.model.workload import Workload
from engine.observe.api_server import ApiServer, message_of
from engine.observe.failure import ObservationFailed
from engine.observe.json_fields import shown
from engine.observe.kubernetes import decode_daemon_sets, decode_nodes, decode_pods

PAGE = 500


@frozen
class ClusterFacts:
    """What a cluster holds. ``problems`` are objects that could not be read whole; the rest stands without them."""

    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    daemon_sets: tuple[DaemonSet, ...]
    problems: tuple[ObjectProblem, ...] = ()
    workload: Workload = Workload()
    karpenter: KarpenterFacts = KarpenterFacts()


class ClusterReader(Protocol):
    """A cluster that can be read; raises ObservationFailed."""

    def read(self) -> ClusterFacts: ...


def decode_cluster(
    pods: Iterable[Any], nodes: Iterable[Any], daemon_sets: Iterable[Any], now: datetime | None = None
) -> ClusterFacts:
    """The facts in three lists of Kubernetes JSON objects."""
    read_pods, pod_problems = decode_pods(pods, now)
    read_nodes, node_problems = decode_nodes(nodes)
    read_daemon_sets, daemon_problems = decode_daemon_sets(daemon_sets)
    return ClusterFacts(read_pods, read_nodes, read_daemon_sets, (*pod_problems, *node_problems, *daemon_problems))


class KubernetesCluster:
    """A real API server, reached as kubectl would: ``kubeconfig`` and ``context`` None mean kubectl's own defaults."""

    def __init__(
        self,
        kubeconfig: str | None = None,
        context: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.api_server = ApiServer(kubeconfig, context)
        self._now = now

    def read(self) -> ClusterFacts:
        """All pods, nodes and daemonsets. Raises ObservationFailed when any page of them cannot be had."""
        # Pods last: one bound meanwhile to a node not listed waits a pass; a node without its pods would look empty.
        nodes = self._list("nodes", "/api/v1/nodes")
        daemon_sets = self._list("daemonsets", "/apis/apps/v1/daemonsets")
        pods = self._list("pods", "/api/v1/pods")
        return decode_cluster(pods, nodes, daemon_sets, self._now())

    def kubernetes_version(self) -> str:
        """The release that the API server runs, such as ``1.33``. Raises ObservationFailed."""
        version = self._answer("version", "/version", {})
        # EKS writes the minor number as "33+".
        return f"{version.get('major', '')}.{str(version.get('minor', '')).rstrip('+')}"

    def _list(self, what: str, path: str) -> list[Any]:
        items: list[Any] = []
        token = ""
        while True:
            more = {"continue": token} if token else {}
            page = self._answer(f"list of {what}", path, {"limit": str(PAGE), **more})
            items += _items(what, page)
            token = _continuation(page)
            if not token:
                return items

    def _answer(self, what: str, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        status, body = self.api_server.ask("GET", path, query=query)
        endpoint = self.api_server.endpoint
        if not 200 <= status <= 299:
            raise _refused(endpoint, what, status, message_of(body))
        try:
            told = json.loads(body)
        except ValueError as error:
            raise ObservationFailed(
                f"{endpoint} answered the {what} with something that is no JSON: {error}",
                "check that the kubeconfig's server is a Kubernetes API server and not a proxy's page",
            ) from None
        if not isinstance(told, dict):
            raise ObservationFailed(f"{endpoint} answered the {what} with {shown(told)}, expected an object")
        return told


def _items(what: str, page: Mapping[str, Any]) -> list[Any]:
    items = page.get("items")
    if items is None and str(page.get("kind", "")).endswith("List"):
        return []
    if not isinstance(items, list):
        raise ObservationFailed(f"the list of {what} has items {shown(items)}, expected a list")
    return items


def _continuation(page: Mapping[str, Any]) -> str:
    metadata = page.get("metadata")
    token = metadata.get("continue") if isinstance(metadata, dict) else None
    return token if isinstance(token, str) else ""


def _refused(endpoint: str, what: str, status: int, message: str) -> ObservationFailed:
    if status == 401:
        hint = "the credentials of the kubeconfig are missing or have expired: log in again, then `kubectl get nodes`"
    elif status == 403:
        hint = f"give the user of the kubeconfig a ClusterRole that may read the {what}"
    elif status == 410:
        hint = "the list changed faster than it could be read: run it again"
    else:
        hint = "run it again; if it stays, ask `kubectl get --raw /readyz?verbose` what ails the API server"
    return ObservationFailed(f"the Kubernetes API server {endpoint} refused the {what} with {status}: {message}", hint)
