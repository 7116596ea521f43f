"""Pods with constraints that the model does not hold yet: refused with the constraint's name, never placed.

Each kind that the model learns moves to a file of its own, which judges where its pods are put: ``topology_spread``,
``pod_affinity``, ``host_ports`` and ``volumes`` stand ready, and until then say only which words name their kind.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.model.pod import Pod
from tests.scheduling.checker import host_ports, pod_affinity, topology_spread, volumes

_KINDS = {
    "topology spread": topology_spread.NAMES,
    "pod affinity": pod_affinity.NAMES,
    "host ports": host_ports.NAMES,
    "volumes": volumes.NAMES,
}


def unjudged(pod: Pod) -> Iterator[str]:
    """The kinds of constraint of a pod that nobody held its place against."""
    for name in pod.placing.unsupported:
        yield next((kind for kind, names in _KINDS.items() if name in names), name)
