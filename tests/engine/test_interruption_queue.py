"""A queue of interruptions that the environment makes: what EC2 says comes through its rules to its reader."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve

from engine.model import labels
from engine.model.document import DesiredDocument
from engine.model.interruption import InterruptionKind
from engine.model.interruption_queue import queue_name
from engine.observe.interruptions import InterruptionQueue
from engine.sandbox.interruptions import Kind, announce, stands
from tests.engine.converge_fixtures import World, attached_plugin, world  # noqa: F401 (fixtures)

pytestmark = pytest.mark.engine

REGION = "us-east-1"
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
SAID = {
    Kind.SPOT: InterruptionKind.SPOT,
    Kind.REBALANCE: InterruptionKind.REBALANCE,
    Kind.MAINTENANCE: InterruptionKind.MAINTENANCE,
    Kind.RESERVATION: InterruptionKind.RESERVATION,
}


def owning(within: World) -> DesiredDocument:
    return within.document(on=within.foundation(interruption_queue=queue_name(within.name)))


def rules_of(within: World) -> list[str]:
    rules = within.sandbox.client("events").list_rules(NamePrefix=f"nodewright-{within.name}-")["Rules"]
    return [rule["Name"] for rule in rules]


def heard(within: World, *kinds: Kind) -> set[tuple[InterruptionKind, str]]:
    """What the environment's own reader reads once EC2 has said each of these, deleted when it was read."""
    url, name = within.sandbox.endpoint.url, queue_name(within.name)
    for kind in kinds:
        announce(url, REGION, name, kind, f"i-{kind.value}", NOW)
    queue = InterruptionQueue(url, REGION, name)
    messages = queue.receive()
    queue.delete(messages)
    return {(said.kind, said.instance_id) for message in messages for said in message.interruptions}


def test_a_queue_goes_up_hears_is_mended_is_switched_off_and_comes_down(world: World) -> None:  # noqa: F811
    document, url, name = owning(world), world.sandbox.endpoint.url, queue_name(world.name)
    outcome, _ = world.converge(document)
    assert (outcome.foundation_failures, outcome.is_settled) == ((), True)
    assert len(rules_of(world)) == 5
    assert heard(world, *SAID) == {(said, f"i-{kind.value}") for kind, said in SAID.items()}
    sqs = world.sandbox.client("sqs")
    address = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    has = sqs.get_queue_attributes(QueueUrl=address, AttributeNames=["All"])["Attributes"]
    assert (has["SqsManagedSseEnabled"], has["MessageRetentionPeriod"]) == ("true", "300")
    assert sqs.list_queue_tags(QueueUrl=address)["Tags"][labels.TAG_ENVIRONMENT] == world.name

    # A second run finds nothing to do.
    assert world.converge(document)[1] == []

    # Deleted by hand, it is found gone by a refresh and made anew.
    sqs.delete_queue(QueueUrl=address)
    outcome, _ = world.converge(document, refresh=True)
    assert (outcome.foundation_failures, outcome.is_settled) == ((), True)
    assert heard(world, Kind.SPOT) == {(InterruptionKind.SPOT, "i-spot")}

    # Switched off, it goes, and all that fed it; the rest stands.
    off = evolve(document, version=2, foundation=world.foundation())
    outcome, _ = world.converge(off)
    assert (outcome.foundation_failures, outcome.is_settled) == ((), True)
    assert (stands(url, REGION, name), rules_of(world), len(world.vpcs())) == (False, [], 1)
    assert world.converger.destroy(off, (), lambda event: None).is_settled


def test_destroying_takes_the_queue_and_its_rules_along_even_with_a_lost_state(world: World) -> None:  # noqa: F811
    document = owning(world)
    world.converge(document)
    world.lose_state()
    outcome = world.converger.destroy(document, (), lambda event: None)
    assert (outcome.foundation_failures, outcome.is_settled) == ((), True)
    assert not stands(world.sandbox.endpoint.url, REGION, queue_name(world.name))
    assert (rules_of(world), world.vpcs()) == ([], [])
