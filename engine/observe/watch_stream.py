"""The lines of one watch, as the API server sends them."""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

_PIECE_BYTES = 2**16


class WatchStream(Iterator[bytes]):
    """Iterates over whole lines. ``response`` is a urllib3 response that is open; ``told`` names its errors."""

    def __init__(self, response: Any, told: Callable[[], AbstractContextManager[None]]) -> None:
        self._response = response
        self._told = told
        self._lines: deque[bytes] = deque()
        self._unfinished: list[bytes] = []

    def __next__(self) -> bytes:
        """The next event. Raises ObservationFailed when the connection broke, ended within a line or fell silent."""
        while not self._lines:
            with self._told():
                piece = self._response.read1(_PIECE_BYTES)
                if not piece and self._unfinished:
                    raise ConnectionError("the answer ended within a line")
            if not piece:
                raise StopIteration
            self._take(piece)
        return self._lines.popleft()

    def interrupt(self) -> None:
        """End it from another thread, also one that waits for the next line just now. Never raises."""
        connection = getattr(self._response, "connection", None)
        raw = getattr(connection, "sock", None)
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if raw is not None:
                # Not SSLSocket's own, which would take the TLS state from under the reading thread.
                socket.socket.shutdown(raw, socket.SHUT_RDWR)
            else:
                self._response.shutdown()

    def close(self) -> None:
        """Give the connection up: what it still would say is not wanted."""
        with contextlib.suppress(OSError, ValueError):
            self._response.close()

    def _take(self, piece: bytes) -> None:
        *whole, rest = piece.split(b"\n")
        for end in whole:
            line = b"".join((*self._unfinished, end))
            self._unfinished.clear()
            if line.strip():
                self._lines.append(line)
        if rest:
            self._unfinished.append(rest)
