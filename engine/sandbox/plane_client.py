"""The sandbox's own way to an API server: one connection, plain JSON, as its kubelets and its workload need it."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine.model.fault import Fault

MERGE_PATCH = "application/merge-patch+json"
# kubelet and kwok change the same fields of a node; a strategic merge keeps the conditions that we do not name.
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class PlaneUnreachable(Fault):
    """The sandbox's API server gave no answer."""


class PlaneRefused(Fault):
    """The API server's refusal, with its ``status`` and the ``reason`` of its Status object."""

    def __init__(self, what: str, status: int, told: Mapping[str, Any]) -> None:
        super().__init__(f"the sandbox's API server refused {what} with {status}: {told.get('message', '')}")
        self.status = status
        self.reason = str(told.get("reason", ""))


class PlaneClient:
    """Not for several threads at once: there is one connection, made anew when the server closed it."""

    def __init__(self, endpoint: str, authority: Path, token: str, timeout_seconds: float = 30.0) -> None:
        address = urlsplit(endpoint)
        self._host, self._port = address.hostname or "", address.port or 443
        self._context = ssl.create_default_context(cafile=str(authority))
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._timeout_seconds = timeout_seconds
        self._connection: http.client.HTTPSConnection | None = None

    def get(self, path: str) -> dict[str, Any]:
        return self.ask("GET", path)

    def create(self, path: str, body: object) -> dict[str, Any]:
        return self.ask("POST", path, body)

    def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> dict[str, Any]:
        return self.ask("PATCH", path, body, content_type)

    def delete(self, path: str) -> dict[str, Any]:
        return self.ask("DELETE", path)

    def ask(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        """The answer's JSON. Raises PlaneRefused for any status from 400 on, PlaneUnreachable when there is none."""
        status, answer = self._answered(method, path, body, content_type)
        told = _json(answer)
        if status >= 400:
            raise PlaneRefused(f"{method} {path}", status, told)
        return told

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _answered(self, method: str, path: str, body: object, content_type: str) -> tuple[int, bytes]:
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": content_type} if content is not None else {})
        # A kept connection may have been closed while nobody looked; a request on it was never begun then.
        for is_last in (self._connection is None, True):
            try:
                return self._exchanged(method, path, content, headers)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if is_last or isinstance(error, TimeoutError):
                    raise PlaneUnreachable(
                        f"the sandbox's API server at https://{self._host}:{self._port} gave no answer to "
                        f"{method} {path}: {error or type(error).__name__}",
                        "nodewright sandbox up starts what has stopped",
                    ) from None
        raise AssertionError("the last attempt raises")

    def _exchanged(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_seconds, context=self._context
            )
        self._connection.request(method, path, body=content, headers=dict(headers))
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def _json(answer: bytes) -> dict[str, Any]:
    try:
        told = json.loads(answer)
    except ValueError:
        # /readyz and its like answer in words.
        return {"message": answer[:500].decode(errors="replace")}
    return told if isinstance(told, dict) else {"message": str(told)}
