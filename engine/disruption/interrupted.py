"""Interrupted: AWS takes the machine away, or is about to.

What a message said, what state EC2 shows the instance in, and when the capacity block that it runs in ends. As with
Karpenter the node leaves at once, whatever it is that comes (pkg/controllers/interruption of its AWS provider), and a
capacity block's nodes leave 40 minutes before its end. A recommendation to rebalance is followed where the pool wants.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from engine.disruption.involuntary import Cause
from engine.model.claim import Claim
from engine.model.interruption import Interruption, InterruptionKind
from engine.model.node import Instance, InstanceState
from engine.model.policy import NodePool, OnRebalance
from engine.model.reason import DisruptionReason
from engine.model.reservation import BLOCK_CLOSES_BEFORE_END, CapacityReservation, ReservationKind

_ENDING = (InstanceState.STOPPING, InstanceState.STOPPED)
_WORDS = {
    InterruptionKind.SPOT: "EC2 takes its spot capacity back",
    InterruptionKind.RESERVATION: "EC2 takes its slot of the capacity reservation back",
    InterruptionKind.MAINTENANCE: "AWS has scheduled maintenance",
    InterruptionKind.REBALANCE: "EC2 recommends to rebalance",
}


def is_heeded(told: Interruption, pool: NodePool | None) -> bool:
    """Whether a message alone makes a machine of the pool leave. None: no file names the pool any more."""
    if told.kind is InterruptionKind.REBALANCE:
        return pool is not None and pool.on_rebalance is OnRebalance.REPLACE
    return told.kind in _WORDS


def interrupted(
    claim: Claim,
    pool: NodePool | None,
    instance: Instance | None,
    told: Interruption | None,
    reservations: Iterable[CapacityReservation],
    now: datetime,
) -> Cause | None:
    """Why the machine leaves; None: nothing takes it. ``told`` is the message about it that counts."""
    if instance is not None and instance.state in _ENDING:
        since = told.at if told is not None else now
        return _cause(f"instance {instance.id} is {instance.state.value}", since, is_silent=True)
    if told is not None and is_heeded(told, pool):
        return _cause(_words(told), told.at)
    block = _block_of(claim, reservations)
    if block is not None and block.ends_at is not None and now >= block.ends_at - BLOCK_CLOSES_BEFORE_END:
        return _cause(
            f"capacity block {block.id} ends at {block.ends_at:%H:%M} UTC", block.ends_at - BLOCK_CLOSES_BEFORE_END
        )
    return None


def _words(told: Interruption) -> str:
    what = _WORDS[told.kind]
    detail = f" ({told.detail})" if told.detail else ""
    return f"{what}{detail}" + (f" at {told.deadline:%Y-%m-%d %H:%M} UTC" if told.deadline is not None else "")


def _block_of(claim: Claim, reservations: Iterable[CapacityReservation]) -> CapacityReservation | None:
    """The capacity block that the machine was launched in, while EC2 shows it; that it shows none proves nothing."""
    inputs = claim.inputs
    if inputs.capacity_reservation_kind is not ReservationKind.CAPACITY_BLOCK:
        return None
    return next((each for each in reservations if each.id == inputs.capacity_reservation_id), None)


def _cause(rule: str, since: datetime, *, is_silent: bool = False) -> Cause:
    return Cause(DisruptionReason.INTERRUPTED, rule, since, is_silent)
