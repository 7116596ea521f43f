"""The queue of AWS's interruption messages and what feeds it, declared where the environment has them made."""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from engine.converge.ground import PartsMaker, owned_tags
from engine.model.environment import Environment
from engine.model.interruption_queue import FEEDS, RETENTION_SECONDS, Feed, rule_name

# Whose messages the queue takes: EventBridge's, and SQS's own, which it sends when messages are moved between queues.
_SENDERS = ("events.amazonaws.com", "sqs.amazonaws.com")
_TARGET = "queue"


def lay_interruption_queue(
    parts: PartsMaker, name: str, environment: Environment, options: pulumi.ResourceOptions
) -> None:
    """Name to `parts` the queue of that name, who may write to it, and a rule for each kind of message."""
    queue = parts.make(
        aws.sqs.Queue,
        name,
        options,
        name=name,
        message_retention_seconds=RETENTION_SECONDS,
        sqs_managed_sse_enabled=True,
        tags=owned_tags(environment, name),
    )
    policy = parts.make(aws.sqs.QueuePolicy, name, options, queue_url=queue.id, policy=_written_for(queue.arn))
    # Until the queue takes what a rule sends, EventBridge would drop it.
    after_policy = pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=[policy]))
    for feed in FEEDS:
        fed_by = rule_name(environment.name, feed)
        rule = parts.make(
            aws.cloudwatch.EventRule,
            fed_by,
            options,
            name=fed_by,
            description=f"{feed.detail_type}, for {name}",
            event_pattern=_pattern(feed),
            tags=owned_tags(environment, fed_by),
        )
        parts.make(aws.cloudwatch.EventTarget, fed_by, after_policy, rule=rule.name, arn=queue.arn, target_id=_TARGET)


def _pattern(feed: Feed) -> str:
    return json.dumps({"source": [feed.source], "detail-type": [feed.detail_type]})


def _written_for(arn: pulumi.Input[str]) -> pulumi.Input[str]:
    """A part that is looked up instead of made tells its ARN at once, or not at all."""
    return arn.apply(_queue_policy) if isinstance(arn, pulumi.Output) else _queue_policy(str(arn))


def _queue_policy(arn: str) -> str:
    statements = [
        {
            "Sid": "EventBridge",
            "Effect": "Allow",
            "Principal": {"Service": list(_SENDERS)},
            "Action": "sqs:SendMessage",
            "Resource": arn,
        },
        {
            "Sid": "EncryptedOnly",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": arn,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
