"""A cluster that is known at all times: each kind is listed, then watched, and nothing is said until all are."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from engine.observe.board import Board
from engine.observe.cluster_facts import ClusterFacts, Shelves
from engine.observe.failure import NotSynced
from engine.observe.kinds import KARPENTER_LEASES
from engine.observe.live_kind import LiveKind
from engine.observe.watch import KindWatch, Patience, Watchable

_STOPPING_SECONDS = 10.0


class LiveCluster:
    """All that a pass needs of a cluster, kept current by list-and-watch, one thread per kind."""

    def __init__(
        self,
        api_server: Watchable,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        patience: Patience = Patience(),
    ) -> None:
        self._board = Board()
        self._shelves = Shelves(now)
        self._kinds = {name: LiveKind(shelf, self._board, monotonic) for name, shelf in self._shelves.by_kind.items()}
        self._watches = [
            KindWatch(api_server, live.shelf.kind, live, patience, monotonic, jitter) for live in self._kinds.values()
        ]
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to follow the cluster, and return at once."""
        for watch, name in zip(self._watches, self._kinds, strict=True):
            thread = threading.Thread(target=self._keep_current, args=(watch,), name=f"watch-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Let go of the cluster. A second time does nothing."""
        self._stopping.set()
        for watch in self._watches:
            watch.interrupt()
        self._board.wake()
        ends_at = time.monotonic() + _STOPPING_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, ends_at - time.monotonic()))
        self._threads.clear()

    def is_synced(self) -> bool:
        """Whether every kind was listed whole and none is in doubt."""
        return not self.unsynced()

    def unsynced(self) -> tuple[str, ...]:
        """The kinds that may not be believed, each with the reason, such as ``pods: it was not listed yet``."""
        with self._board.lock:
            reasons = ((name, live.unsynced()) for name, live in self._kinds.items())
            return tuple(f"{name}: {why}" for name, why in reasons if why)

    def facts(self) -> ClusterFacts:
        """What the cluster holds now; parts that did not change are the same values as before. Raises NotSynced."""
        with self._board.lock:
            if waiting := self.unsynced():
                raise NotSynced(
                    f"the cluster is not known whole: {'; '.join(waiting)}",
                    "nothing is decided until it is; this mends itself once the API server answers",
                )
            gaps = [gap for live in self._kinds.values() if (gap := live.gap()) is not None]
            return self._shelves.facts(gaps, self._kinds[KARPENTER_LEASES.name].seconds_since_renewal())

    def revision(self) -> int:
        """Grows when something that a decision could depend on changed; heartbeats are nothing of the kind."""
        return self._board.revision

    def wait_for_change(self, after: int, timeout_seconds: float) -> int:
        """The revision, once it is more than ``after``.

        Also when a kind came into doubt or out of it, on ``poke``, on ``stop`` and when the time is over.
        """
        if self._stopping.is_set():
            return self._board.revision
        return self._board.wait(after, timeout_seconds)

    def poke(self) -> None:
        """Wake who waits for a change, now or next."""
        self._board.wake()

    def _keep_current(self, watch: KindWatch) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(watch.step())
