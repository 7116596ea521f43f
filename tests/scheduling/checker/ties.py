"""Whether pods that are tied to other pods, to ports and to volumes can be where the plan puts them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.scheduling.checker.binding_order import never_bound
from tests.scheduling.checker.host_ports import port_conflicts
from tests.scheduling.checker.places import World
from tests.scheduling.checker.pod_affinity import kept_apart
from tests.scheduling.checker.selectors import Namespaces
from tests.scheduling.checker.topology_spread import required_spreads
from tests.scheduling.checker.violation import Violation
from tests.scheduling.checker.volumes import volumes_in_place


def torn_ties(world: World) -> tuple[Violation, ...]:
    """What is wrong with a world, whether or not the pods are still there that pre-emption takes away."""
    if not _has_ties(world):
        return ()
    found = tuple(_torn(world))
    return found and tuple(_torn(world.without_the_pre_empted()))


def _torn(world: World) -> Iterator[Violation]:
    for place in world.places:
        yield from port_conflicts(place, world.daemon_sets)
    yield from volumes_in_place(world)
    yield from kept_apart(world.places, Namespaces(world.workload.namespaces))
    yield from never_bound(world)


def _has_ties(world: World) -> bool:
    """Most worlds have none, and are not gone through."""
    for place in world.places:
        if any(pod.placing.pod_anti_affinity for pod in place.bound):
            return True
        for pod in place.planned:
            asked = pod.placing
            if asked.host_ports or asked.volume_claims or asked.pod_affinity or asked.pod_anti_affinity:
                return True
            if required_spreads(pod):
                return True
    return False
