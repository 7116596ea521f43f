"""What the Pulumi program declares for a queue of interruptions that the environment makes."""

from __future__ import annotations

import json

from engine.converge import urns
from engine.converge.ground import foundation_digest
from engine.converge.program import declare
from engine.converge.urns import Urns
from engine.model import labels
from engine.model.interruption_queue import LONGEST_NAME, Feed, queue_name, rule_name
from tests.converge.documents import claim, document, environment, foundation
from tests.converge.programs import Registered, registered_by

NAMES = Urns("test")
QUEUE = "nodewright-test-interruptions"
OWNS = document(claim("gpu-1"), on=foundation(interruption_queue=QUEUE))
BILLED = environment(tags={"cost": "1"})


def declared() -> dict[str, Registered]:
    return registered_by(lambda: declare(OWNS, BILLED))


def of_type(made: dict[str, Registered], kind: str) -> dict[str, Registered]:
    return {one.name: one for one in made.values() if one.type == kind}


def test_the_queue_is_encrypted_keeps_messages_for_five_minutes_and_bears_our_tags() -> None:
    made = declared()
    queue = made[NAMES.of_foundation(urns.QUEUE, QUEUE)]
    assert queue.inputs["name"] == QUEUE
    assert (queue.inputs["sqsManagedSseEnabled"], queue.inputs["messageRetentionSeconds"]) == (True, 300)
    rules = of_type(made, urns.EVENT_RULE)
    for one in (queue, *rules.values()):
        assert one.inputs["tags"] == {"cost": "1", labels.TAG_NAME: one.name, labels.TAG_ENVIRONMENT: "test"}
        assert not one.protect


def test_eventbridge_may_write_to_the_queue_and_nobody_without_encryption() -> None:
    [policy] = of_type(declared(), urns.QUEUE_POLICY).values()
    assert policy.inputs["queueUrl"] == f"id-of-{QUEUE}"
    allowed, denied = json.loads(policy.inputs["policy"])["Statement"]
    assert (allowed["Effect"], allowed["Action"]) == ("Allow", "sqs:SendMessage")
    assert allowed["Principal"] == {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]}
    assert (denied["Effect"], denied["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_five_rules_send_to_the_queue_once_it_takes_what_they_send() -> None:
    made = declared()
    rules, targets = of_type(made, urns.EVENT_RULE), of_type(made, urns.EVENT_TARGET)
    patterns = [json.loads(one.inputs["eventPattern"]) for one in rules.values()]
    assert {(pattern["source"][0], pattern["detail-type"][0]) for pattern in patterns} == {
        ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
        ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
        ("aws.ec2", "EC2 Instance State-change Notification"),
        ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
        ("aws.health", "AWS Health Event"),
    }
    assert targets.keys() == rules.keys()
    for name, target in targets.items():
        assert (target.inputs["rule"], target.inputs["targetId"]) == (name, "queue")
        assert NAMES.of_foundation(urns.QUEUE_POLICY, QUEUE) in target.dependencies
        assert NAMES.of_foundation(urns.EVENT_RULE, name) in target.dependencies


def test_no_machine_waits_for_the_queue() -> None:
    made = declared()
    machine = made[NAMES.claim(claim("gpu-1"))]
    parts = {urns.QUEUE, urns.QUEUE_POLICY, urns.EVENT_RULE, urns.EVENT_TARGET}
    assert not {urns.type_of(urn) for urn in machine.dependencies} & parts


def test_without_one_nothing_of_it_is_declared_and_the_foundations_digest_tells_them_apart() -> None:
    made = registered_by(lambda: declare(document(), BILLED))
    assert not [one for one in made.values() if one.type.startswith(("aws:sqs", "aws:cloudwatch"))]
    digests = {foundation_digest(of, BILLED) for of in (document(), OWNS)}
    assert len(digests) == 2


def test_names_are_ones_that_aws_takes_and_no_two_environments_share_them() -> None:
    feed = Feed("reservation", "aws.ec2", "…")
    alike = ["prod", "prod.eu", "prod-eu", "p" * 100, "p" * 99 + "q"]
    for name_of in (queue_name, lambda each: rule_name(each, feed)):
        names = [name_of(each) for each in alike]
        assert len(set(names)) == len(alike)
        assert all(len(name) <= LONGEST_NAME and name.replace("-", "").isalnum() for name in names)
    assert (queue_name("prod"), rule_name("prod", feed)) == (
        "nodewright-prod-interruptions",
        "nodewright-prod-reservation",
    )
