"""One build by Go: watched, told of every few seconds, ended with the run that started it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from engine.model.fault import Fault
from engine.programs.cache import PROGRESS_EVERY_SECONDS, Tell

_NETWORK = re.compile(r"dial tcp|no such host|i/o timeout|connection refused|TLS handshake|Bad Gateway|Proxy")
_NO_SPACE = re.compile(r"no space left|disk quota")
_SHOWN_LINES = 5


class ProgramError(Fault):
    """A program is not there and cannot be made. ``hints`` say what a person can do, easiest first."""


def go_on(path: str, named: str) -> str:
    """The Go on a PATH. Raises ProgramError when there is none."""
    go = shutil.which("go", path=path)
    if go is None:
        raise ProgramError(
            f"{named} cannot be built: there is no `go` on PATH",
            ("install Go 1.26 or later (https://go.dev/dl/), and run again",),
        )
    return go


def build_environment(path: str) -> dict[str, str]:
    """Variables that a build of a pinned module wants; the rest is the user's: proxies, caches."""
    return {**os.environ, "PATH": path, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}


def run_build(command: Sequence[str], folder: Path, path: str, log: Path, named: str, tell: Tell) -> None:
    """Run a build in ``folder`` until it ends; its output goes to ``log``, in which each line is a compiled package.

    Raises ProgramError with the log's last lines when it fails. An interrupted run takes its compiler with it.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=build_environment(path),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = _watched(process, log, named, tell)
        finally:
            _stopped(process)
    if code != 0:
        last = "\n".join(_lines(log)[-_SHOWN_LINES:])
        raise ProgramError(f"{named}: the build failed (exit code {code}), see {log}:\n{last}", _ways_out(last, log))


def require_free_space(folder: Path, needed_bytes: int, named: str, kept_there: str) -> None:
    """Raises ProgramError when the file system of a folder, which need not exist, has less room than a build wants."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free_bytes = shutil.disk_usage(there).free
    if free_bytes < needed_bytes:
        raise ProgramError(
            f"{named} needs {needed_bytes / 1e9:.1f} GB free for {kept_there} in {folder}, "
            f"and there are {free_bytes / 1e9:.1f} GB",
            (
                f"free some space on the file system of {there}",
                "put the caches on another one: GOCACHE for Go's, XDG_CACHE_HOME for ours",
            ),
        )


def _watched(process: subprocess.Popen[bytes], log: Path, named: str, tell: Tell) -> int:
    started = time.monotonic()
    while True:
        try:
            return process.wait(timeout=PROGRESS_EVERY_SECONDS)
        except subprocess.TimeoutExpired:
            elapsed_seconds = round(time.monotonic() - started)
            tell(f"building {named}: {elapsed_seconds} s, {len(_lines(log))} packages compiled")


def _stopped(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()


def _ways_out(last: str, log: Path) -> tuple[str, ...]:
    if _NO_SPACE.search(last):
        return ("free some disk space, or put Go's cache elsewhere: GOCACHE, GOMODCACHE", f"the whole log: {log}")
    if _NETWORK.search(last):
        return ("allow downloads of Go modules, or name where to get them in GOPROXY",)
    return (f"the whole log: {log}",)
