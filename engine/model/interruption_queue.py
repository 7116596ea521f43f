"""The queue of AWS's interruption messages that an environment makes, and the EventBridge rules that feed it."""

from __future__ import annotations

import re

from attrs import frozen

from engine.model.canonical import digest

# EventBridge's longest name of a rule; a queue may have a longer one.
LONGEST_NAME = 64
_DIGEST_DIGITS = 10
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")

# A message about a machine that is older than this is about one that is gone.
RETENTION_SECONDS = 300


@frozen
class Feed:
    """One rule on the default event bus: what it is called within an environment, and the events that it passes on."""

    name: str
    source: str
    detail_type: str


FEEDS = (
    Feed("spot", "aws.ec2", "EC2 Spot Instance Interruption Warning"),
    Feed("rebalance", "aws.ec2", "EC2 Instance Rebalance Recommendation"),
    Feed("state-change", "aws.ec2", "EC2 Instance State-change Notification"),
    Feed("reservation", "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
    Feed("health", "aws.health", "AWS Health Event"),
)


def queue_name(environment: str) -> str:
    """The name of the queue that this environment makes."""
    return _name(environment, "interruptions")


def rule_name(environment: str, feed: Feed) -> str:
    """The name of the environment's rule that passes this on."""
    return _name(environment, feed.name)


def _name(environment: str, what: str) -> str:
    """`nodewright-ENV-WHAT`; where AWS takes that for no name, what is left of it and a digest of the environment's."""
    plain = _NOT_IN_A_NAME.sub("-", environment)
    longest = LONGEST_NAME - len("nodewright--") - len(what)
    if plain != environment or len(plain) > longest:
        plain = f"{plain[: longest - _DIGEST_DIGITS - 1]}-{digest(environment)[:_DIGEST_DIGITS]}"
    return f"nodewright-{plain}-{what}"
