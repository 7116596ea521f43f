"""Unhealthy: a node that has said for too long that something of it does not work.

Conditions and times are those of Karpenter's node repair (RepairPolicies of its AWS provider). Its clock is the
condition's last transition, which a reason that flaps sets anew each time; here the clock is kept in the ledger, and
stops only once the node has been seen well for a while. The condition's own time starts it, so that a ledger that was
lost costs no more than flapping did.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import frozen

from engine.disruption.involuntary import Cause
from engine.model.duration import format_duration
from engine.model.ledger import Illness
from engine.model.node import READY, Node, NodeCondition
from engine.model.reason import DisruptionReason

WELL_AGAIN_AFTER = timedelta(minutes=5)


@frozen
class _Tolerated:
    """For how long a node may say ``statuses`` of a condition."""

    statuses: tuple[str, ...]
    time: timedelta


_HALF_AN_HOUR = timedelta(minutes=30)
_TOLERATED = {
    READY: _Tolerated(("False", "Unknown"), _HALF_AN_HOUR),
    "AcceleratedHardwareReady": _Tolerated(("False",), timedelta(minutes=10)),
    "StorageReady": _Tolerated(("False",), _HALF_AN_HOUR),
    "NetworkingReady": _Tolerated(("False",), _HALF_AN_HOUR),
    "KernelReady": _Tolerated(("False",), _HALF_AN_HOUR),
    "ContainerRuntimeReady": _Tolerated(("False",), _HALF_AN_HOUR),
}


def illnesses(before: Mapping[str, Illness], node: Node, now: datetime) -> Mapping[str, Illness]:
    """The node's clocks as of ``now``, by condition, in name order. A condition that is not shown keeps its clock."""
    if not before and all(each.status == "True" for each in node.conditions):
        # A thousand nodes are such, in every pass.
        return before
    shown = {each.type: each for each in node.conditions if each.type in _TOLERATED}
    found = {
        kind: _illness(before.get(kind), shown.get(kind), now, is_marked=node.is_marked)
        for kind in sorted({*before, *shown})
    }
    return {kind: each for kind, each in found.items() if each is not None}


def is_ill(clocks: Mapping[str, Illness]) -> bool:
    """Whether any of the conditions speaks of an illness at this moment."""
    return any(each.well_since is None for each in clocks.values())


def unhealthy(clocks: Mapping[str, Illness], node: Node, now: datetime) -> Cause | None:
    """What has lasted for too long, the longest first; None: nothing has.

    A marked node that is well again goes all the same: nothing takes a mark off.
    """
    lasting = [
        (each.since, kind)
        for kind, each in clocks.items()
        if _has_lasted(kind, each, now) and (each.well_since is None or node.is_marked)
    ]
    if not lasting:
        return None
    since, kind = min(lasting)
    # Where the kubelet itself is silent, pods that are asked to leave never do.
    is_silent = any(each == READY for _, each in lasting) and not node.ready
    rule = f"{condition_words(node, kind)} for longer than {format_duration(_TOLERATED[kind].time)}"
    return Cause(DisruptionReason.UNHEALTHY, rule, since, is_silent)


def condition_words(node: Node, kind: str) -> str:
    """``Ready Unknown``: a condition as the node shows it now."""
    return next((f"{kind} {each.status}" for each in node.conditions if each.type == kind), kind)


def _illness(
    before: Illness | None, condition: NodeCondition | None, now: datetime, *, is_marked: bool
) -> Illness | None:
    if condition is None:
        return before
    tolerated = _TOLERATED[condition.type]
    told = min(condition.since or now, now)
    if condition.status in tolerated.statuses:
        return Illness(min(before.since, told) if before is not None else told)
    if before is None:
        return None
    well_since = min(before.well_since or max(told, before.since), now)
    if now - well_since >= WELL_AGAIN_AFTER and not (is_marked and _has_lasted(condition.type, before, now)):
        return None
    return Illness(before.since, well_since)


def _has_lasted(kind: str, illness: Illness, now: datetime) -> bool:
    return kind in _TOLERATED and (illness.well_since or now) - illness.since >= _TOLERATED[kind].time
