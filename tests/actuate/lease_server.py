"""One Lease on an API server in miniature: compare-and-swap by resourceVersion, as Kubernetes does it."""

from __future__ import annotations

import json
from typing import Any

from engine.model.fault import Fault


class LeaseServer:
    """``refuses`` is a status to answer everything with; ``is_away`` gives no answer at all."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.refuses: int | None = None
        self.is_away = False
        self.asked: list[str] = []
        self._version = 0

    def ask(
        self, method: str, path: str, *, body: object = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        self.asked.append(method)
        if self.is_away:
            raise Fault("the API server gave no answer")
        if self.refuses is not None:
            return self.refuses, b'{"message": "no"}'
        if method == "GET":
            return (404, b"{}") if self.lease is None else (200, json.dumps(self.lease).encode())
        assert isinstance(body, dict)
        if method == "DELETE":
            return self._deleted(body["preconditions"]["resourceVersion"])
        seen = body["metadata"].get("resourceVersion")
        if method == "POST" and self.lease is not None:
            return 409, b'{"message": "already exists"}'
        if method == "PUT" and self.lease is None:
            return 404, b"{}"
        if method == "PUT" and self.lease is not None and seen != self.lease["metadata"]["resourceVersion"]:
            return 409, b'{"message": "the object has been modified"}'
        return self._kept(body, 201 if method == "POST" else 200)

    def annotate(self, key: str, value: str) -> None:
        """As a person would, with kubectl."""
        lease = self.lease or {"metadata": {}, "spec": {}}
        metadata = {**lease["metadata"], "annotations": {key: value}}
        self._kept({**lease, "metadata": metadata}, 200)

    def _deleted(self, seen: str) -> tuple[int, bytes]:
        if self.lease is None:
            return 404, b"{}"
        if seen != self.lease["metadata"]["resourceVersion"]:
            return 409, b'{"message": "the object has been modified"}'
        self.lease = None
        return 200, b"{}"

    def _kept(self, lease: dict[str, Any], status: int) -> tuple[int, bytes]:
        self._version += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self._version)}}
        return status, json.dumps(self.lease).encode()
