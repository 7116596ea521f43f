"""Who changes pods while bench_steady watches: clients of the real API server in processes of their own, and a local
source that replays watch lines at a set rate for a machine whose API server cannot take it.

Each event is one number, which is also the value that it leads to; a feed tells each number with the time of its send.
"""

from __future__ import annotations

import itertools
import json
import random
import ssl
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from steady_world import NAMESPACE, pod_name, ready

from engine.sandbox.control_plane import Plane
from engine.sandbox.plane_client import STRATEGIC_PATCH, PlaneUnreachable

# Lines that are due are written together this often, as a busy API server does.
_TICK_SECONDS = 0.01


def patch_on_demand(plane: Plane, nodes: int, pods_each: int) -> None:
    """One patch for each line on standard input, which is the event's number."""
    client, dice = plane.client(), random.Random(2)
    for line in sys.stdin:
        _patch(client, dice, int(line), nodes, pods_each)


def patch_at(plane: Plane, nodes: int, pods_each: int, first: int, step: int, rate: float, seconds: float) -> None:
    """Patches at that rate, or as fast as the server takes them; ``NUMBER TIME`` of each on standard output."""
    client, dice = plane.client(), random.Random(first)
    began, told = time.time(), []
    for count in itertools.count():
        due = began + count / rate
        if due > began + seconds or time.time() > began + seconds:
            break
        time.sleep(max(0.0, due - time.time()))
        number = first + count * step
        sent_at = time.time()
        _patch(client, dice, number, nodes, pods_each)
        told.append(f"{number} {sent_at}")
    print("\n".join(told), flush=True)


def _patch(client: Any, dice: random.Random, number: int, nodes: int, pods_each: int) -> None:
    name = pod_name(dice.randrange(nodes), dice.randrange(pods_each))
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/status"
    try:
        client.patch(path, {"status": {"conditions": ready(number)["status"]["conditions"]}}, STRATEGIC_PATCH)
    except PlaneUnreachable:
        # One that got no answer is not seen either, and counts as such.
        return


class Replay:
    """Forwards lists to the real API server, and plays the watch of pods itself; other watches stay silent.

    ``play`` begins with ``POST /play``, which is answered with ``NUMBER TIME`` lines when it is over.
    """

    def __init__(self, plane: Plane, rate: float, seconds: float) -> None:
        self._plane, self._rate, self._seconds = plane, rate, seconds
        self._context = ssl.create_default_context(cafile=str(plane.authority_file))
        self._begin, self._is_over = threading.Event(), threading.Event()
        self._told: list[str] = []
        self.pods: list[dict[str, Any]] = []
        self.version = 0

    def answered(self, path: str) -> tuple[int, bytes]:
        request = urllib.request.Request(
            self._plane.endpoint + path,
            headers={"Authorization": f"Bearer {self._plane.token}", "Accept": "application/json"},
        )
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._context)
        )
        try:
            with opener.open(request, timeout=30) as answer:
                return int(answer.status), answer.read()
        except urllib.error.HTTPError as refused:
            return int(refused.code), refused.read()

    def record(self) -> None:
        """Remember every pod as it is listed."""
        listed = json.loads(self.answered("/api/v1/pods?resourceVersion=0")[1])
        # Far beyond what anybody lists meanwhile: a version that goes back would make the watch begin again.
        self.version = int(listed["metadata"]["resourceVersion"]) + 10**6
        self.pods = [{"apiVersion": "v1", "kind": "Pod", **each} for each in listed["items"]]

    def play(self) -> bytes:
        self._begin.set()
        self._is_over.wait()
        return "\n".join(self._told).encode()

    def lines(self, write: Any) -> None:
        """The watch of pods: silent, then events at the rate for the time, then silent."""
        self._begin.wait()
        dice, began, count = random.Random(3), time.time(), 0
        while time.time() < began + self._seconds:
            due = int((time.time() - began) * self._rate)
            piece = []
            for number in range(count + 1, due + 1):
                pod = dice.choice(self.pods)
                pod["status"]["conditions"] = ready(number)["status"]["conditions"]
                pod["metadata"]["resourceVersion"] = str(self.version + number)
                piece.append(json.dumps({"type": "MODIFIED", "object": pod}, separators=(",", ":")).encode() + b"\n")
                self._told.append(f"{number} {time.time()}")
            write(b"".join(piece))
            count = due
            time.sleep(_TICK_SECONDS)
        self._is_over.set()


def serve_replay(plane: Plane, rate: float, seconds: float) -> None:
    """Serve until killed; the port is told on standard output."""
    replay = Replay(plane, rate, seconds)
    replay.record()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if "watch=1" not in self.path:
                self._answer(*replay.answered(self.path))
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if self.path.startswith("/api/v1/pods?"):
                replay.lines(self._chunk)
            threading.Event().wait()

        def do_POST(self) -> None:
            self._answer(200, replay.play())

        def _chunk(self, piece: bytes) -> None:
            if piece:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Nobody reads along."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
