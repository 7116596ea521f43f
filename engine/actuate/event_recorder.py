"""Kubernetes events, written beside a pass: never in its way, never its failure."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from threading import Condition, Thread
from typing import Any

from engine.actuate.api_server import ApiConnection
from engine.model.fault import Fault
from engine.model.object_event import EventObject, ObjectEvent

_CONTROLLER = "nodewright.dev/nodewright"
_CONFLICT = 409
# Shorter than the hour that an API server keeps events, so that a state that lasts is always told.
_REPEATED_EVERY_SECONDS = 1800
_BURST = 100
_A_SECOND = 10.0
_LONGEST_NAME = 253
_CLUSTER_WIDE_EVENTS = "default"
_OnFailure = Callable[[int], None]


class EventRecorder:
    """Writes each event once in half an hour, however often it is recorded, and at most ten a second after a burst.

    What is beyond that is left out, and written when it is recorded again later. An event's name follows from its
    content and its half hour, so a run that ends and the next one do not write it twice either.

    One that the API server refuses is not tried again in its half hour; those that it gives no answer to are.
    ``start`` sends from a thread of its own; without it ``record`` sends at once. ``on_failure`` is told how many
    events were not taken; nothing is ever raised.
    """

    def __init__(
        self,
        api_server: ApiConnection,
        environment: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        on_failure: _OnFailure = lambda count: None,
    ) -> None:
        self.failures = 0
        self._api_server = api_server
        self._environment = environment
        self._now = now
        self._on_failure = on_failure
        self._recorded: dict[str, int] = {}
        self._queue: deque[tuple[str, ObjectEvent]] = deque()
        self._changed = Condition()
        self._thread: Thread | None = None
        self._is_closing = False
        self._tokens = float(_BURST)
        self._refilled_at: datetime | None = None

    def start(self) -> None:
        """Send in a thread from now on."""
        self._thread = Thread(target=self._send_until_closed, name="events", daemon=True)
        self._thread.start()

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Send what is left, for as long as that; may be called twice."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
            self._thread = None

    def record(self, events: Iterable[ObjectEvent]) -> None:
        """Have these events written, those apart that were written lately."""
        now = self._now()
        with self._changed:
            self._refill(now)
            self._forget(now)
            for event in events:
                name, half_hour = _name(event, now)
                if self._tokens >= 1 and name not in self._recorded:
                    self._tokens -= 1
                    self._recorded[name] = half_hour
                    self._queue.append((name, event))
            self._changed.notify_all()
        if self._thread is None:
            self._send_queued()

    def _refill(self, now: datetime) -> None:
        if self._refilled_at is not None:
            passed = max((now - self._refilled_at).total_seconds(), 0.0)
            self._tokens = min(self._tokens + passed * _A_SECOND, float(_BURST))
        self._refilled_at = now

    def _forget(self, now: datetime) -> None:
        """A name of a half hour that is over is never made again."""
        over = int(now.timestamp()) // _REPEATED_EVERY_SECONDS - 1
        if any(half_hour < over for half_hour in self._recorded.values()):
            self._recorded = {name: at for name, at in self._recorded.items() if at >= over}

    def _send_until_closed(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._is_closing)
                if not self._queue:
                    return
            self._send_queued()

    def _send_queued(self) -> None:
        while True:
            with self._changed:
                if not self._queue:
                    return
                name, event = self._queue.popleft()
            try:
                is_taken = self._is_taken(name, event)
            except Fault:
                self._give_up(name)
            else:
                if not is_taken:
                    self._fail(1)

    def _is_taken(self, name: str, event: ObjectEvent) -> bool:
        namespace = event.about.namespace or _CLUSTER_WIDE_EVENTS
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        status, _ = self._api_server.ask("POST", path, body=self._written(name, namespace, event))
        # A runner before this one wrote it already.
        return 200 <= status <= 299 or status == _CONFLICT

    def _give_up(self, name: str) -> None:
        """No answer: those behind it would only wait for the same. All may be recorded again."""
        with self._changed:
            lost = [name, *(waiting for waiting, _ in self._queue)]
            self._queue.clear()
            for each in lost:
                self._recorded.pop(each, None)
        self._fail(len(lost))

    def _fail(self, count: int) -> None:
        self.failures += count
        self._on_failure(count)

    def _written(self, name: str, namespace: str, event: ObjectEvent) -> dict[str, Any]:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": f"{self._now().astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
            "reportingController": _CONTROLLER,
            "reportingInstance": f"nodewright-{self._environment}"[:128],
            "action": "Provisioning" if event.about.kind == "Pod" else "Disrupting",
            "reason": event.reason.value,
            "type": event.type.value,
            "note": event.message,
            "regarding": _reference(event.about),
        }


def _name(event: ObjectEvent, now: datetime) -> tuple[str, int]:
    """The event's name, and the half hour that it is of. Half hours begin apart, lest all are written anew at once."""
    about = event.about
    of = hashlib.sha256(f"{about.kind} {about.namespace}/{about.name} {about.uid}".encode())
    offset = int.from_bytes(of.digest()[:4], "big") % _REPEATED_EVERY_SECONDS
    half_hour = (int(now.timestamp()) - offset) // _REPEATED_EVERY_SECONDS
    of.update(f" {event.reason.value} {event.message} {half_hour}".encode())
    digest = of.hexdigest()[:16]
    return f"{about.name[: _LONGEST_NAME - len(digest) - 1]}.{digest}", half_hour


def _reference(about: EventObject) -> dict[str, str]:
    reference = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
    }
    return {key: value for key, value in reference.items() if value}
