"""Lanes on the real engine: a launch waits for no other update, and each stack holds exactly its own claims."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.model.document import DesiredDocument
from engine.model.lane import lane_slice
from engine.model.outcome import Outcome, OutcomeStatus
from engine.sandbox.ec2 import ec2_up
from engine.sandbox.faults import Delay
from tests.converge.documents import later, removal
from tests.engine.conftest import Sandbox
from tests.engine.converge_fixtures import World, made_world, statuses

pytestmark = pytest.mark.engine

MAIN_WAITS_SECONDS = 12


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, toolchain: object, ec2_state: Path) -> Iterator[World]:
    """One environment for all tests here: its foundation stands, its session starts its plugin itself."""
    folder = tmp_path_factory.mktemp("lanes")
    world = made_world(folder, toolchain, Sandbox(ec2_up(ec2_state), ec2_state), {})  # type: ignore[arg-type]
    with world.session:
        outcome, _ = world.converge(world.document())
        assert outcome.is_settled, outcome
        yield world


@pytest.fixture
def lanes(built: World, sandbox: Sandbox) -> Iterator[World]:
    """The environment with no machine in any lane, before and after."""
    yield built
    destroyed = [
        built.session.lane(lane).destroy(None, (), _unheard) for lane in (f"{built.name}.1", f"{built.name}.2")
    ]
    assert all(outcome.is_settled for outcome in destroyed)
    emptied = built.document(removals=[removal(name) for name in built.running()])
    assert built.converge(emptied)[0].is_settled
    assert built.running() == []


def _unheard(event: object) -> None:
    """No test here looks at events."""


class Running:
    """One lane's converge in a thread of its own."""

    def __init__(self, world: World, lane: str, document: DesiredDocument) -> None:
        self.lane = lane
        self.finished_at = 0.0
        self._outcomes: list[Outcome] = []
        instances = world.instances()

        def converge() -> None:
            self._outcomes.append(world.session.lane(lane).converge(document, instances, _unheard))
            self.finished_at = time.time()

        self._thread = threading.Thread(target=converge)
        self._thread.start()

    def outcome(self) -> Outcome:
        self._thread.join()
        return self._outcomes[0]


def _await(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


def _held(world: World, lane: str) -> list[str]:
    return sorted(world.session.lane(lane).stack.exported().instances_by_claim())


def test_launches_in_three_lanes_wait_for_each_other_in_none_and_each_stack_holds_its_own(lanes: World) -> None:
    first, second = f"{lanes.name}.1", f"{lanes.name}.2"
    lanes.session.prepare_lane(first)
    lanes.session.prepare_lane(second)
    lanes.sandbox.faults(Delay(action="RunInstances", seconds=MAIN_WAITS_SECONDS, times=1))
    document = lanes.document(lanes.claim("slow"), version=2)

    main = Running(lanes, lanes.name, document)
    _await(lambda: "slow" in lanes.sandbox.launches())
    grown = later(document, *document.claims, lanes.claim("one", stack=first), lanes.claim("two", stack=second))
    others = [Running(lanes, lane, grown) for lane in (first, second)]

    outcomes = [running.outcome() for running in others]
    assert main.finished_at == 0.0, "the main lane was to be at work all the while"
    assert [statuses(outcome) for outcome in outcomes] == [
        {"one": OutcomeStatus.CREATED},
        {"two": OutcomeStatus.CREATED},
    ]
    assert [(outcome.stack, outcome.is_settled) for outcome in outcomes] == [(first, True), (second, True)]
    assert outcomes[0].slice_digest == lane_slice(grown, first, lanes.name)
    assert statuses(main.outcome()) == {"slow": OutcomeStatus.CREATED}
    received = lanes.sandbox.launches()
    assert max(received["one"], received["two"]) < main.finished_at
    assert {lane: _held(lanes, lane) for lane in (lanes.name, first, second)} == {
        lanes.name: ["slow"],
        first: ["one"],
        second: ["two"],
    }
    assert not list((lanes.session.lane(lanes.name).stack.cli.project / "stacks").glob(f"Pulumi.{lanes.name}.*.yaml"))


def test_a_lane_gives_up_a_machine_by_its_record_and_leaves_the_rest(lanes: World) -> None:
    lane = f"{lanes.name}.1"
    document = lanes.document(lanes.claim("kept", stack=lane), lanes.claim("gone", stack=lane), version=2)
    assert Running(lanes, lane, document).outcome().is_settled

    shrunk = later(document, lanes.claim("kept", stack=lane), removals=[removal("gone", stack=lane)])
    outcome = Running(lanes, lane, shrunk).outcome()

    assert statuses(outcome) == {"gone": OutcomeStatus.DELETED}
    assert (_held(lanes, lane), lanes.running()) == (["kept"], ["kept"])


def test_a_lanes_update_killed_in_its_middle_leaves_no_machine_doubled(lanes: World) -> None:
    lane = f"{lanes.name}.1"
    lanes.session.prepare_lane(lane)
    lanes.sandbox.faults(Delay(action="RunInstances", seconds=4, times=1))
    document = lanes.document(lanes.claim("cut-off", stack=lane), version=2)
    running = Running(lanes, lane, document)
    _await(lambda: "cut-off" in lanes.sandbox.launches())
    for process in _updates_of(lane):
        os.killpg(process, signal.SIGKILL)
    assert statuses(running.outcome()) == {"cut-off": OutcomeStatus.UNKNOWN}
    _await(lambda: lanes.running() == ["cut-off"])
    launched = lanes.instances()

    outcome = Running(lanes, lane, document).outcome()

    assert statuses(outcome) == {"cut-off": OutcomeStatus.ADOPTED}
    assert outcome.is_settled
    assert lanes.instances() == launched
    assert lanes.session.lane(lane).stack.exported().pending == ()


def test_a_plugin_that_died_between_two_updates_is_started_again(lanes: World) -> None:
    lane = f"{lanes.name}.1"
    document = lanes.document(lanes.claim("before", stack=lane), version=2)
    assert Running(lanes, lane, document).outcome().is_settled
    [plugin] = _attached_plugins()
    os.kill(plugin, signal.SIGKILL)

    grown = later(document, *document.claims, lanes.claim("after", stack=lane))
    outcome = Running(lanes, lane, grown).outcome()

    assert statuses(outcome) == {"after": OutcomeStatus.CREATED}
    assert [plugin] != _attached_plugins()
    assert len(_attached_plugins()) == 1


def test_a_destroy_takes_every_lane_down_also_one_that_no_document_names(built: World, sandbox: Sandbox) -> None:
    named, forgotten = f"{built.name}.1", f"{built.name}.2"
    document = built.document(
        built.claim("main"), built.claim("named", stack=named), built.claim("forgotten", stack=forgotten), version=2
    )
    for lane in (built.name, named, forgotten):
        assert Running(built, lane, document).outcome().is_settled
    assert built.running() == ["forgotten", "main", "named"]

    outcome = built.converger.destroy(None, built.instances(), _unheard)

    assert outcome.is_settled
    assert {one.claim: one.status for one in outcome.claims} == dict.fromkeys(
        ("forgotten", "main", "named"), OutcomeStatus.DELETED
    )
    assert (built.running(), built.vpcs()) == ([], [])
    assert [_held(built, lane) for lane in (built.name, named, forgotten)] == [[], [], []]


def _updates_of(lane: str) -> list[int]:
    return [pid for pid, words in _processes() if "up" in words[1:3] and lane in words]


def _attached_plugins() -> list[int]:
    """The stand-ins that this process's sessions started: each the child of a shell that is ours."""
    ours = {pid for pid, words in _processes() if _parent(pid) == os.getpid() and words[:2] == ["/bin/sh", "-c"]}
    return [pid for pid, words in _processes() if "engine.sandbox.aws" in words and _parent(pid) in ours]


def _processes() -> list[tuple[int, list[str]]]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        found.append((int(folder.name), words))
    return found


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
