"""The Pulumi engine's events, reduced to what deciding an outcome and showing progress need.

The engine writes them as JSON lines (pulumi `apitype.EngineEvent`); what is not read here is passed over, so a new
kind of event or operation costs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import field, frozen

# The engine tells of every resource that it leaves alone, too.
UNTOUCHED = "same"
_COLOUR = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*m")


@frozen
class StepStarted:
    """An operation on one resource begins. `op` is the engine's word: create, update, delete, import, …"""

    urn: str
    op: str
    planning: bool = False


@frozen
class StepDone:
    """It succeeded; `id` is the provider's id of the resource, empty where it has none."""

    urn: str
    op: str
    id: str = ""
    planning: bool = False


@frozen
class StepFailed:
    """It failed. `id` is set when something was made all the same (a partial create)."""

    urn: str
    op: str
    id: str = ""


@frozen
class Remark:
    """Something said, about one resource or, with an empty `urn`, about the whole. `severity`: info, warning, error."""

    urn: str
    severity: str
    message: str


@frozen
class Summary:
    """The last word of an operation. `result` is succeeded, failed or canceled; empty from an older engine."""

    result: str
    changes: Mapping[str, int] = field(factory=dict)
    maybe_corrupt: bool = False


@frozen
class Waiting:
    """Not the engine's: it has not begun yet, and `message` says what is waited for."""

    message: str


Event = StepStarted | StepDone | StepFailed | Remark | Summary | Waiting


@frozen
class Told:
    """All events of one operation in order. `is_complete`: a summary came and no event was lost or unreadable."""

    events: tuple[Event, ...]
    is_complete: bool


class EventReader:
    """Turns the engine's lines into events; remembers whether any was lost."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._last_sequence: int | None = None
        self._is_whole = True

    def read(self, line: str) -> Event | None:
        """The event of a line; None for one that does not matter here, or cannot be read."""
        try:
            raw = json.loads(line)
            event = decoded(raw)
            sequence = int(raw["sequence"])
        except (ValueError, KeyError, TypeError, AttributeError):
            self._is_whole = False
            return None
        if self._last_sequence is not None and sequence != self._last_sequence + 1:
            self._is_whole = False
        self._last_sequence = sequence
        if event is not None:
            self.events.append(event)
        return event

    def told(self) -> Told:
        has_summary = any(isinstance(event, Summary) for event in self.events)
        return Told(tuple(self.events), is_complete=self._is_whole and has_summary)


def decoded(raw: Mapping[str, Any]) -> Event | None:
    """One engine event; None when it is of a kind that is not read here."""
    for kind in ("resourcePreEvent", "resOutputsEvent", "resOpFailedEvent"):
        if kind in raw:
            return _step(kind, raw[kind])
    if "diagnosticEvent" in raw:
        event = raw["diagnosticEvent"]
        severity = event["severity"].partition("#")[0]
        if event.get("ephemeral") or severity == "debug":
            return None
        return Remark(event.get("urn", ""), severity, plain(event["message"]).strip())
    if "errorEvent" in raw:
        return Remark("", "error", plain(raw["errorEvent"]["error"]).strip())
    if "summaryEvent" in raw:
        event = raw["summaryEvent"]
        return Summary(event.get("result", ""), event.get("resourceChanges") or {}, bool(event.get("maybeCorrupt")))
    return None


def errors_by_urn(events: Iterable[Event]) -> dict[str, str]:
    """Each resource's error messages, in order; under the empty URN those that are no resource's."""
    said: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, Remark) and event.severity == "error" and event.message:
            said.setdefault(event.urn, []).append(event.message)
    return {urn: "\n".join(messages) for urn, messages in said.items()}


def plain(message: str) -> str:
    """Without the engine's colour marks."""
    return _COLOUR.sub("", message)


def _step(kind: str, event: Mapping[str, Any]) -> Event | None:
    metadata, planning = event["metadata"], bool(event.get("planning"))
    urn, op = metadata["urn"], metadata["op"]
    if op == UNTOUCHED:
        return None
    if kind == "resourcePreEvent":
        return StepStarted(urn, op, planning)
    if kind == "resOutputsEvent":
        return StepDone(urn, op, _resource_id(metadata), planning)
    return StepFailed(urn, op, _resource_id(metadata))


def _resource_id(metadata: Mapping[str, Any]) -> str:
    state = metadata.get("new") or metadata.get("old") or {}
    return str(state.get("id") or "")
