"""GPUs that are bought and not used, told in the plan that buys them."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.plan import Launch


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
