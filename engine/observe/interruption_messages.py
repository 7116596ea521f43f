"""EventBridge's messages about instances that AWS takes away, as values. What arrives is data from outside.

Sources: the EC2 user guide on spot interruption notices, rebalance recommendations, instance state changes and
interruptible capacity reservations, and the AWS Health user guide on its events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from engine.model.interruption import Interruption, InterruptionKind
from engine.observe.json_fields import BrokenObject, Json, mapping, moment, objects, shown, text

# EC2 gives a spot instance this long from its notice on.
_SPOT_NOTICE = timedelta(minutes=2)
_ENDING_STATES = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


def read_message(body: str) -> tuple[Interruption, ...]:
    """What one message says, an interruption for each instance that it is about; ``()`` where it announces nothing.

    Raises BrokenObject for what is no message of a kind that is known here.
    """
    try:
        event = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BrokenObject(f"it is {shown(body)}, expected JSON ({type(error).__name__})") from None
    if not isinstance(event, dict):
        raise BrokenObject(f"it is {shown(event)}, expected an object")
    source, kind = text(event, "source"), text(event, "detail-type")
    if (source, kind) not in _READERS:
        raise BrokenObject(f"it is of source {shown(source)} and detail-type {shown(kind)}, which nothing here reads")
    return _READERS[source, kind](event)


def _spot(event: Json) -> tuple[Interruption, ...]:
    action = text(mapping(event, "detail"), "instance-action")
    at = moment(event, "time")
    return (Interruption(InterruptionKind.SPOT, _instance(event), at, at + _SPOT_NOTICE, action),)


def _rebalance(event: Json) -> tuple[Interruption, ...]:
    return (Interruption(InterruptionKind.REBALANCE, _instance(event), moment(event, "time")),)


def _state(event: Json) -> tuple[Interruption, ...]:
    instance, state = _instance(event), text(mapping(event, "detail"), "state")
    if state not in _ENDING_STATES:
        return ()
    return (Interruption(InterruptionKind.STATE_CHANGE, instance, moment(event, "time"), detail=state),)


def _reservation(event: Json) -> tuple[Interruption, ...]:
    detail = mapping(event, "detail")
    told = detail.get("instance-termination-time")
    deadline = moment(detail, "instance-termination-time") if told else None
    return (Interruption(InterruptionKind.RESERVATION, _instance(event), moment(event, "time"), deadline),)


def _health(event: Json) -> tuple[Interruption, ...]:
    """Scheduled changes of EC2 that are not over yet; all else of AWS Health is for people."""
    detail = mapping(event, "detail")
    is_ours = text(detail, "service") == "EC2" and text(detail, "eventTypeCategory") == "scheduledChange"
    if not is_ours or text(detail, "statusCode") == "closed":
        return ()
    at, code = moment(event, "time"), text(detail, "eventTypeCode")
    starts = _mail_date(detail, "startTime")
    named = (text(each, "entityValue") for each in objects(detail, "affectedEntities"))
    return tuple(
        Interruption(InterruptionKind.MAINTENANCE, instance, at, starts, code)
        for instance in sorted({name for name in named if name.startswith("i-")})
    )


def _instance(event: Json) -> str:
    instance = text(mapping(event, "detail"), "instance-id")
    if not instance:
        raise BrokenObject("detail.instance-id is missing")
    return instance


def _mail_date(holder: Json, key: str) -> datetime | None:
    """AWS Health writes ``Sat, 05 Jun 2026 15:10:09 GMT``. Raises BrokenObject; None where nothing is written."""
    written = text(holder, key)
    if not written:
        return None
    try:
        parsed = parsedate_to_datetime(written)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return moment(holder, key)


_EC2, _HEALTH = "aws.ec2", "aws.health"
_READERS: Mapping[tuple[str, str], Callable[[Json], tuple[Interruption, ...]]] = {
    (_EC2, "EC2 Spot Instance Interruption Warning"): _spot,
    (_EC2, "EC2 Instance Rebalance Recommendation"): _rebalance,
    (_EC2, "EC2 Instance State-change Notification"): _state,
    (_EC2, "EC2 Capacity Reservation Instance Interruption Warning"): _reservation,
    # The user guide has both names.
    (_EC2, "EC2 Interruptible Capacity Reservation Instance Interruption Warning"): _reservation,
    (_HEALTH, "AWS Health Event"): _health,
}
