"""A Kubernetes API server in miniature, on loopback: lists by page, watches, one node read and patched, evictions."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from attrs import Factory, define

from engine.observe.kinds import KINDS

LISTS = {"/api/v1/pods": "pods", "/api/v1/nodes": "nodes", "/apis/apps/v1/daemonsets": "daemonsets"}
# What every cluster serves; of the rest only what a test says is there.
ADDED_KINDS = ("keda.sh", "karpenter.sh")
# Told as a line, it ends the watches that read it.
END = b"end"
KNOWN = frozenset(kind.path for kind in KINDS if kind.group not in ADDED_KINDS)


@define
class FakeApiServer:
    """What it holds. ``refusals`` are answers given instead, by method and path: (status, body); each is used once.

    A path that ends in ``?continue`` means the pages after the first, one in ``?watch`` a watch. ``url`` and
    ``requests`` fill as it serves. ``others`` are objects of further kinds, by path; ``token`` is what it lets in,
    None is anybody. ``change`` tells watches; those from before ``oldest_version`` are answered with 410.
    """

    pods: list[dict[str, Any]] = Factory(list)
    nodes: list[dict[str, Any]] = Factory(list)
    daemonsets: list[dict[str, Any]] = Factory(list)
    refusals: dict[tuple[str, str], list[tuple[int, Any]]] = Factory(dict)
    requests: list[tuple[str, str, Any]] = Factory(list)
    url: str = ""
    others: dict[str, list[dict[str, Any]]] = Factory(dict)
    token: str | None = None
    version: int = 1
    oldest_version: int = 0
    told: list[tuple[int, str, bytes]] = Factory(list)
    watching: list[tuple[str, Any]] = Factory(list)
    is_closing: bool = False
    _news: threading.Condition = Factory(threading.Condition)

    def kubeconfig(self, folder: Path) -> str:
        file = folder / "kubeconfig"
        file.write_text(kubeconfig_text(self.url), encoding="utf-8")
        return str(file)

    def refuse(self, method: str, path: str, status: int, message: str = "no", **more: Any) -> None:
        body = {"kind": "Status", "status": "Failure", "code": status, "message": message, **more}
        self.refusals.setdefault((method, path), []).append((status, body))

    def change(self, told: str, path: str, held: dict[str, Any]) -> None:
        """ADDED, MODIFIED or DELETED, in the lists and to who watches."""
        with self._news:
            self.version += 1
            held["metadata"]["resourceVersion"] = str(self.version)
            items = self.items(path)
            name = (held["metadata"].get("namespace"), held["metadata"]["name"])
            items[:] = [each for each in items if (each["metadata"].get("namespace"), each["metadata"]["name"]) != name]
            if told != "DELETED":
                items.append(held)
            self._tell(path, {"type": told, "object": held})

    def tell(self, path: str, event: Any) -> None:
        """Any event, or line, to who watches."""
        with self._news:
            self._tell(path, event)

    def bookmark(self, path: str) -> None:
        self.tell(path, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}})

    def _tell(self, path: str, event: Any) -> None:
        line = event.encode() if isinstance(event, str) else json.dumps(event).encode()
        self.told.append((self.version, path, line + b"\n"))
        self._news.notify_all()

    def await_watches(self, path: str, count: int = 1) -> None:
        """Until so many watches of a path are open."""
        with self._news:
            assert self._news.wait_for(lambda: sum(each == path for each, _ in self.watching) >= count, 10)

    @contextmanager
    def in_silence(self) -> Iterator[None]:
        """Nobody is told anything meanwhile, and no watch begins."""
        with self._news:
            yield

    def cut_watches(self, path: str = "") -> None:
        """Break the connections of who watches."""
        with self._news:
            for watched, connection in self.watching:
                if path in ("", watched):
                    connection.shutdown(socket.SHUT_RDWR)

    def items(self, path: str) -> list[dict[str, Any]]:
        held: list[dict[str, Any]] = getattr(self, LISTS[path]) if path in LISTS else self.others.setdefault(path, [])
        return held

    def events(self, path: str, after: int, position: int, wait_seconds: float) -> tuple[list[bytes], int]:
        """The lines told of a path since a version, from a place in the record on, and the next place."""
        with self._news:
            self._news.wait_for(lambda: len(self.told) > position, wait_seconds)
            lines = [line for version, each, line in self.told[position:] if each == path and version > after]
            return lines, len(self.told)

    def joins(self, path: str, connection: Any) -> None:
        with self._news:
            self.watching.append((path, connection))
            self._news.notify_all()

    def leaves(self, path: str, connection: Any) -> None:
        with self._news:
            self.watching.remove((path, connection))

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        parts = urlsplit(target)
        self.requests.append((method, target, body))
        marks = [mark for mark in ("continue", "watch") if f"{mark}=" in parts.query]
        waiting = self.refusals.get((method, "?".join([parts.path, *marks])))
        if waiting:
            return waiting.pop(0)
        if parts.path == "/version":
            return 200, {"major": "1", "minor": "33+", "gitVersion": "v1.33.1"}
        if parts.path in KNOWN or (parts.path in self.others and method == "GET"):
            # A watch is answered by who listens.
            return 200, None if "watch" in marks else self._page(self.items(parts.path), parse_qs(parts.query))
        if parts.path.startswith("/api/v1/nodes/"):
            return self._node(method, parts.path.rsplit("/", 1)[-1], body)
        if parts.path.endswith("/eviction") and method == "POST":
            return 201, {"kind": "Status", "status": "Success"}
        if "/pods/" in parts.path and method == "DELETE":
            return self._deleted(parts.path.rsplit("/", 1)[-1])
        return 404, {"message": "not found"}

    def _deleted(self, name: str) -> tuple[int, Any]:
        pod = next((each for each in self.pods if each["metadata"]["name"] == name), None)
        return (404, {"message": f'pods "{name}" not found'}) if pod is None else (200, pod)

    def _page(self, items: list[dict[str, Any]], query: dict[str, list[str]]) -> dict[str, Any]:
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        end = start + limit
        metadata = {"resourceVersion": str(self.version)}
        if end < len(items):
            metadata["continue"] = str(end)
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
            for part in ("labels", "annotations"):
                merged = {**(node["metadata"].get(part) or {}), **(body["metadata"].get(part) or {})}
                # In a merge patch null takes away.
                node["metadata"][part] = {key: value for key, value in merged.items() if value is not None}
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def _answer(self) -> None:
        api = self.server.api
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        if api.token is not None and self.headers.get("Authorization") != f"Bearer {api.token}":
            api.requests.append((self.command, self.path, body))
            self._send(401, {"message": "Unauthorized"})
            return
        status, told = api.answer(self.command, self.path, body)
        if status == 200 and "watch=" in self.path:
            self._watch(api)
        else:
            self._send(status, told)

    def _watch(self, api: FakeApiServer) -> None:
        parts = urlsplit(self.path)
        with api.in_silence():
            oldest = api.oldest_version
        after = int(parse_qs(parts.query)["resourceVersion"][0])
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if after < oldest:
            gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
            self._chunk(json.dumps(gone).encode() + b"\n")
            self._chunk(b"")
            return
        api.joins(parts.path, self.connection)
        try:
            self._tell_all(api, parts.path, after)
        except OSError:
            self.close_connection = True
        finally:
            api.leaves(parts.path, self.connection)

    def _tell_all(self, api: FakeApiServer, path: str, after: int) -> None:
        position = 0
        while not api.is_closing:
            lines, position = api.events(path, after, position, 0.05)
            after = -1  # what is told from now on is news, whatever it says
            for line in lines:
                if line == END + b"\n":
                    self._chunk(b"")
                    return
                self._chunk(line)
            self.connection.settimeout(0.0)
            with contextlib.suppress(BlockingIOError):
                if self.connection.recv(1) == b"":
                    raise ConnectionError("the client left")
            self.connection.settimeout(None)

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _send(self, status: int, told: Any) -> None:
        content = told.encode() if isinstance(told, str) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Quiet."""


class _Listener(ThreadingHTTPServer):
    def __init__(self, api: FakeApiServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api


@contextmanager
def serving(server: FakeApiServer) -> Iterator[FakeApiServer]:
    http = _Listener(server)
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.is_closing = True
        http.shutdown()
        http.server_close()
        thread.join()
