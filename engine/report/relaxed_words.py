"""What pools asked for and did without, for pods that left them no choice."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.plan import Launch


def relaxed_lines(launches: Iterable[Launch]) -> tuple[str, ...]:
    """One line for each pool and key of minValues that was relaxed, in their order."""
    nodes: dict[tuple[str, str, int, int], int] = {}
    for launch in launches:
        for each in launch.relaxed:
            told = (launch.claim.node_pool, each.key, each.left, each.min_values)
            nodes[told] = nodes.get(told, 0) + 1
    return tuple(
        f"{pool}: minValues of {key} relaxed to {left} of {asked} for {count} of its new nodes (BestEffort)"
        for (pool, key, left, asked), count in sorted(nodes.items())
    )
