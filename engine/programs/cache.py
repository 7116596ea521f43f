"""Where Nodewright keeps what it builds or downloads, and who may be at it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Tell = Callable[[str], None]

PROGRESS_EVERY_SECONDS = 5


def user_cache_dir(environment: Mapping[str, str]) -> Path:
    """Where nodewright keeps what it builds or downloads: in XDG_CACHE_HOME, else in ~/.cache."""
    chosen = environment.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path here is to be ignored.
    root = Path(chosen) if os.path.isabs(chosen) else Path(environment.get("HOME") or Path.home()) / ".cache"
    return root / "nodewright"


@contextlib.contextmanager
def one_at_a_time(home: Path, named: str, tell: Tell) -> Iterator[None]:
    """Hold the folder's lock while ``named`` is prepared in it; a second run waits for the first and says so."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w", encoding="utf-8") as lock:
        waited_seconds = 0
        while not _locked(lock.fileno()):
            if waited_seconds % PROGRESS_EVERY_SECONDS == 0:
                tell(f"another run is preparing {named}; waiting ({waited_seconds} s)")
            time.sleep(1)
            waited_seconds += 1
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
