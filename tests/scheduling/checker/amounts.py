"""Requests against allocatable, daemons counted.

Kubernetes documentation, "Resource Management for Pods and Containers": the sum of the requests on a node is at most
its allocatable, for each resource that is asked for; limits and use do not matter. Sidecars, init containers and
overhead are in ``Placing.requests`` already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from engine.model.constraint import Taint
from engine.model.pod import DaemonSet, Placing, Pod
from tests.scheduling.checker.node_labels import unmet
from tests.scheduling.checker.taints import keeps_daemon_off

# The labels of a node that is up: a daemon that selects them runs there in the end.
_WHEN_UP = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}


def sum_of(requests: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The amounts together, by resource."""
    total: Counter[str] = Counter()
    for each in requests:
        for resource, amount in each.items():
            total[resource] += amount
    return total


def daemons_to_come(
    daemon_sets: Iterable[DaemonSet], labels: Mapping[str, str], taints: Iterable[Taint], there: Iterable[Pod]
) -> list[Mapping[str, int]]:
    """The requests of the daemonsets that will run on a node and have no pod there yet."""
    return [placing.requests for placing in placings_to_come(daemon_sets, labels, taints, there)]


def placings_to_come(
    daemon_sets: Iterable[DaemonSet], labels: Mapping[str, str], taints: Iterable[Taint], there: Iterable[Pod]
) -> list[Placing]:
    """What the daemonsets ask for that will run on a node and have no pod there yet."""
    running = {pod.owner.name for pod in there if pod.owner is not None and pod.owner.kind == "DaemonSet"}
    present, taints = {**labels, **_WHEN_UP}, tuple(taints)
    return [
        daemon.placing
        for daemon in daemon_sets
        if daemon.name not in running
        and not any(unmet(daemon.placing, present))
        and not keeps_daemon_off(daemon.placing.tolerations, taints)
    ]


def overdrawn(
    allocatable: Mapping[str, int], taken: Iterable[Mapping[str, int]], planned: Iterable[Pod]
) -> Iterator[str]:
    """Each resource that planned pods ask for and that is not there any more, in words."""
    before, asked = sum_of(taken), sum_of(pod.placing.requests for pod in planned)
    for resource, amount in sorted(asked.items()):
        if amount > 0 and before[resource] + amount > allocatable.get(resource, 0):
            yield f"{before[resource]} + {amount} of {allocatable.get(resource, 0)} {resource}"
