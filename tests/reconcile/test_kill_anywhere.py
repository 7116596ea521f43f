"""A runner that dies at any point, and two at once: later passes leave no orphan and launch nothing twice."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.actuate.lease import KubernetesLease
from engine.reconcile.one_writer import BothLeases, StoreLease
from engine.reconcile.ports import PassLease
from tests.actuate.lease_server import LeaseServer
from tests.builders import pod
from tests.reconcile.loop_world import FakeTime, Killed, Listener, LoopPorts
from tests.reconcile.loops import loop_of

PODS = 3


def consistent(loop: LoopPorts, pods: int) -> None:
    """One machine a pod, each of a claim of the document, each claim with its machine."""
    document = loop.store.document()
    assert document is not None
    running = [instance.claim for instance in loop.world.running()]
    assert sorted(running) == sorted(claim.name for claim in document.claims)
    assert len(running) == len(set(running)) == pods
    assert len(loop.world.launched_ever) == len(set(loop.world.launched_ever))


def lease_of(server: LeaseServer, holder: str, time: FakeTime) -> KubernetesLease:
    """One that nobody renews but by hand."""
    return KubernetesLease(
        server, "kube-system", "nodewright-test", holder, monotonic=lambda: time.seconds, keeps=False
    )


def steps_of_a_whole_run() -> int:
    with tempfile.TemporaryDirectory() as folder:
        loop = loop_of(PODS, Path(folder))
        loop.run(until=60.0)
        return loop.steps


@pytest.mark.parametrize("step", range(1, steps_of_a_whole_run() + 1))
def test_a_runner_killed_at_any_step_leaves_no_orphan_and_no_double(tmp_path: Path, step: int) -> None:
    loop = loop_of(PODS, tmp_path)
    loop.killed_at = step
    with suppress(Killed):
        loop.run(until=60.0)
    # The system takes a dead process's lock away.
    loop.ports.lease.release()

    after = LoopPorts(loop.world, tmp_path)
    after.held = loop.held
    after.run(until=120.0)

    consistent(after, PODS)


class Stage:
    """Two runners of which one moves at a time; who, is chosen at each of their steps."""

    def __init__(self, choices: list[int]) -> None:
        self._choices = choices
        self._turns = [threading.Semaphore(0), threading.Semaphore(0)]
        self._alive = [True, True]
        self._errors: list[BaseException] = []

    def run(self, *works: Callable[[], object]) -> None:
        threads = [threading.Thread(target=self._play, args=(me, work)) for me, work in enumerate(works)]
        for thread in threads:
            thread.start()
        self._turns[0].release()
        for thread in threads:
            thread.join(120)
        if self._errors:
            raise self._errors[0]

    def step(self, me: int) -> None:
        """Let the other one move, where that is what was chosen."""
        other = 1 - me
        chosen = self._choices.pop() if self._choices else other
        if chosen != me and self._alive[other]:
            self._turns[other].release()
            self._turns[me].acquire()

    def _play(self, me: int, work: Callable[[], object]) -> None:
        self._turns[me].acquire()
        try:
            work()
        except BaseException as error:
            self._errors.append(error)
        finally:
            self._alive[me] = False
            self._turns[1 - me].release()


class Rival(LoopPorts):
    """One of two runners on the same world, the same store and the same Lease."""

    def __init__(self, first: LoopPorts, folder: Path, stage: Stage, me: int, server: LeaseServer) -> None:
        super().__init__(first.world, folder, FakeTime())
        self.stage, self.me = stage, me
        # Pulumi's backend is one for both.
        self.held, self.locked, self.live.world = first.held, first.locked, first.world
        lease = lease_of(server, f"runner-{me}", self.time)
        # Each on a machine of its own: only the Lease is between them.
        self.ports = evolve(self.ports, lease=Watched(lease, self), live=lambda: self.live, now=self.time.now)

    def step(self, what: str) -> None:
        self.stage.step(self.me)

    def live_changed(self) -> None:
        self.live.changed()


class Watched:
    """The lease, with a step before and after each use of it."""

    def __init__(self, lease: PassLease, rival: Rival) -> None:
        self._lease, self._rival = lease, rival
        self.is_held, self.paused = lease.is_held, lease.paused

    def take(self) -> str:
        self._rival.step("take")
        other = self._lease.take()
        self._rival.step("taken")
        return other

    def release(self) -> None:
        self._lease.release()
        self._rival.step("released")

    def look(self) -> None:
        self._lease.look()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(choices=st.lists(st.integers(0, 1), max_size=120), late=st.integers(0, 3))
def test_two_runners_at_once_never_buy_twice(choices: list[int], late: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, server, stage = loop_of(PODS, folder), LeaseServer(), Stage(list(choices))
        rivals = [Rival(first, folder, stage, me, server) for me in (0, 1)]
        for number in range(late):
            arriving = pod(f"late-{number}", gpu=1)
            for rival in rivals:
                rival.at(5.0 + 3 * number, lambda rival=rival, arriving=arriving: rival.arrive_once(arriving))  # type: ignore[misc]
        heard: list[Listener] = []

        stage.run(*(lambda rival=rival: heard.append(rival.run(until=90.0)[1]) for rival in rivals))  # type: ignore[misc]

        assert [warning for each in heard for warning in each.warned if "internal" in warning] == []
        consistent(rivals[0], PODS + late)


def test_who_stands_by_says_so_once_and_takes_over(tmp_path: Path) -> None:
    server, loop = LeaseServer(), loop_of(1, tmp_path)
    other = lease_of(server, "other", loop.time)
    ours = lease_of(server, "ours", loop.time)
    other.take()
    for moment in range(5, 60, 5):
        loop.time.at(float(moment), lambda: other.renew())
    both = evolve(loop.ports, lease=BothLeases(StoreLease(loop.store), ours))

    _, heard = loop.run(until=200.0, ports=both)

    assert heard.warned == ["standing by: other (Lease kube-system/nodewright-test) changes environment test"]
    assert "environment test: taking over" in heard.said
    assert len(loop.world.running()) == 1


def test_a_lease_that_is_lost_in_mid_pass_publishes_nothing(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)

    class Lost(StoreLease):
        losses = 2

        def is_held(self) -> bool:
            if super().is_held() and self.losses:
                self.losses -= 1
                return False
            return super().is_held()

    lost = evolve(loop.ports, lease=Lost(loop.store))

    _, heard = loop.run(until=100.0, ports=lost)

    assert heard.warned[0] == "environment test: the lease ran out before the plan was published"
    document = loop.store.document()
    assert document is not None
    assert document.version == 1
    assert len(loop.world.running()) == 1


def test_an_outcome_that_cannot_be_recorded_for_want_of_the_lease_waits(tmp_path: Path) -> None:
    server, loop = LeaseServer(), loop_of(1, tmp_path)
    ours = lease_of(server, "ours", loop.time)
    loop.time.delays["lane"] = 30.0
    loop.time.at(12.0, lambda: setattr(server, "is_away", True))
    loop.time.at(60.0, lambda: setattr(server, "is_away", False))

    loop.run(until=55.0, ports=evolve(loop.ports, lease=ours))

    assert len(loop.world.running()) == 1
    assert loop.store.outcome() is not None
