"""How a simulated world behaves: how long things take, what EC2 is short of, and what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from random import Random

from attrs import field, frozen

from engine.simulate.binding import Scoring


@frozen
class Spread:
    """A length of time that is drawn anew each time, evenly between two ends."""

    least: timedelta
    most: timedelta

    @classmethod
    def seconds(cls, least: float, most: float | None = None) -> Spread:
        """``most`` is ``least`` by default."""
        return cls(timedelta(seconds=least), timedelta(seconds=least if most is None else most))

    def drawn(self, chance: Random) -> timedelta:
        """Whole milliseconds, so that no sum depends on how a fraction is rounded."""
        least, most = (round(each.total_seconds() * 1000) for each in (self.least, self.most))
        return timedelta(milliseconds=chance.randint(least, most))


@frozen
class Latencies:
    """How long each step takes: ``run`` from the call to a running instance, ``register`` until its node is there,
    ``ready`` until that is ready, ``plugin`` until its accelerators are advertised, ``start`` from a pod's binding to
    its first container, ``converge`` until the outcome of a launch is known, ``terminate`` until a machine is gone,
    ``recreate`` until a controller makes a pod anew."""

    run: Spread = Spread.seconds(15, 40)
    register: Spread = Spread.seconds(20, 45)
    ready: Spread = Spread.seconds(5, 15)
    plugin: Spread = Spread.seconds(10, 60)
    start: Spread = Spread.seconds(20, 90)
    converge: Spread = Spread.seconds(2, 5)
    terminate: Spread = Spread.seconds(30, 90)
    recreate: Spread = Spread.seconds(1)


@frozen
class Shortage:
    """EC2 has no capacity between two times: in ``zone``, of ``capacity_type``, of types that begin with ``types``;
    empty is any. ``code`` is what it answers."""

    begins: datetime
    ends: datetime
    types: str = ""
    zone: str = ""
    capacity_type: str = ""
    code: str = "InsufficientInstanceCapacity"

    def refuses(self, instance_type: str, zone: str, capacity_type: str, now: datetime) -> bool:
        """Whether such a launch is refused now."""
        is_meant = instance_type.startswith(self.types) and self.zone in ("", zone)
        return self.begins <= now < self.ends and is_meant and self.capacity_type in ("", capacity_type)


class FaultKind(str, Enum):
    """What can go wrong with a machine, a read, or the time."""

    # The machine ends without a word; EC2 shows it terminated.
    INSTANCE_LOST = "instance-lost"
    # EC2 takes a spot machine back, and says so two minutes before.
    INTERRUPTED = "interrupted"
    # EC2 says that a machine's host will be worked on, and stops it after ``lasts``.
    MAINTENANCE = "maintenance"
    # The node says for ``lasts`` that its accelerated hardware is ill.
    GPU_ILL = "gpu-ill"
    # The node is not ready for ``lasts``, and is itself again.
    NODE_NOT_READY = "node-not-ready"
    # The Node object is deleted, and the kubelet makes it anew after ``lasts``.
    NODE_DELETED = "node-deleted"
    # The node advertises no accelerator for ``lasts``: its device plugin restarts.
    PLUGIN_GONE = "plugin-gone"
    # The next machines to come up do so only after ``lasts``, as far as their accelerators go.
    PLUGIN_LATE = "plugin-late"
    # One read shows no node; one that shows some of the instances alone; one that shows no pod.
    NO_NODES_READ = "no-nodes-read"
    SOME_INSTANCES_READ = "some-instances-read"
    NO_PODS_READ = "no-pods-read"
    # This machine's clock is ahead by ``lasts``; a second one puts it right.
    CLOCK_AHEAD = "clock-ahead"
    CLOCK_RIGHT = "clock-right"
    # What was remembered between passes is gone.
    LEDGER_LOST = "ledger-lost"


@frozen
class PlannedFault:
    """One thing that goes wrong at one time. ``pick`` in [0, 1) says which machine of those that there are then."""

    at: datetime
    kind: FaultKind
    lasts: timedelta = timedelta()
    pick: float = 0.0


@frozen
class Conditions:
    """``vcpu_quotas`` are by the quota's name in Service Quotas; at each of ``new_images`` the node classes' selectors
    find images that are newer. The same ``seed`` gives the same world."""

    seed: int = 1
    latencies: Latencies = Latencies()
    shortages: tuple[Shortage, ...] = ()
    vcpu_quotas: Mapping[str, int] = field(factory=dict)
    faults: tuple[PlannedFault, ...] = ()
    new_images: tuple[datetime, ...] = ()
    scoring: Scoring = Scoring.MOST_ALLOCATED
