"""Expired: a machine goes at its pool's expireAfter, under budgets, once another can take its place.

Karpenter lets such nodes go at once, unbudgeted and without another (nodeclaim/expiration), so that a fleet that was
launched in one hour ends in one hour. Here each machine's time comes up to a tenth of expireAfter, and at most a day,
earlier; how much follows from its name alone.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from functools import lru_cache

from engine.disruption.candidate import Candidate
from engine.disruption.holds import Blocked, kept_by
from engine.disruption.machine import Machine
from engine.model.duration import format_duration
from engine.model.pending import Pending
from engine.model.reason import DisruptionReason
from engine.model.stay import StayReason

_MOST_EARLIER = timedelta(days=1)
_SHARE_EARLIER = 10
_STEPS = 2**16


def expired(machine: Machine, now: datetime, blocked: Blocked) -> Candidate | StayReason | None:
    """Whether a machine may go for its age, or why not; None where it is not old enough."""
    cause = expiry_of(machine, now)
    if cause is None:
        return None
    kept = kept_by(machine, blocked, has_to_go=True)
    if kept is not None:
        return kept
    return Candidate(machine, cause.reason, f"{machine.pool.name}: {cause.why}", since=cause.since)


def expiry_of(machine: Machine, now: datetime) -> Pending | None:
    """That its time has come, whether or not it may go for it; None before that."""
    due, after = expires_at(machine), machine.pool.expire_after
    if due is None or after is None or now < due:
        return None
    return Pending(DisruptionReason.EXPIRED, f"expireAfter {format_duration(after)}", since=due)


def expires_at(machine: Machine) -> datetime | None:
    """When the machine's time comes; None is never."""
    after = machine.pool.expire_after
    if after is None:
        return None
    created_at = machine.claim.created_at
    if machine.node is not None:
        # It is made by the API server's clock: its claim cannot be younger, unless the clock was wrong that dated it.
        created_at = min(created_at, machine.node.created_at)
    return _comes_at(machine.name, created_at, after)


@lru_cache(maxsize=2**14)
def _comes_at(name: str, created_at: datetime, after: timedelta) -> datetime | None:
    """Asked for each machine in every pass."""
    content = hashlib.sha256(name.encode()).digest()
    earlier = min(after / _SHARE_EARLIER, _MOST_EARLIER) * int.from_bytes(content[:2]) / _STEPS
    try:
        return created_at + after - earlier
    except OverflowError:
        return None
