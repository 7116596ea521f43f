"""The sandbox's queue: what is put in is read by the one reader of it, and a notice goes through whole passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from engine.model.interruption import InterruptionKind
from engine.model.plan import RemovalPhase
from engine.observe.failure import ObservationFailed
from engine.observe.interruption_messages import read_message
from engine.observe.interruptions import InterruptionQueue
from engine.reconcile import passes
from engine.reconcile.mailbox import Mailbox, settle_now
from engine.sandbox.ec2 import Ec2Endpoint
from engine.sandbox.interruptions import Kind, announce, interrupt, make_queue, message, put
from tests.builders import NOON, minutes
from tests.decide.taken import TakingWorld, replicas, running
from tests.reconcile.world_ports import WorldPorts

REGION = "us-east-1"
ID = "i-0123456789abcdef0"


def queue_of(endpoint: Ec2Endpoint, name: str) -> InterruptionQueue:
    make_queue(endpoint.url, REGION, name)
    return InterruptionQueue(endpoint.url, REGION, name, sleep=lambda seconds: None)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Kind.SPOT, InterruptionKind.SPOT),
        (Kind.REBALANCE, InterruptionKind.REBALANCE),
        (Kind.MAINTENANCE, InterruptionKind.MAINTENANCE),
        (Kind.RESERVATION, InterruptionKind.RESERVATION),
        (Kind.STOP, InterruptionKind.STATE_CHANGE),
    ],
)
def test_each_kind_is_read_as_what_it_is(kind: Kind, said: InterruptionKind) -> None:
    [read] = read_message(json.dumps(message(kind, ID, REGION, NOON)))
    assert (read.kind, read.instance_id, read.at) == (said, ID, NOON)


def test_a_message_comes_until_it_is_deleted_and_more_than_ten_come_at_once(ec2_endpoint: Ec2Endpoint) -> None:
    queue = queue_of(ec2_endpoint, "many")
    for number in range(23):
        interrupt(ec2_endpoint.url, REGION, "many", Kind.SPOT, f"i-{number:02}", NOON)
    put(ec2_endpoint.url, REGION, "many", "{")
    found = queue.receive()
    assert sorted(said.instance_id for each in found for said in each.interruptions) == [
        f"i-{number:02}" for number in range(23)
    ]
    assert [each.problem for each in found if each.problem] == ["it is '{', expected JSON (JSONDecodeError)"]
    queue.delete(found)
    assert queue.receive(wait_seconds=2) == ()


def test_a_queue_that_is_not_there_is_told_by_its_name(ec2_endpoint: Ec2Endpoint) -> None:
    queue = InterruptionQueue(ec2_endpoint.url, REGION, "nowhere")
    with pytest.raises(ObservationFailed, match="the messages of queue nowhere"):
        queue.receive()


def test_a_queue_of_our_own_is_empty_until_it_is_made_and_told_of_once_it_is_lost(ec2_endpoint: Ec2Endpoint) -> None:
    made: list[str] = []
    slept: list[float] = []
    queue = InterruptionQueue(ec2_endpoint.url, REGION, "own", sleep=slept.append, is_making=lambda: not made)
    assert queue.receive(wait_seconds=5) == ()
    assert slept == [5]
    make_queue(ec2_endpoint.url, REGION, "own")
    put(ec2_endpoint.url, REGION, "own", json.dumps(message(Kind.SPOT, ID, REGION, NOON)))
    assert len(queue.receive()) == 1
    made.append("converged")
    lost = InterruptionQueue(ec2_endpoint.url, REGION, "own-lost", is_making=lambda: not made)
    with pytest.raises(ObservationFailed, match="own-lost is there no more") as told:
        lost.receive()
    assert "pulumi refresh" in str(told.value.hints)


def test_what_is_announced_comes_by_the_rules_that_stand_and_by_no_other_way(ec2_endpoint: Ec2Endpoint) -> None:
    import boto3

    queue = queue_of(ec2_endpoint, "fed")
    announce(ec2_endpoint.url, REGION, "fed", Kind.SPOT, ID, NOON)
    assert queue.receive() == ()
    events = boto3.client(
        "events",
        region_name=REGION,
        endpoint_url=ec2_endpoint.url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    spot = {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}
    events.put_rule(Name="fed-spot", EventPattern=json.dumps(spot))
    events.put_targets(Rule="fed-spot", Targets=[{"Id": "queue", "Arn": f"arn:aws:sqs:{REGION}:123456789012:fed"}])
    for kind in (Kind.SPOT, Kind.REBALANCE):
        announce(ec2_endpoint.url, REGION, "fed", kind, ID, NOON)
    [heard] = queue.receive()
    assert [(said.kind, said.instance_id, said.at) for said in heard.interruptions] == [
        (InterruptionKind.SPOT, ID, NOON)
    ]


def test_a_notice_is_marked_evicted_replaced_and_released_by_real_passes(
    ec2_endpoint: Ec2Endpoint, tmp_path: Path
) -> None:
    world: TakingWorld = running(replicas(2))
    queue, ports = queue_of(ec2_endpoint, "passes"), WorldPorts(world, tmp_path)
    assert world.document is not None
    for version in range(1, world.document.version + 1):
        ports.store.publish(evolve(world.document, version=version))
    ports.store.write_ledger(world.ledger)
    taken = sorted(world.instances)[0]
    gone = world.instances[taken].claim
    interrupt(ec2_endpoint.url, REGION, "passes", Kind.SPOT, taken, world.now)
    told: list[tuple[RemovalPhase, int]] = []
    for _ in range(5):
        mail = Mailbox()
        proposal = passes.propose(evolve(ports.ports, interruptions=queue), mail)
        if proposal.plan.is_empty:
            passes.remember_clocks(ports.ports, proposal.plan)
        else:
            passes.apply(ports.ports, proposal, lambda line: None, lambda event: None)
        settle_now(queue, mail, proposal.snapshot, ports.store.ledger().ledger)
        told += [(each.phase, len(proposal.plan.launches)) for each in proposal.plan.removals]
        world.settle()
        for key, pod in list(world.pods.items()):
            if key in ports.evicted and pod.node_name:
                again = evolve(key, name=f"{key.name}-again")
                world.pods[again] = evolve(world.pods.pop(key), key=again, node_name=None, phase=pod.phase.PENDING)
        world.settle()
        world.now += minutes(1)
    assert told == [(RemovalPhase.MARK, 1), (RemovalPhase.RELEASE, 0)]
    assert gone not in {claim.name for claim in ports.store.document().claims}  # type: ignore[union-attr]
    assert [key.name for key in ports.evicted] == ["llm-0"]
    assert all(pod.node_name for pod in world.pods.values())
    assert queue.receive() == ()
