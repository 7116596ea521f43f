"""Whether pods that are asked to leave have somewhere to go at that moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from engine.model.node import Node
from engine.model.plan import Plan, Removal, RemovalPhase
from engine.model.pod import Pod
from engine.model.quantity import CPU, MEMORY
from engine.model.reason import VOLUNTARY_REASONS
from engine.simulate.binding import Rooms
from engine.simulate.world import World


def pods_without_place(world: World, plan: Plan) -> Iterator[str]:
    """Each pod that this plan evicts by choice, and for which no node that is up has room.

    The plan's own order and two others are tried; what none of them places is told. Removals that are declared to go
    first, before any place is there, are left out.
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
    orders = (asked, sorted(asked, key=_size, reverse=True), sorted(asked, key=_size))
    left_over = min((_unplaced(world, order, up) for order in orders), key=len)
    for pod in left_over:
        yield f"pod {pod.key} is evicted from {pod.node_name}, and no node that is up has room for it"


def _is_promised_a_place(removal: Removal) -> bool:
    is_by_choice = removal.phase is RemovalPhase.MARK and removal.record.reason in VOLUNTARY_REASONS
    return is_by_choice and removal.delete_first is None


def _unplaced(world: World, order: Sequence[Pod], up: Sequence[Node]) -> list[Pod]:
    rooms = Rooms(coupled=lambda pod: "")
    for node in up:
        rooms.put(node)
        taken = node.allocatable - world.cluster.left(node.name)
        rooms.take(node.name, taken)
    # Who is tied to other pods has been placed by one who knows how: here room alone is asked about.
    return [pod for pod in order if not rooms.bind([untied(pod)], {}).nodes]


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
