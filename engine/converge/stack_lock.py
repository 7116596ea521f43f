"""The lock that Pulumi's CLI leaves on a stack when it is killed, and when it may be broken.

Pulumi writes a lock once, with the name of its host and its process, and never renews it. A process of this machine can
be looked for. One of another machine cannot: that it is gone is only to be concluded from its silence, by somebody who
holds the environment's Lease.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from engine.converge.faults import LockHolder

# A runner that is gone lost the Lease long before. A `pulumi up` by hand takes none, and the AWS plugin may write
# nothing while it waits for an instance, ten minutes by default: breaking that lock would cost the state.
TAKEN_OVER_AFTER_SECONDS = 600.0
AGAIN_SECONDS = 20.0
_PROCESSES = Path("/proc")


def is_dead(holder: LockHolder) -> bool:
    """Whether a lock's holder certainly runs no more: a process of this machine whose number nobody has."""
    if holder.host != socket.gethostname():
        return False
    with contextlib.suppress(PermissionError):
        try:
            os.kill(holder.pid, 0)
        except ProcessLookupError:
            return True
    return False


def may_run_here(holder: LockHolder, processes: Path = _PROCESSES) -> bool:
    """Whether a process of this machine has the holder's number and is Pulumi, or cannot be told from it."""
    if holder.host != socket.gethostname() or is_dead(holder):
        return False
    told = processes / str(holder.pid)
    try:
        program = (told / "cmdline").read_bytes().partition(b"\0")[0]
        return b"pulumi" in program or b"pulumi" in (told / "comm").read_bytes()
    except OSError:
        return True


class LockWatch:
    """How long a stack's lock has been seen without any sign of its holder, by this process's own clock."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.monotonic, self.sleep = monotonic, sleep
        self._seen: object = None
        self._since = 0.0

    def is_abandoned(self, holders: tuple[LockHolder, ...], written: object) -> bool:
        """Whether the same lock, and the same state as `written` tells, have been there for long enough."""
        if (holders, written) != self._seen:
            self._seen, self._since = (holders, written), self.monotonic()
        return self.monotonic() - self._since >= TAKEN_OVER_AFTER_SECONDS
