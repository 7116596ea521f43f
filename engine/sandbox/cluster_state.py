"""The simulated cluster's memory: lists of Kubernetes objects in one JSON file, changed by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attrs import Factory, define

from engine.model.fault import Fault

KubernetesObject = dict[str, Any]

STATE_FILE = "cluster.json"
_LOCK_FILE = "cluster.lock"
_SCHEMA = 1


class SandboxClusterError(Fault):
    """The simulated cluster's file is not what this version writes."""


@define
class ClusterState:
    """What the simulated API server holds."""

    pods: list[KubernetesObject] = Factory(list)
    nodes: list[KubernetesObject] = Factory(list)
    daemon_sets: list[KubernetesObject] = Factory(list)


class ClusterFile:
    """The state in a directory. ``first`` makes it where there is none yet."""

    def __init__(self, state_dir: Path, first: Callable[[], ClusterState]) -> None:
        self._dir = state_dir
        self._file = state_dir / STATE_FILE
        self._first = first

    def state(self) -> ClusterState:
        """The state as it stands; a cluster that nobody has touched yet is not written by looking at it."""
        return self._loaded() or self._first()

    @contextlib.contextmanager
    def changing(self) -> Iterator[ClusterState]:
        """The state, kept as the block leaves it; the file is replaced whole, and only when something changed."""
        self._dir.mkdir(parents=True, exist_ok=True)
        with (self._dir / _LOCK_FILE).open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self._file.read_bytes() if self._file.exists() else b""
            state = self.state()
            yield state
            after = _written(state)
            if after != before:
                beside = self._file.with_suffix(".new")
                beside.write_bytes(after)
                os.replace(beside, self._file)

    def _loaded(self) -> ClusterState | None:
        try:
            stored = json.loads(self._file.read_bytes())
            if stored["schema"] != _SCHEMA:
                raise ValueError(f"it has schema {stored['schema']}, this version reads {_SCHEMA}")
            return ClusterState(
                pods=list(stored["pods"]),
                nodes=list(stored["nodes"]),
                daemon_sets=list(stored["daemonSets"]),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise SandboxClusterError(
                f"{self._file} is no state of a simulated cluster: {error}",
                f"delete {self._file}: the sandbox's workload then begins anew",
            ) from None


def _written(state: ClusterState) -> bytes:
    stored = {
        "schema": _SCHEMA,
        "nodes": state.nodes,
        "daemonSets": state.daemon_sets,
        "pods": state.pods,
    }
    return json.dumps(stored, separators=(",", ":"), sort_keys=True).encode()
