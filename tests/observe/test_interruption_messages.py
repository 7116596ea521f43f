"""EventBridge's messages about instances: what each says, and that nothing in one can break its reader."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from engine.model.interruption import Interruption, InterruptionKind
from engine.observe.interruption_messages import read_message
from engine.observe.json_fields import BrokenObject
from tests.builders import NOON, minutes

ID = "i-0123456789abcdef0"


def event(kind: str, detail: dict[str, Any], source: str = "aws.ec2", **more: Any) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "7bf73129-1428-4cd3-a780-95db273d1602",
        "detail-type": kind,
        "source": source,
        "account": "123456789012",
        "time": "2026-11-30T12:00:00Z",
        "region": "us-east-1",
        "resources": [f"arn:aws:ec2:us-east-1b:instance/{ID}"],
        "detail": detail,
        **more,
    }


def health(**more: Any) -> dict[str, Any]:
    detail = {
        "service": "EC2",
        "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
        "eventTypeCategory": "scheduledChange",
        "startTime": "Tue, 01 Dec 2026 09:00:00 GMT",
        "affectedEntities": [{"entityValue": "i-0b"}, {"entityValue": "i-0a"}, {"entityValue": "vol-1"}],
    }
    return event("AWS Health Event", {**detail, **more}, source="aws.health")


SPOT = event("EC2 Spot Instance Interruption Warning", {"instance-id": ID, "instance-action": "terminate"})
REBALANCE = event("EC2 Instance Rebalance Recommendation", {"instance-id": ID})
STATE = event("EC2 Instance State-change Notification", {"instance-id": ID, "state": "stopping"})
RESERVATION = event(
    "EC2 Capacity Reservation Instance Interruption Warning",
    {"instance-id": ID, "instance-action": "terminate", "instance-termination-time": "2026-11-30T12:02:00Z"},
)
EVERY = (SPOT, REBALANCE, STATE, RESERVATION, health())


def read(message: object) -> tuple[Interruption, ...]:
    return read_message(json.dumps(message))


def test_each_kind_of_message_is_read() -> None:
    assert read(SPOT) == (Interruption(InterruptionKind.SPOT, ID, NOON, NOON + minutes(2), "terminate"),)
    assert read(REBALANCE) == (Interruption(InterruptionKind.REBALANCE, ID, NOON),)
    assert read(STATE) == (Interruption(InterruptionKind.STATE_CHANGE, ID, NOON, detail="stopping"),)
    assert read(RESERVATION) == (Interruption(InterruptionKind.RESERVATION, ID, NOON, NOON + minutes(2)),)


def test_scheduled_maintenance_is_about_each_instance_that_it_names_and_says_when() -> None:
    code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    starts = NOON + minutes(21 * 60)
    assert read(health()) == tuple(
        Interruption(InterruptionKind.MAINTENANCE, instance, NOON, starts, code) for instance in ("i-0a", "i-0b")
    )
    assert read(health(startTime="2026-12-01T09:00:00Z"))[0].deadline == starts
    assert read(health(startTime=None))[0].deadline is None


@pytest.mark.parametrize(
    "message",
    [
        event("EC2 Instance State-change Notification", {"instance-id": ID, "state": "running"}),
        health(eventTypeCategory="issue"),
        health(service="RDS"),
        health(statusCode="closed"),
    ],
)
def test_what_takes_no_machine_away_says_nothing_and_is_no_fault(message: dict[str, Any]) -> None:
    assert read(message) == ()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("", "expected JSON"),
        ("{", "expected JSON"),
        ("[" * 100_000, "expected JSON"),
        ("[1]", "expected an object"),
        ("{}", "of source '' and detail-type ''"),
        (json.dumps(event("EC2 Fleet State Change", {})), "detail-type 'EC2 Fleet State Change'"),
        (json.dumps(event("EC2 Instance Rebalance Recommendation", {})), "detail.instance-id is missing"),
        (json.dumps({**REBALANCE, "time": "yesterday"}), "time is 'yesterday'"),
        (json.dumps({**REBALANCE, "detail": [1]}), "detail is [1], expected an object"),
        (json.dumps(health(startTime="soon")), "startTime is 'soon'"),
    ],
)
def test_what_cannot_be_read_says_what_was_expected(body: str, told: str) -> None:
    with pytest.raises(BrokenObject) as broken:
        read_message(body)
    assert told in str(broken.value)


ODD = (
    None,
    True,
    0,
    -1,
    1e300,
    "",
    "x",
    "i-",
    "2026-13-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    [],
    {},
    [{}],
    "\ud800",
)


def mutated(value: Any, chance: random.Random) -> Any:
    """The value with something in it replaced, dropped or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        rest = {each: value[each] for each in value if each != key}
        return rest if chance.random() < 0.2 else {**rest, key: mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.7:
        return [*value, mutated(value[0], chance)]
    return chance.choice(ODD)


def test_no_mutation_of_a_message_raises_anything_but_that_it_is_broken() -> None:
    chance = random.Random(11)
    outcomes = {"read": 0, "broken": 0}
    for number in range(20_000):
        message: Any = EVERY[number % len(EVERY)]
        for _ in range(chance.randint(1, 3)):
            message = mutated(message, chance)
        body = json.dumps(message)
        if chance.random() < 0.1:
            cut = chance.randrange(len(body) + 1)
            body = body[:cut] + chance.choice(["", "\0", "]", '"', "\u2028"]) + body[cut + 1 :]
        try:
            for each in read_message(body):
                assert each.instance_id
                assert each.at.tzinfo is not None
            outcomes["read"] += 1
        except BrokenObject:
            outcomes["broken"] += 1
    assert min(outcomes.values()) > 1_000
