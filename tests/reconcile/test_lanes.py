"""Converging several lanes of one document: at once where that can be, and with nothing lost of what one does."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from engine.model.document import DesiredDocument
from engine.model.fault import Fault
from engine.model.node import Instance
from engine.model.outcome import Outcome
from engine.reconcile.lanes import converge_lanes
from engine.reconcile.ports import OnEvent
from tests.converge.documents import NOON, document


class FakeSession:
    """Lanes that each note that they began, tell of themselves, and wait for the others where they are to meet."""

    def __init__(self, meeting: int = 1, *, stands: bool = True, breaks: str = "") -> None:
        self.began: list[str] = []
        self._meet = threading.Barrier(meeting)
        self._stands, self._breaks = stands, breaks
        self.interrupts = 0

    def lane(self, stack: str) -> Any:
        return _FakeLane(self, stack)

    def prepare_lane(self, stack: str) -> None:
        raise AssertionError("nothing is prepared here")

    def interrupt(self) -> None:
        self.interrupts += 1

    def converged(self, stack: str, on_progress: OnEvent) -> Outcome:
        self.began.append(stack)
        on_progress(stack)
        if stack != "test":
            self._meet.wait(timeout=10)
        if stack == self._breaks:
            raise Fault("the backend is gone", "look for it")
        return Outcome("test", 1, NOON, is_settled=True, stack=stack)

    @property
    def stands(self) -> bool:
        return self._stands


class _FakeLane:
    def __init__(self, session: FakeSession, stack: str) -> None:
        self._session, self._stack = session, stack

    def foundation_stands(self, document: DesiredDocument) -> bool:
        return self._session.stands

    def converge(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        *,
        refresh: bool = False,
        known_ids: Mapping[str, str] | None = None,
    ) -> Outcome:
        return self._session.converged(self._stack, on_progress)


def converged(session: FakeSession, *stacks: str, **more: Any) -> tuple[list[str], list[object]]:
    told: list[object] = []
    threads = set()

    def on_progress(event: object) -> None:
        told.append(event)
        threads.add(threading.current_thread())

    outcomes = converge_lanes(session, document(), (), on_progress, stacks, {}, **more)
    assert threads <= {threading.current_thread()}
    return [outcome.stack for outcome in outcomes], told


def test_lanes_converge_at_once_and_their_events_come_in_one_thread() -> None:
    stacks, told = converged(FakeSession(meeting=2), "test.1", "test.2")

    assert stacks == ["test.1", "test.2"]
    assert sorted(map(str, told)) == ["test.1", "test.2"]


@pytest.mark.parametrize(("stands", "refresh"), [(False, False), (True, True)])
def test_the_environments_own_stack_goes_first_where_the_foundation_has_to_be_made(stands: bool, refresh: bool) -> None:
    session = FakeSession(meeting=2, stands=stands)

    assert converged(session, "test", "test.1", "test.2", refresh=refresh)[0] == ["test", "test.1", "test.2"]
    assert session.began[0] == "test"


def test_a_fault_in_one_lane_is_told_once_the_others_have_ended() -> None:
    session = FakeSession(meeting=2, breaks="test.1")

    with pytest.raises(Fault, match="backend is gone"):
        converged(session, "test.1", "test.2")
    assert sorted(session.began) == ["test.1", "test.2"]
