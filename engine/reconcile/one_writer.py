"""One process at a time changes an environment: a lock on its store, and a Lease in a cluster that others share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from engine.converge.lease import LeaseHeld
from engine.converge.store import DocumentStore
from engine.model.fault import Fault
from engine.reconcile.ports import PassLease, Ports, Tell

# A Lease whose holder was killed frees itself within its length of 15 s; a runner between two passes lets go at once.
PATIENCE_SECONDS = 20.0
_AGAIN_SECONDS = 0.25


class EnvironmentHeld(Fault):
    """Somebody else changes this environment; who, is in the message."""


class StoreLease:
    """The lock on the store's folder: for an environment whose cluster nobody else can reach."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._held: ExitStack | None = None

    def take(self) -> str:
        if self._held is not None:
            return ""
        entered = ExitStack()
        try:
            entered.enter_context(self._store.lease())
        except LeaseHeld as held:
            return str(held.holder or "another process")
        self._held = entered
        return ""

    def is_held(self) -> bool:
        return self._held is not None

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def remove(self) -> None:
        """A lock that is let go leaves nothing but a line in the store, which outlives the environment anyway."""

    def look(self) -> None:
        """There is nothing to see that taking it would not show."""

    def paused(self) -> str:
        return ""


class BothLeases:
    """The store's lock first, then the cluster's Lease: processes of one machine never compete for the latter."""

    def __init__(self, store: PassLease, cluster: PassLease) -> None:
        self._store, self._cluster = store, cluster

    def take(self) -> str:
        other = self._store.take()
        if other:
            return other
        try:
            other = self._cluster.take()
        except BaseException:
            self._store.release()
            raise
        if other:
            self._store.release()
        return other

    def is_held(self) -> bool:
        return self._store.is_held() and self._cluster.is_held()

    def release(self) -> None:
        self._cluster.release()
        self._store.release()

    def remove(self) -> None:
        self._cluster.remove()
        self._store.remove()

    def look(self) -> None:
        self._cluster.look()

    def paused(self) -> str:
        return self._cluster.paused()


@contextmanager
def sole_writer(
    ports: Ports,
    tell: Tell,
    patience_seconds: float = PATIENCE_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Be the one who changes the environment while the block runs. Raises EnvironmentHeld once patience is over."""
    waited, other = 0.0, ports.lease.take()
    if other:
        tell(f"waiting for {other}, who changes environment {ports.environment.name}")
    while other:
        if waited >= patience_seconds:
            raise EnvironmentHeld(
                f"environment {ports.environment.name!r} is being changed by {other}",
                "wait until that has ended and run again, or stop it",
            )
        sleep(_AGAIN_SECONDS)
        waited += _AGAIN_SECONDS
        other = ports.lease.take()
    try:
        yield
    finally:
        ports.lease.release()
