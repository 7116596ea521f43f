"""One Kubernetes API server, reached as kubectl would: plain requests and their raw answers, and watches."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engine.observe.failure import ObservationFailed, Refused
from engine.observe.kubeconfig import connected_client
from engine.observe.watch_stream import WatchStream

_CONNECT_SECONDS = 3.0
_READ_SECONDS = 30.0
# A server that answers drop by drop would never meet the time-out of a single read.
_WHOLE_ANSWER_SECONDS = 120.0
_PIECE_BYTES = 2**18
_UNAUTHORIZED = 401
# Credentials read a moment ago and refused are not read again at once: an exec plugin may cost a second.
_RENEWED_AT_MOST_EVERY_SECONDS = 5.0


class ApiServer:
    """``kubeconfig`` and ``context`` None mean kubectl's own defaults. Nothing is read before the first question.

    Threads may share one. Where the server says 401, the credentials (a token, its file, an exec plugin) are read
    again and the request is repeated once.
    """

    def __init__(
        self,
        kubeconfig: str | None = None,
        context: str | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._client: Any = None
        self._renewed_at: float | None = None

    @property
    def endpoint(self) -> str:
        """The server's address. Raises ObservationFailed when the kubeconfig names none."""
        return str(self._connected().configuration.host)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[int, bytes]:
        """The HTTP status and body of an answer, whatever it is. Raises ObservationFailed when there is none."""
        headers = {"Accept": accept, "Content-Type": content_type}

        def send(client: Any) -> Any:
            request = client.param_serialize(
                method, path, query_params=list((query or {}).items()), header_params=dict(headers), body=body,
                auth_settings=["BearerToken"],
            )  # fmt: skip
            return client.call_api(*request, _request_timeout=(_CONNECT_SECONDS, _READ_SECONDS)).response

        with self._told(method, path):
            response = self._authorized(send)
            return int(response.status), self._whole(response)

    def watch(self, path: str, query: Mapping[str, str], *, silence_seconds: float = 180.0) -> WatchStream:
        """The lines of a watch, each one JSON event, as they come.

        Raises ObservationFailed, here or while it is read, when the connection breaks or nothing came for
        ``silence_seconds``, and Refused when the server says no. A clean end ends the iteration.
        """
        from urllib3.util import Timeout

        def send(client: Any) -> Any:
            _, url, headers, _, _ = client.param_serialize(
                "GET", path, query_params=[*query.items(), ("watch", "1")],
                header_params={"Accept": "application/json"}, auth_settings=["BearerToken"],
            )  # fmt: skip
            # No retries here: who watches has a back-off of its own, and must hear of each break.
            return client.rest_client.pool_manager.request(
                "GET", url, headers=headers, retries=False, redirect=False, preload_content=False,
                timeout=Timeout(connect=_CONNECT_SECONDS, read=silence_seconds),
            )  # fmt: skip

        with self._told("GET", path):
            response = self._authorized(send)
            if response.status != 200:
                raise refusal(self.endpoint, f"watch of {path}", int(response.status), self._whole(response))
        return WatchStream(response, lambda: self._told("WATCH", path))

    def _authorized(self, send: Callable[[Any], Any]) -> Any:
        client = self._connected()
        response = send(client)
        if response.status != _UNAUTHORIZED:
            return response
        renewed = self._renewed(client)
        if renewed is client:
            return response
        response.close()
        return send(renewed)

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = connected_client(self._kubeconfig, self._context)
            return self._client

    def _renewed(self, refused: Any) -> Any:
        """A client with credentials other than the refused one's; the same where those were read a moment ago."""
        with self._lock:
            now = self._monotonic()
            recently = self._renewed_at is not None and now - self._renewed_at < _RENEWED_AT_MOST_EVERY_SECONDS
            if self._client is refused and not recently:
                self._client = connected_client(self._kubeconfig, self._context)
                self._renewed_at = now
            return self._client

    def _whole(self, response: Any) -> bytes:
        ends_at = self._monotonic() + _WHOLE_ANSWER_SECONDS
        pieces = []
        while piece := response.read1(_PIECE_BYTES):
            pieces.append(piece)
            if self._monotonic() > ends_at:
                response.close()
                raise TimeoutError(f"the answer was not complete after {_WHOLE_ANSWER_SECONDS:.0f} s")
        response.release_conn()
        return b"".join(pieces)

    @contextmanager
    def _told(self, method: str, path: str) -> Iterator[None]:
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            yield
        except ApiException as error:
            raise self._unreachable(method, path, str(error.reason)) from None
        except (HTTPError, OSError) as error:
            raise self._unreachable(method, path, str(error)) from None

    def _unreachable(self, method: str, path: str, why: str) -> ObservationFailed:
        return ObservationFailed(
            f"the Kubernetes API server {self.endpoint} gave no answer to {method} {path}: {why}",
            (
                f"check that {self.endpoint} is up and can be reached from here: `kubectl get nodes`",
                "check cluster.kubeconfig and cluster.context in the stack file",
            ),
        )


def refusal(endpoint: str, what: str, status: int, body: bytes) -> Refused:
    """What a status that is no success means, and what to do about it."""
    if status == _UNAUTHORIZED:
        hint = "the credentials of the kubeconfig are missing or have expired: log in again, then `kubectl get nodes`"
    elif status == 403:
        hint = f"give the user of the kubeconfig a ClusterRole that may read the {what}"
    elif status == 410:
        hint = "the list changed faster than it could be read: run it again"
    else:
        hint = "run it again; if it stays, ask `kubectl get --raw /readyz?verbose` what ails the API server"
    told = f"the Kubernetes API server {endpoint} refused the {what} with {status}: {message_of(body)}"
    return Refused(status, told, hint)


def message_of(body: bytes) -> str:
    """What the API server says in a refusal's body; the start of the body where it is no Status object."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, TypeError, KeyError):
        return body[:200].decode(errors="replace").strip()
