"""GPUs that would be bought and not used, and pods for which none are bought."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.plan import Launch
from engine.model.spare_refusal import GpuWaste, WaitsForSpareCapacity


def spare_words(refusal: GpuWaste | WaitsForSpareCapacity) -> str:
    """Why a pod gets no node although there would be one."""
    match refusal:
        case GpuWaste(resource=resource, requested=requested, smallest=smallest, smallest_type=name, allowed=allowed):
            use = f"{requested} of {smallest} {resource} of {name}, the smallest that would do"
            return f"would use {use}; of a new node's GPUs at most {allowed:.0%} may go unused"
        case WaitsForSpareCapacity(priority_class=name):
            return f"waits for spare capacity: pods of priority class {name} start no nodes"


def waste_lines(launches: Iterable[Launch]) -> tuple[str, ...]:
    """One line for each pool and type of whose new nodes some GPUs go unused, in their order."""
    nodes: dict[tuple[str, str, int, int], int] = {}
    for launch in launches:
        if launch.gpus_wasted:
            capacity = launch.claim.capacity
            gpus = min(capacity.amount(name) for name in capacity.accelerators())
            told = (launch.claim.node_pool, launch.claim.inputs.instance_type, launch.gpus_wasted, gpus)
            nodes[told] = nodes.get(told, 0) + 1
    return tuple(
        f"{pool}: {unused} of {gpus} GPUs unused on {'each of ' if count > 1 else ''}{count} {kind}: "
        "nothing smaller was to be had, or it costs no less"
        for (pool, kind, unused, gpus), count in sorted(nodes.items())
    )
