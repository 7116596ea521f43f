"""Telling kube-scheduler which node a waiting pod was planned for: ``status.nominatedNodeName``.

The name of a node that does not exist is erased by kube-scheduler within half a second; that of one that exists holds
and keeps the room, also while the node is still tainted. It stays a wish: the scheduler may bind elsewhere.
"""

from __future__ import annotations

from typing import Protocol
from urllib.parse import quote

from engine.actuate.api_server import MERGE_PATCH, NOT_FOUND, ApiConnection, message_of
from engine.model.pod import PodKey

_CONFLICT = 409
# What the API server says of a pod that kube-scheduler was quicker with.
_BOUND = "already bound to a node"


class Nominator(Protocol):
    """Names a node to a pod. Empty when it holds or the pod has gone; else why the cluster does not allow it.

    May be repeated. Raises a Fault when the cluster does not answer.
    """

    def nominate(self, pod: PodKey, node_name: str) -> str: ...


class KubernetesNominator:
    """On a real API server. A refusal is an answer, not a fault: pods bind without it, if perhaps elsewhere."""

    def __init__(self, api_server: ApiConnection) -> None:
        self._api_server = api_server

    def nominate(self, pod: PodKey, node_name: str) -> str:
        """One merge patch of the pod's status subresource."""
        namespace, name = quote(pod.namespace, safe=""), quote(pod.name, safe="")
        status, body = self._api_server.ask(
            "PATCH",
            f"/api/v1/namespaces/{namespace}/pods/{name}/status",
            body={"status": {"nominatedNodeName": node_name}},
            content_type=MERGE_PATCH,
        )
        # Not found, or changed in this instant: the pod is gone or bound by now, and the next pass sees it.
        if 200 <= status <= 299 or status in (NOT_FOUND, _CONFLICT):
            return ""
        match status:
            case 401 | 403:
                return "we may not patch pods/status: give our user that right, or pods bind wherever they fit"
            case 422 if _BOUND in message_of(body):
                return ""
            case 422:
                return f"this API server takes no nominatedNodeName from us: {message_of(body)}"
        return f"the API server answered a nomination with {status}: {message_of(body)}"


class BindsByItself:
    """A cluster whose scheduler takes no wishes, such as the simulated one."""

    def nominate(self, pod: PodKey, node_name: str) -> str:
        return ""
