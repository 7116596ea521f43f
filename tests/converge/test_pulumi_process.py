"""Running the CLI: a stand-in script shows what is passed to it, and how its end is told."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from engine.converge.events import Event, Summary
from engine.converge.pulumi_process import PulumiCli, run_operation, run_quietly

SUMMARY = json.dumps({"sequence": 1, "summaryEvent": {"result": "succeeded", "resourceChanges": {}}})
STARTED = json.dumps(
    {"sequence": 0, "resourcePreEvent": {"metadata": {"urn": "urn:pulumi:t::p::a$b::n", "op": "create"}}}
)


def cli(folder: Path, body: str, **variables: str) -> PulumiCli:
    """A `pulumi` that runs `body` with `log`, the event log's path, and `say`, which writes a line to it."""
    program = folder / "pulumi"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, signal, sys, time\n"
        "log = next((one[12:] for one in sys.argv if one.startswith('--event-log=')), '/dev/null')\n"
        "def say(text):\n"
        "    with open(log, 'a') as opened:\n"
        "        opened.write(text)\n" + body
    )
    program.chmod(0o755)
    return PulumiCli(program, folder, {"PATH": os.environ["PATH"], **variables})


def test_events_arrive_in_order_and_torn_lines_are_put_together(tmp_path: Path) -> None:
    body = f"say({STARTED[:30]!r}); time.sleep(0.2); say({STARTED[30:]!r} + chr(10)); say({SUMMARY!r} + chr(10))\n"
    seen: list[Event] = []
    done = run_operation(cli(tmp_path, body), ["up"], program=None, on_event=seen.append)
    assert done.succeeded
    assert done.told.is_complete
    assert tuple(seen) == done.told.events
    assert isinstance(seen[-1], Summary)


def test_a_fault_in_what_shows_progress_does_not_lose_the_outcome(tmp_path: Path) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("the display broke")

    body = f"say({STARTED!r} + chr(10) + {SUMMARY!r} + chr(10))\n"
    done = run_operation(cli(tmp_path, body), ["up"], program=None, on_event=broken)
    assert done.told.is_complete
    assert len(done.told.events) == 2


def test_a_process_that_dies_has_an_incomplete_telling(tmp_path: Path) -> None:
    body = f"say({STARTED!r} + chr(10)); os.kill(os.getpid(), signal.SIGKILL)\n"
    done = run_operation(cli(tmp_path, body), ["up"], program=None, on_event=lambda event: None)
    assert done.exit_code == -9
    assert not done.told.is_complete


def test_the_first_interrupt_asks_the_cli_once_and_waits_for_its_end(tmp_path: Path) -> None:
    body = (
        "asked = []\n"
        "signal.signal(signal.SIGINT, lambda *_: asked.append(1))\n"
        f"say({STARTED!r} + chr(10))\n"
        "deadline = time.time() + 20\n"
        "while not asked and time.time() < deadline: time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        f"say({SUMMARY!r} + chr(10))\n"
        "print('asked', len(asked))\n"
    )

    def interrupt_once(event: Event) -> None:
        if not isinstance(event, Summary):
            raise KeyboardInterrupt

    started = time.monotonic()
    done = run_operation(cli(tmp_path, body), ["up"], program=None, on_event=interrupt_once)
    assert time.monotonic() - started < 15
    assert done.was_interrupted
    assert done.output.strip() == "asked 1"
    assert done.told.is_complete


def test_the_child_is_in_a_process_group_of_its_own(tmp_path: Path) -> None:
    done = run_operation(cli(tmp_path, "print(os.getpgid(0))\n"), ["up"], program=None, on_event=lambda event: None)
    assert int(done.output) != os.getpgid(0)


@pytest.mark.parametrize("name", ["PULUMI_EXPERIMENTAL", "PULUMI_SKIP_CHECKPOINTS", "PULUMI_CONTINUE_ON_ERROR"])
def test_a_shells_setting_that_would_change_an_update_does_not_reach_it(tmp_path: Path, name: str) -> None:
    pulumi = cli(tmp_path, "print(sorted(os.environ))\n", **{name: "true", "PULUMI_BACKEND_URL": "file:///x"})
    seen = run_quietly(pulumi, ["stack", "export"]).output
    assert name not in seen
    assert "PULUMI_BACKEND_URL" in seen
    assert "PULUMI_SKIP_UPDATE_CHECK" in seen


def test_a_cli_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_quietly(PulumiCli(tmp_path / "nothing", tmp_path, {}), ["version"])


def test_an_interrupt_from_another_thread_reaches_the_process_and_lets_no_other_begin(tmp_path: Path) -> None:
    body = (
        "def stopped(*_):\n"
        f"    say({SUMMARY!r} + chr(10)); sys.exit(1)\n"
        "signal.signal(signal.SIGINT, stopped)\n"
        f"say({STARTED!r} + chr(10))\n"
        "time.sleep(60)\n"
    )
    program = cli(tmp_path, body)
    begun, finished = threading.Event(), []
    lane = threading.Thread(
        target=lambda: finished.append(run_operation(program, ["up"], program=None, on_event=lambda event: begun.set()))
    )
    lane.start()
    assert begun.wait(timeout=30)

    program.interrupts.interrupt()
    lane.join(timeout=30)

    [done] = finished
    assert (done.exit_code, done.was_interrupted, done.told.is_complete) == (1, True, True)
    with pytest.raises(KeyboardInterrupt):
        run_operation(program, ["up"], program=None, on_event=lambda event: None)


def test_the_collector_is_stilled_only_where_no_plugin_would_inherit_that(tmp_path: Path) -> None:
    program = cli(tmp_path, "", GOMEMLIMIT="1GiB")

    assert "GOGC" not in program.operating_environment({})
    attached = program.operating_environment({"PULUMI_DEBUG_PROVIDERS": "aws:1"})
    assert (attached["GOGC"], attached["GOMEMLIMIT"], attached["PULUMI_DEBUG_PROVIDERS"]) == ("off", "1GiB", "aws:1")
