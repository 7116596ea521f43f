"""Expired: a machine goes at its pool's expireAfter, under budgets, once another can take its place.

Karpenter lets such nodes go at once, unbudgeted and without another (nodeclaim/expiration), so that a fleet that was
launched in one hour ends in one hour. Here each machine's time comes up to a tenth of expireAfter, and at most a day,
earlier; how much follows from its name alone.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from engine.disruption.candidate import Candidate
from engine.disruption.holds import Blocked, kept_by
from engine.disruption.machine import Machine
from engine.model.duration import format_duration
from engine.model.reason import DisruptionReason
from engine.model.stay import StayReason

_MOST_EARLIER = timedelta(days=1)
_SHARE_EARLIER = 10
_STEPS = 2**16


def expired(machine: Machine, now: datetime, blocked: Blocked) -> Candidate | StayReason | None:
    """Whether a machine may go for its age, or why not; None where it is not old enough."""
    due = expires_at(machine)
    if due is None or now < due:
        return None
    kept = kept_by(machine, blocked, has_to_go=True)
    if kept is not None:
        return kept
    assert machine.pool.expire_after is not None
    rule = f"{machine.pool.name}: expireAfter {format_duration(machine.pool.expire_after)}"
    return Candidate(machine, DisruptionReason.EXPIRED, rule, since=due)


def expires_at(machine: Machine) -> datetime | None:
    """When the machine's time comes; None is never."""
    after = machine.pool.expire_after
    if after is None:
        return None
    content = hashlib.sha256(machine.name.encode()).digest()
    earlier = min(after / _SHARE_EARLIER, _MOST_EARLIER) * int.from_bytes(content[:2]) / _STEPS
    try:
        return machine.claim.created_at + after - earlier
    except OverflowError:
        return None
