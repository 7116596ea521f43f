"""Reading a Kubernetes cluster: whole lists, page by page, decoded here. A read that is cut short is a failed read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from attrs import frozen

from engine.model.node import Node
from engine.model.pod import DaemonSet, Pod
from engine.model.snapshot import ObjectProblem
from engine.observe.failure import ObservationFailed
from engine.observe.json_fields import shown
from engine.observe.kubernetes import decode_daemon_sets, decode_nodes, decode_pods

PAGE = 500
_TIMEOUT_SECONDS = (3.0, 30.0)
_RETRIES = 2


@frozen
class ClusterFacts:
    """What a cluster holds. ``problems`` are objects that could not be read whole; the rest stands without them."""

    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    daemon_sets: tuple[DaemonSet, ...]
    problems: tuple[ObjectProblem, ...] = ()


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
        self._kubeconfig = kubeconfig
        self._context = context
        self._now = now
        self._client: Any = None

    def read(self) -> ClusterFacts:
        """All pods, nodes and daemonsets. Raises ObservationFailed when any page of them cannot be had."""
        # Pods last: one bound meanwhile to a node not listed waits a pass; a node without its pods would look empty.
        nodes = self._list("nodes", self.core_api().list_node)
        daemon_sets = self._list("daemonsets", self._apps_api().list_daemon_set_for_all_namespaces)
        pods = self._list("pods", self.core_api().list_pod_for_all_namespaces)
        return decode_cluster(pods, nodes, daemon_sets, self._now())

    def kubernetes_version(self) -> str:
        """The release that the API server runs, such as ``1.33``. Raises ObservationFailed."""
        from kubernetes.client import VersionApi

        version = self._answer("version", VersionApi(self._connected()).get_code)
        # EKS writes the minor number as "33+".
        return f"{version.get('major', '')}.{str(version.get('minor', '')).rstrip('+')}"

    def core_api(self) -> Any:
        """The official client's CoreV1Api on this cluster, for those who act on it. Raises ObservationFailed."""
        from kubernetes.client import CoreV1Api

        return CoreV1Api(self._connected())

    def _apps_api(self) -> Any:
        from kubernetes.client import AppsV1Api

        return AppsV1Api(self._connected())

    def _connected(self) -> Any:
        if self._client is None:
            self._client = _client(self._kubeconfig, self._context)
        return self._client

    def _list(self, what: str, page_of: Callable[..., Any]) -> Sequence[Any]:
        items: list[Any] = []
        token = ""
        while True:
            more = {"_continue": token} if token else {}
            page = self._answer(f"list of {what}", page_of, limit=PAGE, **more)
            items += _items(what, page)
            token = _continuation(page)
            if not token:
                return items

    def _answer(self, what: str, ask: Callable[..., Any], **parameters: Any) -> Mapping[str, Any]:
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        endpoint = self._connected().configuration.host
        try:
            # Building the client's models takes ten times as long as reading their JSON.
            answer = ask(_preload_content=False, _request_timeout=_TIMEOUT_SECONDS, **parameters)
            told = json.loads(answer.data)
        except ApiException as error:
            raise _refused(endpoint, what, error.status, _message(error)) from None
        except (HTTPError, OSError) as error:
            raise _unreachable(endpoint, what, error) from None
        except ValueError as error:
            raise ObservationFailed(
                f"{endpoint} answered the {what} with something that is no JSON: {error}",
                "check that the kubeconfig's server is a Kubernetes API server and not a proxy's page",
            ) from None
        if not isinstance(told, dict):
            raise ObservationFailed(f"{endpoint} answered the {what} with {shown(told)}, expected an object")
        return told


def _client(kubeconfig: str | None, context: str | None) -> Any:
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException, load_kube_config
    from urllib3.util import Retry

    configuration = Configuration()
    try:
        load_kube_config(config_file=kubeconfig, context=context, client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, TypeError, AttributeError) as error:
        raise _no_kubeconfig(kubeconfig, context, error) from None
    except Exception as error:
        # The client parses YAML with a library whose errors this room does not know.
        if type(error).__module__.split(".")[0] != "yaml":
            raise
        raise _no_kubeconfig(kubeconfig, context, error) from None
    configuration.retries = Retry(total=_RETRIES, backoff_factor=0.2, redirect=0)
    return ApiClient(configuration=configuration)


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


def _message(error: Any) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (ValueError, TypeError, KeyError):
        return str(error.reason)


def _no_kubeconfig(kubeconfig: str | None, context: str | None, error: Exception) -> ObservationFailed:
    where = kubeconfig or "the default kubeconfig ($KUBECONFIG or ~/.kube/config)"
    wanted = f" with the context {context}" if context else ""
    return ObservationFailed(
        f"{where} gives no cluster{wanted}: {str(error).strip() or type(error).__name__}",
        (
            "set cluster.kubeconfig and cluster.context in the stack file",
            "on EKS, `aws eks update-kubeconfig --name CLUSTER` writes the entry",
        ),
    )


def _unreachable(endpoint: str, what: str, error: Exception) -> ObservationFailed:
    return ObservationFailed(
        f"the Kubernetes API server {endpoint} gave no answer to the {what}: {error}",
        (
            f"check that {endpoint} is up and can be reached from here: `kubectl get nodes`",
            "check cluster.kubeconfig and cluster.context in the stack file",
        ),
    )


def _refused(endpoint: str, what: str, status: int | None, message: str) -> ObservationFailed:
    if not status:
        return _unreachable(endpoint, what, Exception(message))
    if status == 401:
        hint = "the credentials of the kubeconfig are missing or have expired: log in again, then `kubectl get nodes`"
    elif status == 403:
        hint = f"give the user of the kubeconfig a ClusterRole that may read the {what}"
    elif status == 410:
        hint = "the list changed faster than it could be read: run it again"
    else:
        hint = "run it again; if it stays, ask `kubectl get --raw /readyz?verbose` what ails the API server"
    return ObservationFailed(f"the Kubernetes API server {endpoint} refused the {what} with {status}: {message}", hint)
