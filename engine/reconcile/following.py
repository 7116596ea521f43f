"""A cluster that is followed: watched, or where it cannot be, looked at again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from engine.model.document import DesiredDocument
from engine.model.snapshot import CloudFacts
from engine.observe.cluster import ClusterFacts
from engine.observe.live_cluster import LiveCluster
from engine.reconcile.ports import ClusterSource

POLL_SECONDS = 1.0


class Polled:
    """Reads the whole cluster every ``poll_seconds`` while it is waited for, and counts each difference as a change."""

    def __init__(
        self,
        cluster: ClusterSource,
        poll_seconds: float = POLL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._poll_seconds, self._monotonic = cluster, poll_seconds, monotonic
        self._poked = threading.Event()
        self._revision = 1
        self._last: tuple[CloudFacts, DesiredDocument | None, ClusterFacts] | None = None

    def start(self) -> None:
        """There is nothing to start."""

    def stop(self) -> None:
        self._poked.set()

    def unsynced(self) -> tuple[str, ...]:
        return ()

    def facts(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts:
        """All of it, as of now. Raises Fault."""
        facts = self._cluster.read(cloud, document)
        self._last = (cloud, document, facts)
        return facts

    def revision(self) -> int:
        return self._revision

    def wait_for_change(self, after: int, timeout_seconds: float) -> int:
        until = self._monotonic() + timeout_seconds
        while self._revision <= after and (left := until - self._monotonic()) > 0:
            if self._poked.wait(min(left, self._poll_seconds)):
                self._poked.clear()
                break
            if self._last is not None and left > self._poll_seconds:
                cloud, document, before = self._last
                if self.facts(cloud, document) != before:
                    self._revision += 1
        return self._revision

    def poke(self) -> None:
        self._poked.set()


class Watched:
    """A real cluster by list and watch: it knows its nodes by itself."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster

    def start(self) -> None:
        self._cluster.start()

    def stop(self) -> None:
        self._cluster.stop()

    def unsynced(self) -> tuple[str, ...]:
        return self._cluster.unsynced()

    def facts(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts:
        """What it holds now. Raises NotSynced."""
        return self._cluster.facts()

    def revision(self) -> int:
        return self._cluster.revision()

    def wait_for_change(self, after: int, timeout_seconds: float) -> int:
        return self._cluster.wait_for_change(after, timeout_seconds)

    def poke(self) -> None:
        self._cluster.poke()
