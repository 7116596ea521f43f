"""Small memory between passes. Losing it costs time, never safety."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import field, frozen

from engine.model.outcome import ClaimOutcome


@frozen
class Unavailable:
    """An offering that refused a launch: out until ``until``; ``refusals`` in a row set the back-off."""

    until: datetime
    refusals: int
    code: str


@frozen
class Ledger:
    """``unavailable`` by Offering.key; ``empty_since`` by claim name; ``instance_ids`` by claim name, once launched.

    ``outcomes`` are the last pass's that still need an answer: launches that were refused or failed.
    ``settled_version`` is the newest document that converge reported settled: its removal records are done with.
    """

    unavailable: Mapping[str, Unavailable] = field(factory=dict)
    empty_since: Mapping[str, datetime] = field(factory=dict)
    instance_ids: Mapping[str, str] = field(factory=dict)
    outcomes: tuple[ClaimOutcome, ...] = ()
    settled_version: int = 0
