"""One kind of an API server in memory, with a past: lists by small pages, watches from a version, and ways to fail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import Factory, define

from engine.observe.api_server import refusal
from engine.observe.failure import ObservationFailed

PAGE = 2


@define
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@define
class Stream(Iterator[bytes]):
    lines: list[bytes]
    breaks: str
    clock: Clock
    silence: float
    is_closed: bool = False
    is_interrupted: bool = False

    def __next__(self) -> bytes:
        if self.lines and not self.is_interrupted:
            return self.lines.pop(0)
        if self.breaks == "silence":
            self.clock.seconds += self.silence
        if self.breaks:
            raise ObservationFailed(f"the watch broke: {self.breaks}")
        raise StopIteration

    def interrupt(self) -> None:
        self.is_interrupted = True

    def close(self) -> None:
        self.is_closed = True


@define
class WatchedServer:
    """``breaks`` says how the next watches end (empty is cleanly); ``answers`` are statuses of the next requests.

    An answer of 0 is no answer, one of 200 the real one. ``extra`` are lines after a watch's events.
    """

    clock: Clock = Factory(Clock)
    version: int = 1000
    objects: dict[str, dict[str, Any]] = Factory(dict)
    past: list[tuple[int, str, dict[str, Any]]] = Factory(list)
    oldest: int = 0
    breaks: str = ""
    answers: list[int] = Factory(list)
    extra: list[Any] = Factory(list)
    asked: list[dict[str, str]] = Factory(list)
    watched: list[dict[str, str]] = Factory(list)
    shown: set[tuple[str, int]] = Factory(set)
    streams: list[Stream] = Factory(list)
    endpoint: str = "http://127.0.0.1:1"

    def put(self, name: str, value: int) -> None:
        self.version += 1
        told = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = {"metadata": {"name": name, "resourceVersion": str(self.version)}, "value": value}
        self.past.append((self.version, told, self.objects[name]))

    def delete(self, name: str) -> None:
        gone = self.objects.pop(name, None)
        if gone is not None:
            self.version += 1
            metadata = {"name": name, "resourceVersion": str(self.version)}
            self.past.append((self.version, "DELETED", {**gone, "metadata": metadata}))

    def forget(self) -> None:
        """What happened until now is no longer told."""
        self.oldest = self.version
        self.past.clear()

    def restore(self) -> None:
        """As from a backup: other objects, and a version that was long ago."""
        self.version, self.oldest = 10, 0
        self.past.clear()
        self.objects = {name: held for name, held in self.objects.items() if name < "c"}

    def values(self) -> dict[str, int]:
        return {name: held["value"] for name, held in self.objects.items()}

    def ask(self, method: str, path: str, *, query: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        asked = dict(query or {})
        self.asked.append(asked)
        status = self.answers.pop(0) if self.answers else 200
        if status == 0:
            raise ObservationFailed("no answer")
        if status != 200:
            return status, b'{"message": "no"}'
        start = int(asked.get("continue", "0"))
        names = sorted(self.objects)
        items = [self.objects[name] for name in names[start : start + PAGE]]
        self.shown |= {(held["metadata"]["name"], held["value"]) for held in items}
        token = str(start + PAGE) if start + PAGE < len(names) else ""
        metadata = {"resourceVersion": str(self.version), "continue": token}
        return 200, json.dumps({"kind": "PriorityClassList", "metadata": metadata, "items": items}).encode()

    def watch(self, path: str, query: Mapping[str, str], *, silence_seconds: float) -> Stream:
        self.watched.append(dict(query))
        status = self.answers.pop(0) if self.answers else 200
        if status == 0:
            raise ObservationFailed("no answer")
        if status != 200:
            raise refusal(self.endpoint, f"watch of {path}", status, b'{"message": "no"}')
        after = int(query["resourceVersion"])
        events: list[Any] = [{"type": told, "object": held} for at, told, held in self.past if at > after]
        if after < self.oldest:
            events = [{"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}]
        self.shown |= {(held["metadata"]["name"], held["value"]) for at, _, held in self.past if at > after}
        lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in (*events, *self.extra)]
        stream = Stream(lines, self.breaks, self.clock, silence_seconds)
        self.streams.append(stream)
        return stream
