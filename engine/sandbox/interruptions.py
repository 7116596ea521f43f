"""The sandbox's interruptions: the queue that EventBridge would fill, and what AWS would say there of an instance."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

_ACCOUNT = "123456789012"
_NO_CREDENTIALS_NEEDED = "sandbox"
_NOTICE = timedelta(minutes=2)


class Kind(str, Enum):
    """What happens to the instance."""

    SPOT = "spot"
    REBALANCE = "rebalance"
    MAINTENANCE = "maintenance"
    RESERVATION = "reservation"
    STOP = "stop"


def make_queue(endpoint_url: str, region: str, queue: str) -> None:
    """The queue is there after this; messages that it holds stay."""
    _client("sqs", endpoint_url, region).create_queue(QueueName=queue.rsplit("/", 1)[-1])


def interrupt(endpoint_url: str, region: str, queue: str, kind: Kind, instance: str, now: datetime) -> None:
    """Say of an instance what AWS would, in EventBridge's form; to stop it, stop it as well."""
    if kind is Kind.STOP:
        _client("ec2", endpoint_url, region).stop_instances(InstanceIds=[instance])
    put(endpoint_url, region, queue, json.dumps(message(kind, instance, region, now)))


def announce(endpoint_url: str, region: str, queue: str, kind: Kind, instance: str, now: datetime) -> None:
    """The same, to the event bus: it comes to the queue where the rules on it say so."""
    if kind is Kind.STOP:
        _client("ec2", endpoint_url, region).stop_instances(InstanceIds=[instance])
    event = message(kind, instance, region, now)
    entry = {
        "Time": now,
        "Source": event["source"],
        "DetailType": event["detail-type"],
        "Resources": event["resources"],
        "Detail": json.dumps(event["detail"]),
    }
    _client("events", endpoint_url, region).put_events(Entries=[entry])


def stands(endpoint_url: str, region: str, queue: str) -> bool:
    """Whether there is such a queue."""
    sqs = _client("sqs", endpoint_url, region)
    try:
        sqs.get_queue_url(QueueName=queue)
    except sqs.exceptions.QueueDoesNotExist:
        return False
    return True


def put(endpoint_url: str, region: str, queue: str, body: str) -> None:
    """Whatever it is, as one message."""
    sqs = _client("sqs", endpoint_url, region)
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName=queue.rsplit("/", 1)[-1])["QueueUrl"], MessageBody=body)


def message(kind: Kind, instance: str, region: str, now: datetime) -> dict[str, Any]:
    """One of EventBridge's events."""
    source, detail_type, detail = _event(kind, instance, now)
    return {
        "version": "0",
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind.value} {instance} {now.isoformat()}")),
        "detail-type": detail_type,
        "source": source,
        "account": _ACCOUNT,
        "time": _written(now),
        "region": region,
        "resources": [f"arn:aws:ec2:{region}:{_ACCOUNT}:instance/{instance}"],
        "detail": detail,
    }


def _event(kind: Kind, instance: str, now: datetime) -> tuple[str, str, dict[str, Any]]:
    match kind:
        case Kind.SPOT:
            detail = {"instance-id": instance, "instance-action": "terminate"}
            return "aws.ec2", "EC2 Spot Instance Interruption Warning", detail
        case Kind.REBALANCE:
            return "aws.ec2", "EC2 Instance Rebalance Recommendation", {"instance-id": instance}
        case Kind.RESERVATION:
            detail = {
                "instance-id": instance,
                "instance-action": "terminate",
                "instance-termination-time": _written(now + _NOTICE),
            }
            return "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", detail
        case Kind.STOP:
            return "aws.ec2", "EC2 Instance State-change Notification", {"instance-id": instance, "state": "stopping"}
        case Kind.MAINTENANCE:
            return "aws.health", "AWS Health Event", _maintenance(instance, now)


def _maintenance(instance: str, now: datetime) -> dict[str, Any]:
    return {
        "service": "EC2",
        "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
        "eventTypeCategory": "scheduledChange",
        "statusCode": "upcoming",
        "startTime": f"{now + timedelta(days=7):%a, %d %b %Y %H:%M:%S} GMT",
        "affectedEntities": [{"entityValue": instance}],
    }


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _client(service: str, endpoint_url: str, region: str) -> Any:
    import boto3

    return boto3.client(
        service,  # type: ignore[call-overload]
        region_name=region,
        endpoint_url=endpoint_url,
        aws_access_key_id=_NO_CREDENTIALS_NEEDED,
        aws_secret_access_key=_NO_CREDENTIALS_NEEDED,
    )
