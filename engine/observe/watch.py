"""One kind kept current: listed whole, then watched from there, and listed again where anything is in doubt.

The protocol is the API server's (Kubernetes documentation, "API concepts", efficient detection of changes).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from attrs import frozen

from engine.observe.failure import ObservationFailed, Refused
from engine.observe.kinds import Kind
from engine.observe.kubernetes import Key, Seen
from engine.observe.listing import GONE, Answering, newest_version, whole_list

_FORBIDDEN, _NOT_SERVED = 403, 404


class Stream(Protocol):
    def __iter__(self) -> Iterator[bytes]: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


class Watchable(Answering, Protocol):
    """An API server as ApiServer reaches it."""

    def watch(self, path: str, query: Mapping[str, str], *, silence_seconds: float) -> Stream: ...


class Sink(Protocol):
    """Where one kind's objects are kept, and what is thought of them."""

    def see(self, raw: Any, position: int) -> Seen: ...
    def is_empty(self) -> bool: ...
    def replace(self, all_seen: Iterable[Seen]) -> None: ...
    def put(self, seen: Seen) -> None: ...
    def remove(self, key: Key) -> None: ...
    def heard(self) -> None: ...

    def trust(self, rests: bool = False) -> None:
        """It is whole. ``rests``: nothing more is heard of it for a while, which is no sign of anything."""

    def doubt(self, why: str) -> None:
        """It may not be what the server holds: no decision may be made from it."""

    def excuse(self, why: str) -> None:
        """It cannot be read, and decisions are made without it; ``why`` is shown."""


@frozen
class Patience:
    """``silence``: a watch from which nothing came for so long, not even a bookmark, is given up and listed again.

    ``failing``: a kind that is not needed stops no decision once it failed for so long. ``refused`` and ``absent``: how
    long until a kind that was refused, or that the server does not know, is asked for again: the latter soon, since a
    Karpenter may be installed at any time, and until it is seen two would act on its machines. All in seconds.

    API servers send a bookmark about once a minute; under load one was seen to be left out (1.37).
    """

    silence: float = 180.0
    failing: float = 120.0
    refused: float = 60.0
    absent: float = 10.0
    watch: float = 240.0
    first_pause: float = 0.1
    longest_pause: float = 15.0


class _Doubt(Exception):
    """What was told cannot be right, so the whole must be listed again."""


class KindWatch:
    """Follows one kind by ``step`` after ``step``, in one thread. ``interrupt`` may come from another one."""

    def __init__(
        self,
        server: Watchable,
        kind: Kind,
        sink: Sink,
        patience: Patience = Patience(),
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._server = server
        self._kind = kind
        self._sink = sink
        self._patience = patience
        self._monotonic = monotonic
        self._jitter = jitter
        # The resourceVersion up to which all is known; empty: it must be listed.
        self._version = ""
        self._failures = 0
        self._failing_since: float | None = None
        self._heard_at = monotonic()
        self._stream: Stream | None = None
        self._interrupted = False

    def step(self) -> float:
        """List if need be, and follow one watch to its end. Returns the seconds to wait before the next. Never raises.

        An error of our own stops nothing either: it puts the kind in doubt, which is said.
        """
        try:
            self._know_all()
            self._follow()
        except _Doubt as doubt:
            return self._begin_again(str(doubt))
        except Refused as refusal:
            return self._after_refusal(refusal)
        except ObservationFailed as failure:
            return self._after_failure(str(failure))
        except Exception as error:
            self._version = ""
            return self._after_failure(f"reading the {self._kind.name} failed with {type(error).__name__}: {error}")
        return 0.0 if self._failures == 0 else self._pause()

    def interrupt(self) -> None:
        """End the step under way soon, and all later ones."""
        self._interrupted = True
        if self._stream is not None:
            self._stream.interrupt()

    def _know_all(self) -> None:
        what, path, selector = self._kind.name, self._kind.path, self._kind.selector
        if self._version and _is_older(newest_version(self._server, what, path, selector), self._version):
            # As after a restore from a backup: a watch from the newer version would skip what happens until then.
            self._version = ""
            self._sink.doubt(f"the server's {what} went back in time; they are being listed again")
        if not self._version:
            all_seen, version = whole_list(self._server, what, path, selector, self._sink.see)
            if not version:
                raise ObservationFailed(f"the list of {what} has no resourceVersion to watch from")
            self._sink.replace(all_seen)
            self._version = version
            self._trust()

    def _follow(self) -> None:
        stream = self._stream = self._server.watch(
            self._kind.path, self._watch_query(), silence_seconds=self._patience.silence
        )
        began_at = self._monotonic()
        try:
            if self._interrupted:
                stream.interrupt()
            self._trust()
            said = False
            for line in stream:
                said = True
                self._failures = 0
                self._trust_heard()
                self._take(line)
            # A server that ends each watch at once is not asked without a pause.
            lived = self._monotonic() - began_at > self._patience.longest_pause
            self._failures = 0 if said or lived else self._failures + 1
        finally:
            self._stream = None
            stream.close()

    def _watch_query(self) -> dict[str, str]:
        # Spread, so that not all kinds and all runners come back at the same moment.
        seconds = round(self._patience.watch * (1 + self._jitter() / 4))
        query = {
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(seconds),
        }
        return query | ({"fieldSelector": self._kind.selector} if self._kind.selector else {})

    def _take(self, line: bytes) -> None:
        told, held = _event(line)
        if told == "ERROR":
            self._error(held)
        version = _version_of(held)
        if not version or told not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise _Doubt(f"an event of the {self._kind.name} cannot be understood; they are being listed again")
        if _is_older(version, self._version):
            raise _Doubt(f"the watch of {self._kind.name} went back in time; they are being listed again")
        if told != "BOOKMARK":
            self._apply(told, held)
        self._version = version

    def _apply(self, told: str, held: Mapping[str, Any]) -> None:
        if not _has_name(held):
            raise _Doubt(f"an event of the {self._kind.name} names no object; they are being listed again")
        seen = self._sink.see(held, 0)
        if told == "DELETED":
            self._sink.remove(seen.key)
        else:
            self._sink.put(seen)

    def _error(self, status: Mapping[str, Any]) -> None:
        if status.get("code") == GONE:
            raise _Doubt(f"the watch of {self._kind.name} fell behind; they are being listed again")
        raise ObservationFailed(f"the watch of {self._kind.name} ended with {status.get('message') or status}")

    def _trust_heard(self) -> None:
        self._heard_at = self._monotonic()
        self._sink.heard()

    def _trust(self, rests: bool = False) -> None:
        self._heard_at = self._monotonic()
        self._failing_since = None
        self._sink.trust(rests)

    def _begin_again(self, why: str) -> float:
        self._version = ""
        self._sink.doubt(why)
        return self._pause_after_failure()

    def _after_refusal(self, refusal: Refused) -> float:
        if refusal.status == GONE:
            return self._begin_again(f"the watch of {self._kind.name} fell behind; they are being listed again")
        if refusal.status == _FORBIDDEN and not self._kind.is_needed:
            self._sink.excuse(str(refusal))
            return self._patience.refused
        if refusal.status == _NOT_SERVED and not self._kind.is_needed:
            return self._after_absence(refusal)
        return self._after_failure(str(refusal))

    def _after_absence(self, refusal: Refused) -> float:
        """An API server that just started may not know a kind yet that it holds objects of."""
        if not self._sink.is_empty() and not self._fails_for_long():
            return self._after_failure(str(refusal))
        self._version = ""
        self._sink.replace(())
        self._trust(rests=True)
        return self._patience.absent

    def _after_failure(self, why: str) -> float:
        if self._version and self._monotonic() - self._heard_at >= self._patience.silence:
            self._version = ""
        pause = self._pause_after_failure()
        if self._fails_for_long() and not self._kind.is_needed:
            self._sink.excuse(why)
        elif self._failures > 1 or not self._version:
            # A watch that broke is taken up again at once; only when that fails too is anything in doubt.
            self._sink.doubt(why)
        return pause

    def _fails_for_long(self) -> bool:
        now = self._monotonic()
        if self._failing_since is None:
            self._failing_since = now
        return now - self._failing_since >= self._patience.failing

    def _pause_after_failure(self) -> float:
        self._failures += 1
        return self._pause()

    def _pause(self) -> float:
        longest = min(self._patience.longest_pause, self._patience.first_pause * 2.0 ** min(self._failures - 1, 20))
        return longest * (0.5 + self._jitter() / 2)


def _event(line: bytes) -> tuple[str, Mapping[str, Any]]:
    try:
        event = json.loads(line)
        told, held = event["type"], event["object"]
    except (ValueError, KeyError, TypeError):
        raise _Doubt("an event is no event in JSON; all is being listed again") from None
    if not isinstance(told, str) or not isinstance(held, dict):
        raise _Doubt("an event has no type and object; all is being listed again")
    return told, held


def _version_of(held: Mapping[str, Any]) -> str:
    metadata = held.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""


def _has_name(held: Mapping[str, Any]) -> bool:
    metadata = held.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str) and bool(metadata["name"])


def _is_older(version: str, than: str) -> bool:
    """Whether a resourceVersion is before another one; they are whole numbers that grow."""
    return version.isdigit() and than.isdigit() and int(version) < int(than)
