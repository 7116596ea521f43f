"""Interruption messages: acted on at least once, deleted once that is remembered, and in nobody's way."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from attrs import evolve

from engine.model.fault import Fault
from engine.model.interruption import Interruption, InterruptionKind
from engine.model.plan import RemovalPhase
from engine.observe.failure import ObservationFailed
from engine.observe.interruptions import Message
from engine.reconcile import passes
from engine.reconcile.mailbox import Mailbox, read_now, settle_now, words_about
from tests.builders import NOON, minutes
from tests.decide.taken import TakingWorld, replicas, running, spot_pool
from tests.decide.world import policy
from tests.reconcile.loop_world import LoopPorts
from tests.reconcile.world_ports import WorldPorts


class Queue:
    """Gives what is in it each time, until it is deleted by its newest receipt."""

    name = "interruptions"

    def __init__(self) -> None:
        self.bodies: dict[str, Message] = {}
        self.reads = 0
        self.fails = ""

    def put(self, name: str, *said: Interruption, problem: str = "") -> None:
        self.bodies[name] = Message(name, "", said, problem)

    def receive(self, wait_seconds: int = 0) -> tuple[Message, ...]:
        if self.fails:
            raise ObservationFailed(self.fails)
        self.reads += 1
        return tuple(evolve(each, receipt=f"{each.id}/{self.reads}") for each in self.bodies.values())

    def delete(self, messages: Iterable[Message]) -> None:
        if self.fails:
            raise ObservationFailed(self.fails)
        for each in messages:
            assert each.receipt == f"{each.id}/{self.reads}"
            del self.bodies[each.id]


def spot(instance: str, at: float = 0) -> Interruption:
    return Interruption(InterruptionKind.SPOT, instance, NOON + minutes(at), NOON + minutes(at + 2))


def passed(ports: WorldPorts, queue: Queue, box: Mailbox) -> tuple[str, ...]:
    """One pass that waits for what it does, and the messages that it answers; what it told of them."""
    proposal = passes.propose(evolve(ports.ports, interruptions=queue), box)
    if proposal.needs_converging:
        passes.apply(ports.ports, proposal, lambda line: None, lambda event: None)
    else:
        passes.remember_clocks(ports.ports, proposal.plan)
    return settle_now(queue, box, proposal.snapshot, ports.store.ledger().ledger)


def stored(folder: Path, world: TakingWorld) -> WorldPorts:
    """The ports of a world that runs, with its document and ledger on disk."""
    ports = WorldPorts(world, folder)
    assert world.document is not None
    for version in range(1, world.document.version + 1):
        ports.store.publish(evolve(world.document, version=version))
    ports.store.write_ledger(world.ledger)
    return ports


def test_a_message_is_deleted_once_the_ledger_that_knows_it_is_on_disk(tmp_path: Path) -> None:
    world, queue, box = running(replicas(2)), Queue(), Mailbox()
    ports, taken = stored(tmp_path, world), sorted(world.instances)[0]
    queue.put("a", spot(taken))
    proposal = passes.propose(evolve(ports.ports, interruptions=queue), box)
    assert [removal.phase for removal in proposal.plan.removals] == [RemovalPhase.MARK]
    # Killed before it is applied: nothing is remembered, so nothing is deleted.
    settle_now(queue, box, proposal.snapshot, ports.store.ledger().ledger)
    assert set(queue.bodies) == {"a"}
    passed(ports, queue, Mailbox())
    assert not queue.bodies
    assert [each.instance_id for each in ports.store.ledger().ledger.interruptions.values()] == [taken]


def test_looking_without_a_box_reads_no_queue(tmp_path: Path) -> None:
    world, queue = running(replicas(1)), Queue()
    ports = stored(tmp_path, world)
    passes.propose(evolve(ports.ports, interruptions=queue))
    assert queue.reads == 0


def test_messages_that_nobody_can_read_are_told_and_deleted_at_once(tmp_path: Path) -> None:
    world, queue, box = running(replicas(1)), Queue(), Mailbox()
    ports = stored(tmp_path, world)
    queue.put("a", problem="it is '{', expected JSON")
    queue.put("b", problem="it is '{', expected JSON")
    assert passed(ports, queue, box) == ("a message in queue interruptions cannot be read: it is '{', expected JSON",)
    assert not queue.bodies


def test_a_message_about_an_instance_that_is_not_shown_yet_waits_two_minutes_before_it_is_anothers(
    tmp_path: Path,
) -> None:
    world, queue, box = running(replicas(1)), Queue(), Mailbox()
    ports = stored(tmp_path, world)
    age = (world.now - NOON).total_seconds() / 60
    queue.put("a", spot("i-0stranger", at=age))
    assert passed(ports, queue, box) == ()
    assert set(queue.bodies) == {"a"}
    world.now += minutes(2)
    [told] = passed(ports, queue, box)
    assert told == "queue interruptions brings messages about instances that are none of this environment's"
    assert not queue.bodies


def test_a_queue_that_cannot_be_read_is_told_and_stops_no_pass(tmp_path: Path) -> None:
    world, queue, box = running(replicas(1)), Queue(), Mailbox()
    ports = stored(tmp_path, world)
    queue.fails = "SQS gave no answer"
    proposal = passes.propose(evolve(ports.ports, interruptions=queue), box)
    assert "SQS gave no answer" in proposal.problems
    assert read_now(None, box) == ()


def test_a_deletion_that_fails_is_made_up_for_when_the_message_comes_again(tmp_path: Path) -> None:
    world, queue, box = running(replicas(1)), Queue(), Mailbox()
    ports = stored(tmp_path, world)
    queue.put("a", spot(sorted(world.instances)[0]))

    class Undeleting(Queue):
        def delete(self, messages: Iterable[Message]) -> None:
            raise Fault("the network is gone")

    broken = Undeleting()
    broken.bodies = queue.bodies
    passed(ports, broken, box)
    assert set(queue.bodies) == {"a"}
    passed(ports, queue, Mailbox())
    assert not queue.bodies


def test_in_whatever_order_and_number_they_come_the_same_is_said_and_every_one_is_deleted(tmp_path: Path) -> None:
    world = running(replicas(3))
    ids = sorted(world.instances)
    messages = {f"m{number}": spot(ids[number % 2], at=number % 3) for number in range(6)}
    chance, said = random.Random(5), set()
    for number in range(10):
        queue, box = Queue(), Mailbox()
        ports = stored(tmp_path / str(number), running(replicas(3)))
        names = sorted(messages)
        chance.shuffle(names)
        for name in names:
            queue.put(name, messages[name])
        box.take_in(queue.receive())
        passed(ports, queue, box)
        said.add(box.told())
        assert not queue.bodies
        marked = {node.name for node in ports.world.nodes.values() if node.is_marked}
        assert marked == {f"node-{instance}" for instance in ids[:2]}
    assert said == {()}


def test_words_are_the_same_however_many_messages_they_are_about() -> None:
    snapshot = running(replicas(1)).snapshot()
    strangers = [Message(str(number), "", (spot(f"i-{number}"),)) for number in range(5)]
    assert len(words_about("q", strangers, snapshot)) == 1


# --- in a loop


def looped(folder: Path, queue: Queue, pods: int = 2) -> LoopPorts:
    """A loop whose pods run on spot machines, at rest, with a queue that takes 20 s to say that nothing is there."""
    loop = LoopPorts(TakingWorld(policy(spot_pool()), replicas(pods)), folder)
    loop.ports = evolve(loop.ports, interruptions=queue)
    loop.time.delays["interruptions"] = 20.0
    loop.run(until=60.0)
    loop.stop.times = 0
    return loop


def test_a_loop_marks_the_node_of_a_notice_as_soon_as_it_is_read_and_deletes_it(tmp_path: Path) -> None:
    queue = Queue()
    loop = looped(tmp_path, queue)
    taken = sorted(loop.world.instances)[0]
    queue.put("a", spot(taken, at=1))
    _, heard = loop.run(until=85.0)
    assert loop.world.nodes[f"node-{taken}"].is_marked
    assert next(len(plan.launches) for plan in heard.plans if plan.removals) == 1
    assert not queue.bodies
    assert list(loop.store.ledger().ledger.interruptions) == [loop.world.instances[taken].claim]


def test_a_loop_with_nothing_in_its_queue_makes_no_pass_for_it(tmp_path: Path) -> None:
    queue = Queue()
    loop = looped(tmp_path, queue, pods=0)
    before = queue.reads
    _, heard = loop.run(until=660.0)
    assert len(heard.reports) == 10
    assert queue.reads - before >= 25


def test_a_run_of_one_pass_reads_what_is_there(tmp_path: Path) -> None:
    queue = Queue()
    loop = looped(tmp_path, queue)
    taken = sorted(loop.world.instances)[0]
    queue.put("a", spot(taken, at=1))
    loop.run(once=True)
    assert loop.world.nodes[f"node-{taken}"].is_marked
    assert not queue.bodies


def test_a_queue_that_cannot_be_read_is_told_once_and_once_when_it_can(tmp_path: Path) -> None:
    queue = Queue()
    loop = looped(tmp_path, queue)
    queue.fails = "SQS gave no answer"

    def mend() -> None:
        queue.fails = ""

    loop.at(200.0, mend)
    _, heard = loop.run(until=400.0)
    assert [str(fault) for fault in heard.warned] == ["SQS gave no answer"]
    assert "queue interruptions is read again" in heard.said
