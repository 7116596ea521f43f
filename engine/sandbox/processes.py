"""Background processes, known by pid and start time: a pid alone may be another process's by now."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from attrs import frozen

_POLL_SECONDS = 0.02


@frozen
class Process:
    """``started`` is when the process began, in whatever words the system has for it."""

    pid: int
    started: str


def process_of(pid: int) -> Process | None:
    """The process that has this pid now; None when there is none, or only what is left of one that ended."""
    with contextlib.suppress(ChildProcessError):
        # A child of ours that ended keeps its pid until somebody asks how.
        os.waitpid(pid, os.WNOHANG)
    started = _started(pid)
    return None if started is None else Process(pid, started)


def is_alive(process: Process) -> bool:
    """Whether that very process runs; also when it is paused."""
    return process_of(process.pid) == process


def stop(process: Process, patience_seconds: float) -> None:
    """Ask a process to end, and kill it when it has not within ``patience_seconds``; returns when it is gone."""
    if not is_alive(process):
        return
    _signal(process, signal.SIGTERM)
    # A paused process hears of it only once it goes on.
    _signal(process, signal.SIGCONT)
    if not _gone_within(process, patience_seconds):
        _signal(process, signal.SIGKILL)
        _gone_within(process, patience_seconds)


def pause(process: Process) -> None:
    """Freeze a process: it keeps its connections and answers nothing."""
    _signal(process, signal.SIGSTOP)


def resume(process: Process) -> None:
    _signal(process, signal.SIGCONT)


def _signal(process: Process, number: signal.Signals) -> None:
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _gone_within(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _started(pid: int) -> str | None:
    table = Path("/proc/self/stat")
    return _started_by_proc(pid) if table.exists() else _started_by_ps(pid)


def _started_by_proc(pid: int) -> str | None:
    """Linux: clock ticks since boot, field 22 of /proc/PID/stat (proc(5)); field 2, a name, may hold spaces."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started


def _started_by_ps(pid: int) -> str | None:
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
    )
    state, _, started = done.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()
