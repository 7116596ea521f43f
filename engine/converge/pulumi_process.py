"""Running the Pulumi CLI as a child process: its environment, its program, its events, its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from pathlib import Path
from typing import IO

import grpc
import pulumi
from attrs import frozen
from pulumi.automation import _server as sdk_server
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import language_pb2_grpc

from engine.converge.events import Event, EventReader, Told

Program = Callable[[], None]
OnEvent = Callable[[Event], None]

POLL_SECONDS = 0.05
PARALLEL_STEPS = 32
# Waits, not work: an operation stands still while a machine boots. 4 threads serve the engine's few calls.
SERVER_THREADS = 4

# Each changes what an operation does or prints; what a person's shell says about them must not matter here.
_NOT_INHERITED = ("PULUMI_EXPERIMENTAL", "PULUMI_SKIP_CHECKPOINTS", "PULUMI_CONTINUE_ON_ERROR", "PULUMI_NEO")
_ALWAYS = {
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    # The event log's switch exists only among the CLI's debugging commands.
    "PULUMI_DEBUG_COMMANDS": "true",
    # A copy of the whole state for every update would fill the disk of a loop; the newest one is kept anyway.
    "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
}


@frozen
class PulumiCli:
    """How the CLI is called for one project: `variables` are a whole environment, PATH and credentials included."""

    program: Path
    project: Path
    variables: Mapping[str, str]

    def child_environment(self) -> dict[str, str]:
        kept = {name: value for name, value in self.variables.items() if name not in _NOT_INHERITED}
        return {**kept, **_ALWAYS}


@frozen
class Finished:
    """How a CLI process ended. `exit_code` is negative when a signal killed it."""

    exit_code: int
    output: str
    errors: str
    told: Told = Told((), is_complete=False)
    was_interrupted: bool = False

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0


def run_quietly(cli: PulumiCli, arguments: Sequence[str], stdin: str | None = None) -> Finished:
    """Run a short command to its end, such as `stack export`. Raises OSError when there is no such CLI."""
    done = subprocess.run(
        [str(cli.program), *arguments, "--non-interactive"],
        cwd=cli.project,
        env=cli.child_environment(),
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def run_operation(
    cli: PulumiCli,
    arguments: Sequence[str],
    *,
    program: Program | None,
    on_event: OnEvent,
) -> Finished:
    """Run an update, preview, refresh or destroy, with `program` served from this process.

    The child has a process group of its own, so that Ctrl-C reaches it through us and once: the first lets steps
    in flight finish, the second aborts. There is no time limit: killing a launch orphans a machine.
    Events reach `on_event` in this thread, in order; a fault in it is swallowed, since the outcome matters more.
    Raises OSError when there is no such CLI.
    """
    with contextlib.ExitStack() as held:
        scratch = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="nodewright-")))
        log, output, errors = scratch / "events", scratch / "output", scratch / "errors"
        log.touch()
        command = [str(cli.program), *arguments, "--non-interactive", "--color=never", f"--event-log={log}"]
        if program is not None:
            address = held.enter_context(_served(program))
            command += [f"--client={address}", "--exec-kind=auto.inline"]
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                command,
                cwd=cli.project,
                env=cli.child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        reader = EventReader()
        with log.open(encoding="utf-8") as lines:
            was_interrupted = _watch(process, _Tail(lines), reader, on_event)
        return Finished(
            process.returncode,
            output.read_text(encoding="utf-8", errors="replace"),
            errors.read_text(encoding="utf-8", errors="replace"),
            reader.told(),
            was_interrupted,
        )


class _Tail:
    """Whole lines of a file that is still being written."""

    def __init__(self, lines: IO[str]) -> None:
        self._lines = lines
        self._partial = ""

    def fresh(self) -> Iterator[str]:
        while chunk := self._lines.readline():
            self._partial += chunk
            if chunk.endswith("\n"):
                line, self._partial = self._partial, ""
                yield line


def _watch(process: subprocess.Popen[bytes], tail: _Tail, reader: EventReader, on_event: OnEvent) -> bool:
    """Read events until the process has ended; whether it was interrupted by a person."""
    interrupts = 0
    is_over = False
    while not is_over:
        try:
            is_over = process.poll() is not None
            for line in tail.fresh():
                event = reader.read(line)
                if event is not None:
                    with contextlib.suppress(Exception):
                        on_event(event)
            if not is_over:
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            interrupts += 1
            is_over = False
            # The first lets the steps in flight finish, the second aborts them; a third is a person in despair.
            _signal_group(process, signal.SIGINT if interrupts < 3 else signal.SIGKILL)
    return interrupts > 0


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """To the CLI alone: its plugins are told by it when to stop; a kill goes to all of them."""
    with contextlib.suppress(ProcessLookupError):
        if number is signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


class _LogToEngine:
    """`pulumi.log` for the SDK's server of inline programs: an engine that was killed cannot be told of anything.

    The server would stumble over that on its way out, and leave the program's tasks behind unfinished.
    """

    def debug(self, message: str) -> None:
        with contextlib.suppress(grpc.RpcError):
            pulumi.log.debug(message)

    def error(self, message: str) -> None:
        with contextlib.suppress(grpc.RpcError):
            pulumi.log.error(message)


sdk_server.log = _LogToEngine()  # type: ignore[attr-defined,assignment]


@contextlib.contextmanager
def _served(program: Program) -> Iterator[str]:
    """Serve the program to the engine on loopback; the address."""
    server = grpc.server(futures.ThreadPoolExecutor(SERVER_THREADS), options=_GRPC_CHANNEL_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(sdk_server.LanguageServer(program), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(grace=0)
