"""The names of what no node's labels, taints and free resources decide alone: other pods, ports and volumes do."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model.pod import Placing

POD_AFFINITY = "required pod affinity"
POD_ANTI_AFFINITY = "required pod anti-affinity"
TOPOLOGY_SPREAD = "topology spread (DoNotSchedule)"
HOST_PORTS = "host ports"
PERSISTENT_VOLUMES = "persistent volumes"


def couplings(placing: Placing) -> Iterator[str]:
    """Which of these the pod asks for. What it only prefers is none."""
    if placing.pod_affinity:
        yield POD_AFFINITY
    if placing.pod_anti_affinity:
        yield POD_ANTI_AFFINITY
    if any(spread.is_required for spread in placing.spreads):
        yield TOPOLOGY_SPREAD
    if placing.host_ports:
        yield HOST_PORTS
    if placing.volume_claims:
        yield PERSISTENT_VOLUMES
