"""Whether pods that are asked to leave have somewhere to go at that moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from engine.model.node import Node
from engine.model.plan import Plan, Removal, RemovalPhase
from engine.model.pod import Pod, PodKey
from engine.model.quantity import CPU, MEMORY
from engine.model.reason import VOLUNTARY_REASONS
from engine.simulate.binding import Rooms
from engine.simulate.world import World


def pods_without_place(world: World, plan: Plan) -> Iterator[str]:
    """Each pod that this plan evicts by choice, and for which no node that is up has room.

    Pods that wait, and that the plan has on nodes which are up, have their room before. The plan's own places are
    tried, its order and two others; what none of them places is told. Removals that are declared to go first, before
    any place is there, are left out.
    """
    going = {each.record.node for each in plan.removals if each.record.node is not None}
    asked = [
        pod
        for removal in plan.removals
        if _is_promised_a_place(removal)
        for key in removal.pods
        if (pod := world.cluster.pod(key)) is not None and pod.node_name is not None and not pod.is_daemon
    ]
    if not asked:
        return
    up = [node for node in world.cluster.nodes if node.name not in going and not node.is_marked and node.ready]
    rooms = _Rooms(world, plan, up)
    orders = (asked, sorted(asked, key=_size, reverse=True), sorted(asked, key=_size))
    places = {each.pod: each.node or "" for removal in plan.removals for each in removal.places}
    left_over = min((rooms.unplaced(asked, places), *(rooms.unplaced(order) for order in orders)), key=len)
    for pod in left_over:
        yield f"pod {pod.key} is evicted from {pod.node_name}, and no node that is up has room for it"


def _is_promised_a_place(removal: Removal) -> bool:
    is_by_choice = removal.phase is RemovalPhase.MARK and removal.record.reason in VOLUNTARY_REASONS
    return is_by_choice and removal.delete_first is None


class _Rooms:
    """What is left on nodes that are up, once the waiting pods are there that this plan puts on them."""

    def __init__(self, world: World, plan: Plan, up: Sequence[Node]) -> None:
        self._left = {node.name: world.cluster.left(node.name) for node in up}
        self._up = up
        for each in plan.placements:
            waiting = world.cluster.pod(each.pod)
            if waiting is not None and waiting.node_name is None and each.node in self._left:
                self._left[each.node] = self._left[each.node] - waiting.placing.requests

    def unplaced(self, order: Sequence[Pod], places: Mapping[PodKey, str] | None = None) -> list[Pod]:
        """Who finds no room, in this order; on the nodes of ``places`` alone where those are given."""
        rooms = Rooms(coupled=lambda pod: "")
        for node in self._up:
            rooms.put(node)
            rooms.take(node.name, node.allocatable - self._left[node.name])
        # Who is tied to other pods has been placed by one who knows how: here room alone is asked about.
        if places is None:
            return [pod for pod in order if not rooms.bind([untied(pod)], {}).nodes]
        wanted = {str(key): name for key, name in places.items()}
        found = rooms.bind([untied(pod) for pod in order], wanted).nodes
        return [pod for pod in order if found.get(pod.key, "") != places.get(pod.key) or not places.get(pod.key)]


def untied(pod: Pod) -> Pod:
    """The same pod as one that no other pod, port or volume holds anywhere."""
    free = evolve(
        pod.placing,
        unsupported=(),
        spreads=(),
        pod_affinity=(),
        pod_anti_affinity=(),
        host_ports=(),
        volume_claims=(),
    )
    return evolve(pod, placing=free, node_name=None)


def _size(pod: Pod) -> tuple[int, int, int]:
    asked = pod.placing.requests
    return sum(asked.amount(name) for name in asked.accelerators()), asked.amount(CPU), asked.amount(MEMORY)
