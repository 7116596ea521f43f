"""What daemonsets take off each node before any pod comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model import labels as keys
from engine.model.constraint import HostPort, Taint
from engine.model.pod import DaemonSet
from engine.model.quantity import NOTHING, Resources
from engine.scheduling.groups import Demand
from engine.scheduling.requirements import canonical_labels

# A daemon that waits for these labels runs all the same, only later, so its room must be kept (Karpenter does so too).
_LABELS_OF_A_NODE_IN_USE = {keys.REGISTERED: "true", keys.INITIALIZED: "true"}


class Daemons:
    """The daemonsets that bear a set of taints, ready to be asked about many nodes."""

    def __init__(self, daemon_sets: Iterable[DaemonSet], taints: Iterable[Taint]) -> None:
        """``taints`` are those that stay; startup taints go before a node is used and bar no daemon."""
        standing = tuple(taints)
        every = tuple(daemon_sets)
        demands = [Demand.of(daemon.placing) for daemon in every]
        bearing = [pair for pair in zip(demands, every, strict=True) if pair[0].barring_taint(standing) is None]
        self._daemons = [(demand, daemon.placing) for demand, daemon in bearing]
        self._with_ports = [(demand, daemon) for demand, daemon in bearing if daemon.placing.host_ports]
        self.keys = frozenset(key for demand, _ in self._daemons for key in demand.keys)
        self._sums: dict[tuple[bool, ...], Resources] = {}

    def overhead(self, labels: Mapping[str, str]) -> Resources:
        """The sum of the requests of the daemons that run on a node with these labels; any OR term counts."""
        present = {**labels, **_LABELS_OF_A_NODE_IN_USE}
        running = tuple(demand.admits(present) for demand, _ in self._daemons)
        if running not in self._sums:
            needed = (placing.requests for (_, placing), runs in zip(self._daemons, running, strict=True) if runs)
            self._sums[running] = sum(needed, NOTHING)
        return self._sums[running]

    def host_ports(self, labels: Mapping[str, str]) -> frozenset[HostPort]:
        """The host ports that they take on such a node."""
        return frozenset(port for port, _ in self.host_ports_by_name(labels))

    def host_ports_by_name(self, labels: Mapping[str, str]) -> tuple[tuple[HostPort, str], ...]:
        """The same, each with the name of a daemonset that takes it."""
        if not self._with_ports:
            return ()
        present = {**labels, **_LABELS_OF_A_NODE_IN_USE}
        taking = [daemon for demand, daemon in self._with_ports if demand.admits(present)]
        return tuple((port, daemon.name) for daemon in taking for port in daemon.placing.host_ports)


def daemon_overhead(daemon_sets: Iterable[DaemonSet], labels: Mapping[str, str], taints: Iterable[Taint]) -> Resources:
    """What the daemonsets will take of one node: those that bear its standing ``taints`` and match its labels."""
    return Daemons(daemon_sets, taints).overhead(canonical_labels(labels))
