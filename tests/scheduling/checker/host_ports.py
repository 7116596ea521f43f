"""Host ports.

Kubernetes documentation, the API of ContainerPort and "Configuration Best Practices": on one node, each combination of
hostIP, hostPort and protocol is there once; an address that is left out or 0.0.0.0 is every address. Pods of daemonsets
that will run on the node take theirs as well. Order does not matter: of two that conflict the second is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.model.constraint import HostPort
from engine.model.pod import DaemonSet
from tests.scheduling.checker.amounts import placings_to_come
from tests.scheduling.checker.places import Place
from tests.scheduling.checker.violation import Violation

_EVERYWHERE = ("", "0.0.0.0")


def port_conflicts(place: Place, daemon_sets: Iterable[DaemonSet]) -> Iterator[Violation]:
    """Each planned pod that wants a port which a bound pod, a daemon or another planned pod has."""
    if not any(pod.placing.host_ports for pod in place.planned):
        return
    taken = [(str(pod.key), pod.placing.host_ports) for pod in place.bound]
    coming = placings_to_come(daemon_sets, place.labels, place.taints, place.bound)
    taken += [("a daemon", placing.host_ports) for placing in coming]
    for pod in place.planned:
        for other, theirs in taken:
            for port in pod.placing.host_ports:
                if any(_conflict(port, each) for each in theirs):
                    yield Violation("host-ports", str(pod.key), f"wants {port}, which {other} has on {place.name}")
        taken.append((str(pod.key), pod.placing.host_ports))


def _conflict(one: HostPort, other: HostPort) -> bool:
    same_address = one.ip == other.ip or one.ip in _EVERYWHERE or other.ip in _EVERYWHERE
    return one.port == other.port and one.protocol == other.protocol and same_address
