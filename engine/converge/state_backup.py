"""A state file that a killed CLI left cut off, and the one before it that Pulumi keeps beside it.

The file backend writes in place, so a kill in the middle of a write leaves half a file. What was made since the backup
is found again by its tags, as after any other kill.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from engine.converge.faults import LockHolder
from engine.converge.state_file import backend_folder


def take_up_backup(variables: Mapping[str, str], stack: str, is_dead: Callable[[LockHolder], bool]) -> bool:
    """Put the state before it in the place of a stack's damaged file; whether that was done.

    The damaged file is kept as ``STACK.json.damaged``. Nothing is touched where the backend is no folder of this
    machine, where the file is whole after all, or while a process that may live holds the stack's lock: its own write
    may be what was read half-way.
    """
    backend = backend_folder(variables)
    if backend is None or any(not is_dead(holder) for holder in _holders(backend, stack)):
        return False
    files = list((backend / "stacks").glob(f"*/{stack}.json"))
    if len(files) != 1 or _is_whole(files[0]):
        return False
    damaged, backup = files[0], files[0].with_name(f"{stack}.json.bak")
    os.replace(damaged, damaged.with_name(f"{stack}.json.damaged"))
    if _is_whole(backup):
        unfinished = damaged.with_name(f".{stack}.json.part")
        unfinished.write_bytes(backup.read_bytes())
        os.replace(unfinished, damaged)
    return True


def _holders(backend: Path, stack: str) -> Iterator[LockHolder]:
    for lock in (backend / "locks").glob(f"*/*/{stack}/*.json"):
        try:
            told = json.loads(lock.read_text())
            yield LockHolder(told["username"], told["hostname"], int(told["pid"]), str(told.get("timestamp", "")))
        except (OSError, ValueError, KeyError, TypeError):
            # A lock that cannot be read may be anybody's.
            yield LockHolder("", "", 0, "")


def _is_whole(file: Path) -> bool:
    try:
        json.loads(file.read_bytes())
    except (OSError, ValueError):
        return False
    return True
