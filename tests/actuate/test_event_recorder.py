"""Events are written once, in moderation, and never in a pass's way."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from attrs import evolve

from engine.actuate.event_recorder import EventRecorder
from engine.model.fault import Fault
from engine.model.object_event import EventObject, EventReason, EventType, ObjectEvent
from tests.builders import NOON

POD = EventObject("Pod", "ml", "llm-1", uid="0123")
LIMIT = ObjectEvent(POD, EventReason.LIMIT_REACHED, EventType.WARNING, "limit nvidia.com/gpu 50 reached")
NODE = ObjectEvent(
    EventObject("Node", "", "node-1", "node-1"), EventReason.DISRUPTION_BLOCKED, EventType.NORMAL, "held"
)


class Server:
    """Keeps what it was sent; ``status`` 0 gives no answer."""

    def __init__(self, status: int = 201) -> None:
        self.status = status
        self.sent: list[tuple[str, str, Any]] = []
        self.threads: set[str] = set()

    def ask(
        self, method: str, path: str, *, body: object = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        self.threads.add(threading.current_thread().name)
        self.sent.append((method, path, body))
        if not self.status:
            raise Fault("no answer")
        return self.status, b"{}"


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def notes(server: Server) -> list[str]:
    return [body["note"] for _, _, body in server.sent]


def many(count: int) -> list[ObjectEvent]:
    return [evolve(LIMIT, about=evolve(POD, name=f"llm-{number}")) for number in range(count)]


def test_an_event_is_written_as_the_api_wants_it(clock: Clock) -> None:
    server = Server()

    EventRecorder(server, "prod", clock).record([LIMIT, NODE])

    (method, path, body), (_, node_path, node_body) = server.sent
    assert (method, path) == ("POST", "/apis/events.k8s.io/v1/namespaces/ml/events")
    assert body["metadata"]["name"].startswith("llm-1.")
    assert {key: value for key, value in body.items() if key != "metadata"} == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-11-30T12:00:00.000000Z",
        "reportingController": "nodewright.dev/nodewright",
        "reportingInstance": "nodewright-prod",
        "action": "Provisioning",
        "reason": "LimitReached",
        "type": "Warning",
        "note": "limit nvidia.com/gpu 50 reached",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ml", "name": "llm-1", "uid": "0123"},
    }
    # What is in no namespace is told in the default one.
    assert node_path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert node_body["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-1"}


def test_the_same_event_is_written_once_in_half_an_hour_and_another_message_at_once(clock: Clock) -> None:
    server = Server()
    recorder = EventRecorder(server, "prod", clock)

    for _ in range(60):
        recorder.record([LIMIT])
        clock.now += timedelta(seconds=60)
    assert len(server.sent) in (2, 3)

    recorder.record([evolve(LIMIT, message="limit nvidia.com/gpu 60 reached")])
    assert notes(server)[-1] == "limit nvidia.com/gpu 60 reached"


def test_a_run_that_follows_another_gives_the_same_name_and_a_conflict_is_no_failure(clock: Clock) -> None:
    first, second = Server(), Server(status=409)
    recorder = EventRecorder(second, "prod", clock)

    EventRecorder(first, "prod", clock).record([LIMIT])
    recorder.record([LIMIT])

    assert first.sent[0][2]["metadata"]["name"] == second.sent[0][2]["metadata"]["name"]
    assert recorder.failures == 0


def test_a_storm_is_cut_off_and_what_was_left_out_is_written_later(clock: Clock) -> None:
    server = Server()
    recorder = EventRecorder(server, "prod", clock)

    recorder.record(many(300))
    assert len(server.sent) == 100

    clock.now += timedelta(seconds=2)
    recorder.record(many(300))
    assert len(server.sent) == 120
    assert len({body["metadata"]["name"] for _, _, body in server.sent}) == 120


def test_no_answer_is_counted_tried_once_and_made_good_in_the_next_pass(clock: Clock) -> None:
    server, told = Server(status=0), []
    recorder = EventRecorder(server, "prod", clock, on_failure=told.append)

    recorder.record(many(5))
    # Without a thread the burst is queued whole before the first is sent.
    assert (len(server.sent), recorder.failures, sum(told)) == (1, 5, 5)

    server.status = 201
    recorder.record(many(5))
    assert len(server.sent) == 6
    assert recorder.failures == 5


def test_an_event_that_is_refused_stops_no_other_and_is_not_tried_again_soon(clock: Clock) -> None:
    server = Server(status=403)
    recorder = EventRecorder(server, "prod", clock)

    recorder.record(many(3))
    recorder.record(many(3))

    assert len(server.sent) == 3
    assert recorder.failures == 3


def test_a_started_recorder_sends_from_its_own_thread_and_finishes_when_it_is_closed(clock: Clock) -> None:
    server = Server()
    recorder = EventRecorder(server, "prod", clock)
    recorder.start()

    recorder.record(many(20))
    recorder.close()
    recorder.close()

    assert len(server.sent) == 20
    assert server.threads == {"events"}


def test_long_names_leave_room_for_what_tells_events_apart(clock: Clock) -> None:
    server = Server()
    about = evolve(POD, name="p" * 253)

    EventRecorder(server, "prod", clock).record([evolve(LIMIT, about=about), evolve(NODE, about=about)])

    names = [body["metadata"]["name"] for _, _, body in server.sent]
    assert [len(name) for name in names] == [253, 253]
    assert names[0] != names[1]
