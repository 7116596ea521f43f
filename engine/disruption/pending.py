"""What a machine is to go for, whether it may or not: told of those that stay, beside what keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from engine.disruption.candidate import HAS_TO_GO, Candidate
from engine.disruption.drifted import drift_of
from engine.disruption.expired import expiry_of
from engine.disruption.machine import Machine
from engine.disruption.requested import request_of
from engine.model.pending import Pending
from engine.model.reason import VOLUNTARY_REASONS
from engine.model.refusal import KarpenterOwnsPool
from engine.model.replacement import StandsIn
from engine.model.stay import InUse, StayReason


def pending(machine: Machine, candidates: Iterable[Candidate], now: datetime) -> tuple[Pending, ...]:
    """What it was marked for is first, then what was asked for, drift and expiry, and then what it saves. A reason is
    there twice where it has two causes. ``candidates`` are the machine's own."""
    if isinstance(machine.held, KarpenterOwnsPool):
        return ()
    return tuple(dict.fromkeys(_causes(machine, candidates, now)))


def pressing(causes: tuple[Pending, ...], reason: StayReason) -> tuple[Pending, ...]:
    """Of a machine that is needed, only what it has to go for: nothing is saved without it."""
    if not isinstance(reason, StandsIn | InUse):
        return causes
    return tuple(each for each in causes if each.reason in HAS_TO_GO)


def _causes(machine: Machine, candidates: Iterable[Candidate], now: datetime) -> Iterator[Pending]:
    to_go = [each for each in (request_of(machine, now), drift_of(machine, now), expiry_of(machine, now)) if each]
    begun = machine.going_for if machine.is_marked else None
    if begun in VOLUNTARY_REASONS and begun not in {each.reason for each in to_go}:
        marked_at = machine.node.marked_at if machine.node is not None else None
        yield Pending(begun, "marked before", marked_at or now)
    yield from to_go
    for each in candidates:
        if not each.has_to_go and each.reason is not begun:
            yield Pending(each.reason, each.says, each.since)
