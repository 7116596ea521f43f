"""Telling kube-scheduler which node a waiting pod was planned for: ``status.nominatedNodeName``.

The name of a node that does not exist is erased by kube-scheduler within half a second; that of one that exists holds
and keeps the room, also while the node is still tainted; but a pod that is tried while it is tainted forgets it. It
stays a wish: the scheduler may bind elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote

from attrs import frozen

from engine.actuate.api_server import MERGE_PATCH, NOT_FOUND, OK, ApiConnection, message_of, refused
from engine.model.pod import PodKey

_CONFLICT = 409
# What the API server says of a pod that kube-scheduler was quicker with.
_BOUND = "already bound to a node"
_WAITING = "/api/v1/pods?fieldSelector=spec.nodeName%3D"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@frozen
class Waiting:
    """The pods that are bound to no node, each with the version of its last change, and the cluster's own version then.

    Versions grow with time, and kube-scheduler changes each pod that it has tried in vain.
    """

    version: int
    pods: Mapping[PodKey, int]


class Nominator(Protocol):
    """Raises a Fault when the cluster does not answer."""

    def nominate(self, pod: PodKey, node_name: str) -> str:
        """Names a node to a pod. Empty when it holds or the pod has gone; else why the cluster does not allow it.

        May be repeated.
        """

    def waiting(self) -> Waiting | None:
        """How the pods that wait stand; None in a cluster whose scheduler takes no wishes."""


class _Listing(ApiConnection, Protocol):
    """One that also answers in another form than the objects' own."""

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[int, bytes]: ...


class KubernetesNominator:
    """On a real API server. A refusal is an answer, not a fault: pods bind without it, if perhaps elsewhere."""

    def __init__(self, api_server: _Listing) -> None:
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

    def waiting(self) -> Waiting:
        """One list of metadata alone: thousands may wait. Raises ActuationFailed when it is refused."""
        status, body = self._api_server.ask("GET", _WAITING, accept=_METADATA_ONLY)
        if status != OK:
            raise refused("a list of the pods that wait", status, body)
        listed = json.loads(body)
        every = (each["metadata"] for each in listed["items"] or [])
        return Waiting(
            int(listed["metadata"]["resourceVersion"]),
            {PodKey(each["namespace"], each["name"]): int(each["resourceVersion"]) for each in every},
        )


class BindsByItself:
    """A cluster whose scheduler takes no wishes, such as the simulated one."""

    def nominate(self, pod: PodKey, node_name: str) -> str:
        return ""

    def waiting(self) -> None:
        return None
