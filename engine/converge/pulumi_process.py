"""Running the Pulumi CLI as a child process: its environment, its program, its events, its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import grpc
import pulumi
from attrs import field, frozen
from pulumi.automation import _server as sdk_server
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import language_pb2_grpc

from engine.converge.events import Event, EventReader, Told

Program = Callable[[], None]
OnEvent = Callable[[Event], None]

# While an update is young its events are worth having at once; a machine's boot takes minutes.
POLL_SECONDS, EARLY_POLL_SECONDS, EARLY_SECONDS = 0.05, 0.01, 3.0
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
# The CLI lives for seconds and collects garbage on the cores that it works on: without, it is up a third sooner. The
# limit, at which it collects all the same, is beyond what a state of a thousand machines takes.
_NO_COLLECTING = {"GOGC": "off", "GOMEMLIMIT": "384MiB"}


class Interrupts:
    """A person's wish to stop, told to every CLI process of a session, whichever thread watches it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self.count = 0

    def interrupt(self) -> None:
        """The first lets the steps in flight finish, the second aborts them; a third is a person in despair."""
        with self._lock:
            self.count += 1
            for process in self._processes:
                _interrupt(process, self.count)

    @contextlib.contextmanager
    def reaching(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Let interrupts reach the process; those of a moment ago, too."""
        with self._lock:
            self._processes.add(process)
            if self.count:
                _interrupt(process, self.count)
        try:
            yield
        finally:
            with self._lock:
                self._processes.discard(process)


@contextlib.contextmanager
def nothing_attached() -> Iterator[Mapping[str, str]]:
    """Each engine starts its own plugins."""
    yield {}


@frozen
class PulumiCli:
    """How the CLI is called for one project: `variables` are a whole environment, PATH and credentials included.

    `attached` is held around each operation; it gives the variables by which the engine uses a plugin that runs
    already, or none. Once `interrupts` were called no operation begins any more.
    """

    program: Path
    project: Path
    variables: Mapping[str, str]
    attached: Callable[[], AbstractContextManager[Mapping[str, str]]] = nothing_attached
    interrupts: Interrupts = field(factory=Interrupts)

    def child_environment(self) -> dict[str, str]:
        kept = {name: value for name, value in self.variables.items() if name not in _NOT_INHERITED}
        return {**kept, **_ALWAYS}

    def operating_environment(self, attached: Mapping[str, str]) -> dict[str, str]:
        """The same for an operation. A plugin that the engine starts would inherit the collector's settings."""
        return {**(_NO_COLLECTING if attached else {}), **self.child_environment(), **attached}


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
    Raises OSError when there is no such CLI, KeyboardInterrupt when the session was interrupted before.
    """
    if cli.interrupts.count:
        raise KeyboardInterrupt
    with contextlib.ExitStack() as held:
        scratch = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="nodewright-")))
        log, output, errors = scratch / "events", scratch / "output", scratch / "errors"
        log.touch()
        command = [str(cli.program), *arguments, "--non-interactive", "--color=never", f"--event-log={log}"]
        if program is not None:
            address = held.enter_context(_served(program))
            command += [f"--client={address}", "--exec-kind=auto.inline"]
        attached = held.enter_context(cli.attached())
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                command,
                cwd=cli.project,
                env=cli.operating_environment(attached),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        reader = EventReader()
        with log.open(encoding="utf-8") as lines, cli.interrupts.reaching(process):
            was_interrupted = _watch(process, _Tail(lines), reader, on_event) or cli.interrupts.count > 0
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
    early_until = time.monotonic() + EARLY_SECONDS
    while not is_over:
        try:
            is_over = process.poll() is not None
            for line in tail.fresh():
                event = reader.read(line)
                if event is not None:
                    with contextlib.suppress(Exception):
                        on_event(event)
            if not is_over:
                time.sleep(EARLY_POLL_SECONDS if time.monotonic() < early_until else POLL_SECONDS)
        except KeyboardInterrupt:
            interrupts += 1
            is_over = False
            _interrupt(process, interrupts)
    return interrupts > 0


def _interrupt(process: subprocess.Popen[bytes], time_round: int) -> None:
    """Twice to the CLI alone, which tells its plugins when to stop; then a kill, to all of them."""
    with contextlib.suppress(ProcessLookupError):
        if time_round < 3:
            process.send_signal(signal.SIGINT)
        else:
            os.killpg(process.pid, signal.SIGKILL)


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
