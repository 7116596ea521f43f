"""A stack's state as the file backend keeps it, read without starting a process.

`pulumi stack export` takes a quarter of a second, and prints what lies in a file that this machine can read. Only the
layout that is known is read so: anything else is left to the CLI, which also says what is wrong.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from attrs import frozen

from engine.converge import urns
from engine.converge.state import StackState, StateUnreadable, state_of_export

# What Pulumi calls `apitype.VersionedCheckpoint`; a later one may keep resources elsewhere.
KNOWN_VERSION = 3


@frozen
class _Stamp:
    """Which writing of a file was read. The backend writes in place, so that the inode alone tells little."""

    mtime_ns: int
    size: int
    inode: int


class StateFile:
    """The file of one stack; remembers what it read last, so that an unchanged file is not read again."""

    def __init__(self, variables: Mapping[str, str], stack: str) -> None:
        self._stack = stack
        folder = backend_folder(variables)
        self._file = folder / "stacks" / urns.PROJECT / f"{stack}.json" if folder else None
        self._read: tuple[_Stamp, StackState] | None = None

    def state(self) -> StackState | None:
        """The state; None where the CLI has to be asked: another backend or layout, no such file, a damaged one.

        Secrets in it stay as they are written, in cipher, as in an export.
        """
        file = self._existing()
        if file is None:
            return None
        try:
            # Before it is read: what is written meanwhile then counts as new.
            stamp = _stamp_of(file)
            if self._read is not None and self._read[0] == stamp:
                return self._read[1]
            content = file.read_bytes()
            state = state_of_export(self._stack, _as_exported(json.loads(_plain(file, content))))
        except (OSError, ValueError, KeyError, TypeError, EOFError, StateUnreadable):
            return None
        self._read = (stamp, state)
        return state

    def _existing(self) -> Path | None:
        """The one file of the stack; None for none, and for two, of which only Pulumi knows which one counts."""
        if self._file is None:
            return None
        found = [file for file in (self._file, self._file.with_name(self._file.name + ".gz")) if file.exists()]
        return found[0] if len(found) == 1 else None


def backend_folder(variables: Mapping[str, str]) -> Path | None:
    """The folder on this machine in which Pulumi's file backend keeps everything; None for any other backend."""
    parts = urlsplit(variables.get("PULUMI_BACKEND_URL", ""))
    is_here = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
    return Path(unquote(parts.path)) / ".pulumi" if is_here else None


def _stamp_of(file: Path) -> _Stamp:
    found = file.stat()
    return _Stamp(found.st_mtime_ns, found.st_size, found.st_ino)


def _plain(file: Path, content: bytes) -> bytes:
    return gzip.decompress(content) if file.suffix == ".gz" else content


def _as_exported(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The same as `pulumi stack export` prints. Raises KeyError, TypeError, ValueError for an unknown layout."""
    if kept["version"] != KNOWN_VERSION or kept.get("features"):
        raise ValueError("another layout")
    latest = kept["checkpoint"].get("latest") or {}
    if not isinstance(latest.get("resources") or [], list):
        raise ValueError("another layout")
    return {"version": KNOWN_VERSION, "deployment": latest}
