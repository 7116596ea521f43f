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
        compiled = [(Demand.of(daemon.placing), daemon.placing) for daemon in daemon_sets]
        self._daemons = [pair for pair in compiled if pair[0].barring_taint(standing) is None]
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
        present = {**labels, **_LABELS_OF_A_NODE_IN_USE}
        taking = (placing for demand, placing in self._daemons if placing.host_ports and demand.admits(present))
        return frozenset(port for placing in taking for port in placing.host_ports)


def daemon_overhead(daemon_sets: Iterable[DaemonSet], labels: Mapping[str, str], taints: Iterable[Taint]) -> Resources:
    """What the daemonsets will take of one node: those that bear its standing ``taints`` and match its labels."""
    return Daemons(daemon_sets, taints).overhead(canonical_labels(labels))
