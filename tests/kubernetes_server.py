"""A Kubernetes API server in miniature, on loopback: lists by page, one node read and patched, evictions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from attrs import Factory, define

LISTS = {"/api/v1/pods": "pods", "/api/v1/nodes": "nodes", "/apis/apps/v1/daemonsets": "daemonsets"}


@define
class FakeApiServer:
    """What it holds. ``refusals`` are answers given instead, by method and path: (status, body); each is used once.

    A path that ends in ``?continue`` means the pages after the first. ``url`` and ``requests`` fill as it serves.
    """

    pods: list[dict[str, Any]] = Factory(list)
    nodes: list[dict[str, Any]] = Factory(list)
    daemonsets: list[dict[str, Any]] = Factory(list)
    refusals: dict[tuple[str, str], list[tuple[int, Any]]] = Factory(dict)
    requests: list[tuple[str, str, Any]] = Factory(list)
    url: str = ""

    def kubeconfig(self, folder: Path) -> str:
        file = folder / "kubeconfig"
        file.write_text(kubeconfig_text(self.url), encoding="utf-8")
        return str(file)

    def refuse(self, method: str, path: str, status: int, message: str = "no", **more: Any) -> None:
        body = {"kind": "Status", "status": "Failure", "code": status, "message": message, **more}
        self.refusals.setdefault((method, path), []).append((status, body))

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        parts = urlsplit(target)
        self.requests.append((method, target, body))
        waiting = self.refusals.get((method, parts.path + ("?continue" if "continue=" in parts.query else "")))
        if waiting:
            return waiting.pop(0)
        if parts.path == "/version":
            return 200, {"major": "1", "minor": "33+", "gitVersion": "v1.33.1"}
        if parts.path in LISTS:
            return 200, self._page(getattr(self, LISTS[parts.path]), parse_qs(parts.query))
        if parts.path.startswith("/api/v1/nodes/"):
            return self._node(method, parts.path.rsplit("/", 1)[-1], body)
        if parts.path.endswith("/eviction") and method == "POST":
            return 201, {"kind": "Status", "status": "Success"}
        return 404, {"message": "not found"}

    def _page(self, items: list[dict[str, Any]], query: dict[str, list[str]]) -> dict[str, Any]:
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        end = start + limit
        metadata = {"continue": str(end)} if end < len(items) else {}
        return {"kind": "List", "metadata": metadata, "items": items[start:end]}

    def _node(self, method: str, name: str, body: Any) -> tuple[int, Any]:
        node = next((each for each in self.nodes if each["metadata"]["name"] == name), None)
        if node is None:
            return 404, {"message": f'nodes "{name}" not found'}
        if method == "PATCH":
            seen = body["metadata"].get("resourceVersion")
            if seen is not None and seen != node["metadata"]["resourceVersion"]:
                return 409, {"message": "the object has been modified"}
            node["metadata"]["resourceVersion"] += "1"
            node["metadata"].setdefault("labels", {}).update(body["metadata"].get("labels") or {})
            for key, value in body.get("spec", {}).items():
                if value is None:
                    node["spec"].pop(key, None)
                else:
                    node["spec"][key] = value
        return 200, node


def kubeconfig_text(url: str) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "test", "user": {"token": "not-a-secret"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    return json.dumps(config)


@contextmanager
def serving(server: FakeApiServer) -> Iterator[FakeApiServer]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, told = server.answer(self.command, self.path, body)
            content = told.encode() if isinstance(told, str) else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
