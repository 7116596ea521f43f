"""Asked for: a machine on whose node an annotation asks for another goes once that can take its place.

To budgets it has drifted, whatever its inputs: somebody wants it to be launched anew. Base capacity, rules, windows and
what holds pods are asked as for any other that has to go; only a rollout's trial does not hold it, since nothing is
tried. Without the annotation it is none again, until it is marked.
"""

from __future__ import annotations

from datetime import datetime

from engine.disruption.candidate import Candidate
from engine.disruption.holds import Blocked, kept_by
from engine.disruption.machine import Machine
from engine.model.pending import Pending
from engine.model.reason import DisruptionReason
from engine.model.stay import StayReason


def requested(machine: Machine, now: datetime, blocked: Blocked) -> Candidate | StayReason | None:
    """Whether a machine may go because another was asked for in its stead, or why not; None where nobody did."""
    cause = request_of(machine, now)
    if cause is None:
        return None
    kept = kept_by(machine, blocked, has_to_go=True)
    if kept is not None:
        return kept
    return Candidate(machine, cause.reason, f"{machine.pool.name}: {cause.why}", since=cause.since)


def request_of(machine: Machine, now: datetime) -> Pending | None:
    """What somebody asked for, whether or not it may go for it; None where nobody did."""
    node = machine.node
    if node is None or not node.replace_asked:
        return None
    at = node.replace_asked_at
    when = f" at {at:%Y-%m-%d %H:%M:%SZ}" if at is not None else ""
    # A clock that was ahead when it was asked lets nothing begin later than now.
    since = min(at, now) if at is not None else machine.drifted_since or now
    return Pending(DisruptionReason.DRIFTED, f"replacement of {node.name} was asked for by annotation{when}", since)
