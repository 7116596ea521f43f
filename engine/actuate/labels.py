"""Giving a node the labels that its claim promised and its kubelet cannot know, such as its type's GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote

from engine.actuate.api_server import MERGE_PATCH, NOT_FOUND, OK, ApiConnection, refused


class Labeler(Protocol):
    """Adds labels to a node; whether the node still exists. May be repeated. Raises a Fault on no answer."""

    def label(self, node_name: str, labels: Mapping[str, str]) -> bool: ...


class KubernetesLabeler:
    """On a real API server. Raises ActuationFailed when it refuses, the connection's own Fault when it is silent."""

    def __init__(self, api_server: ApiConnection) -> None:
        self._api_server = api_server

    def label(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """One merge patch: labels that are not named stay. False when there is no such node."""
        path = f"/api/v1/nodes/{quote(node_name, safe='')}"
        change = {"metadata": {"labels": dict(labels)}}
        status, body = self._api_server.ask("PATCH", path, body=change, content_type=MERGE_PATCH)
        if status not in (OK, NOT_FOUND):
            raise refused(f"the labels of node {node_name}", status, body)
        return status == OK
