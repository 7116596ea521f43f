"""A read that shows not one pod, in a cluster where daemons must run: it tells nothing of what runs.

A list that an API server answers out of a cache that is not filled yet is empty and no error. Nodes would all look
idle, be marked, and with a second such read be let go under their pods.
"""

from __future__ import annotations

from engine.model.quantity import NOTHING
from engine.model.snapshot import Snapshot
from engine.model.stay import PodsUnseen
from engine.scheduling.daemons import daemon_overhead


def pods_unseen(snapshot: Snapshot) -> PodsUnseen | None:
    """Why no machine goes, where no pod at all is shown and some daemonset has one on a node that is up.

    Nodes that are marked do not count: their daemons are asked to leave.
    """
    if snapshot.pods or not snapshot.daemon_sets:
        return None
    with_daemons = sum(
        daemon_overhead(snapshot.daemon_sets, node.labels, node.taints) != NOTHING
        for node in snapshot.nodes
        if node.ready and not node.is_marked
    )
    return PodsUnseen(nodes=with_daemons) if with_daemons else None
