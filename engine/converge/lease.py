"""The lease of an environment: one process at a time may publish and converge."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from attrs import asdict, frozen

from engine.model.fault import Fault


@frozen
class LeaseHolder:
    """Who holds a lease. `since` is an ISO 8601 time in UTC."""

    pid: int
    host: str
    command: str
    since: str

    @classmethod
    def this_process(cls) -> LeaseHolder:
        command = " ".join([Path(sys.argv[0] or "python").name, *sys.argv[1:]])
        since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return cls(pid=os.getpid(), host=socket.gethostname(), command=command, since=since)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (`{self.command}`, since {self.since})"


class LeaseHeld(Fault):
    """Another process is at work on this environment. `holder` is None in the instant before it has signed."""

    def __init__(self, environment: str, holder: LeaseHolder | None) -> None:
        self.holder = holder
        who = str(holder) if holder else "another process"
        super().__init__(
            f"environment {environment!r} is being changed by {who}",
            "wait until it has ended and run again, or stop it with Ctrl-C in its terminal",
        )


@contextlib.contextmanager
def held_lease(file: Path, environment: str) -> Iterator[LeaseHolder]:
    """Hold the lease while the block runs; the system releases it when the process dies, however that happens.

    Raises LeaseHeld, without waiting; Fault when the file cannot be written.
    """
    try:
        opened = file.open("a+", encoding="utf-8")
    except OSError as error:
        raise Fault(f"{file}: {error.strerror}", "make the store's folder writable") from error
    with opened:
        try:
            fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LeaseHeld(environment, lease_holder(file)) from None
        holder = LeaseHolder.this_process()
        opened.truncate(0)
        opened.write(json.dumps(asdict(holder)))
        opened.flush()
        try:
            yield holder
        finally:
            opened.truncate(0)


def lease_holder(file: Path) -> LeaseHolder | None:
    """What the lease's last holder wrote; None when nobody has signed."""
    try:
        return LeaseHolder(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
