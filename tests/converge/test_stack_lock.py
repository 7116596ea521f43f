"""Locks that a killed runner left on a stack: which are broken, when, and by whom."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.converge.events import Event, Waiting
from engine.converge.faults import LockHolder, StackLocked
from engine.converge.pulumi_process import PulumiCli
from engine.converge.pulumi_stack import PulumiStack
from engine.converge.stack_lock import AGAIN_SECONDS, TAKEN_OVER_AFTER_SECONDS, LockWatch, may_run_here
from tests.converge.test_pulumi_process import cli

STATE = json.dumps({"version": 3, "deployment": {"manifest": {"time": "2026-11-30T12:00:00Z"}}})
# A stand-in whose lock is a file: `cancel` removes it, `export` tells the state, the rest is refused while it is there.
BODY = """
import pathlib
here = pathlib.Path(sys.argv[0]).parent
(here / "calls").open("a").write(sys.argv[1] + "\\n")
lock = here / "lock"
if sys.argv[1] == "cancel":
    lock.unlink()
elif sys.argv[1:3] == ["stack", "export"]:
    print((here / "state").read_text())
elif lock.exists():
    print("error: the stack is currently locked by 1 lock(s).\\n  file:///l.json: created by " + lock.read_text())
    sys.exit(255)
"""


class Clock:
    """``then`` happens at each sleep."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.then: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.then()

    def watch(self) -> LockWatch:
        return LockWatch(lambda: self.seconds, self.sleep)


def locked(folder: Path, host: str, pid: int) -> PulumiCli:
    (folder / "state").write_text(STATE)
    (folder / "lock").write_text(f"nw@{host} (pid {pid}) at 2026-11-30T12:00:00Z")
    return cli(folder, BODY)


def cancels(folder: Path) -> int:
    return (folder / "calls").read_text().split().count("cancel")


def test_a_lock_of_another_machine_is_taken_over_after_ten_minutes_of_silence_and_that_is_told(tmp_path: Path) -> None:
    clock, told = Clock(), list[Event]()
    stack = PulumiStack(locked(tmp_path, "pod-a", 17), "test", clock.watch())

    assert stack.operate("up", program=None, on_event=told.append).succeeded

    assert cancels(tmp_path) == 1
    assert clock.seconds == TAKEN_OVER_AFTER_SECONDS
    assert [type(one) for one in told] == [Waiting]
    assert "pod-a" in str(told[0])
    assert "taken over after 10 minutes" in str(told[0])


def test_a_lock_whose_number_belongs_to_another_program_by_now_is_taken_over(tmp_path: Path) -> None:
    clock = Clock()
    with subprocess.Popen(["sleep", "60"]) as other:
        stack = PulumiStack(locked(tmp_path, socket.gethostname(), other.pid), "test", clock.watch())
        try:
            assert stack.operate("up", program=None, on_event=lambda event: None).succeeded
        finally:
            other.kill()
    assert clock.seconds == TAKEN_OVER_AFTER_SECONDS


def test_silence_counts_across_attempts(tmp_path: Path) -> None:
    clock = Clock()
    watch = clock.watch()
    stack = PulumiStack(locked(tmp_path, "pod-a", 17), "test", watch)
    holders = (LockHolder("nw", "pod-a", 17, "2026-11-30T12:00:00Z"),)
    written = stack.state().written_at
    assert not watch.is_abandoned(holders, written)
    clock.seconds = TAKEN_OVER_AFTER_SECONDS - AGAIN_SECONDS

    assert stack.operate("up", program=None, on_event=lambda event: None).succeeded
    assert clock.seconds == TAKEN_OVER_AFTER_SECONDS


def test_a_holder_on_another_machine_that_writes_the_state_keeps_its_lock(tmp_path: Path) -> None:
    clock = Clock()
    stack = PulumiStack(locked(tmp_path, "build-7", 17), "test", clock.watch())
    at = iter(f"12:{minute}:{second}" for minute in range(10, 60) for second in range(10, 60))
    clock.then = lambda: (tmp_path / "state").write_text(STATE.replace("12:00:00", next(at)))

    with pytest.raises(StackLocked, match="build-7"):
        stack.operate("up", program=None, on_event=lambda event: None)
    assert cancels(tmp_path) == 0


def test_a_lock_that_goes_by_itself_is_not_broken(tmp_path: Path) -> None:
    clock = Clock()
    stack = PulumiStack(locked(tmp_path, "build-7", 17), "test", clock.watch())
    clock.then = lambda: (tmp_path / "lock").unlink()

    assert stack.operate("up", program=None, on_event=lambda event: None).succeeded
    assert cancels(tmp_path) == 0
    assert clock.seconds == AGAIN_SECONDS


def test_who_does_not_hold_the_environment_breaks_no_lock_of_another_machine(tmp_path: Path) -> None:
    stack = PulumiStack(locked(tmp_path, "pod-a", 17), "test")
    with pytest.raises(StackLocked):
        stack.operate("up", program=None, on_event=lambda event: None)
    assert cancels(tmp_path) == 0


def test_a_wish_to_stop_ends_the_wait(tmp_path: Path) -> None:
    clock = Clock()
    stack = PulumiStack(locked(tmp_path, "pod-a", 17), "test", clock.watch())
    clock.then = stack.cli.interrupts.interrupt
    with pytest.raises(KeyboardInterrupt):
        stack.operate("up", program=None, on_event=lambda event: None)
    assert clock.seconds == AGAIN_SECONDS
    assert cancels(tmp_path) == 0


@pytest.mark.parametrize(("comm", "runs"), [(b"pulumi\n", True), (b"python3\n", False)])
def test_only_a_process_that_is_pulumi_counts_as_a_holder_of_this_machine(
    tmp_path: Path, comm: bytes, runs: bool
) -> None:
    told = tmp_path / str(os.getpid())
    told.mkdir()
    (told / "comm").write_bytes(comm)
    (told / "cmdline").write_bytes(b"whatever\0")
    here = LockHolder("nw", socket.gethostname(), os.getpid(), "then")
    assert may_run_here(here, tmp_path) is runs
    assert may_run_here(here, tmp_path / "no-proc")
