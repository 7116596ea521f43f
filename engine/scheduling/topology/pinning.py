"""Which zone, or other domain above the node, pods go to before it is known on which nodes they will be.

Pods of one class are handed out over the combinations of domains in which new nodes of theirs can be made, so that what
packs nodes afterwards needs to know nothing of spreads over zones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.scheduling.topology.coupling import HOST, Coupling
from engine.scheduling.topology.ground import Spot
from engine.scheduling.topology.tally import Tally
from engine.scheduling.topology.topology import Topology


def is_pinned(coupling: Coupling | None) -> frozenset[str]:
    """The topology keys, hostname apart, by whose values it matters where pods of it go; empty: they need no pin."""
    return coupling.pinned_keys if coupling is not None else frozenset()


def pins(
    topology: Topology, coupling: Coupling, pods: int, combos: Sequence[Mapping[str, str]], costs: Sequence[int]
) -> tuple[list[tuple[int, int]], int]:
    """Hands out ``pods`` pods over ``combos``; returns how many each got, by index, and how many got none.

    A combo has the values that a new node would have of the pinned keys, and as many more labels as are known; each pod
    is taken to get a node of its own. ``costs`` say which combo is better where nothing else does. Counts move in
    ``topology``: give a copy.

    Spread pods go where fewest match, pods that others' spreads count where these are fewest, pods with affinity where
    their company is; then the cheapest, then the first.
    """
    tally = topology.tally
    tally.offer(coupling, combos)
    spots = [tally.ground.foreseen(labels) for labels in combos]
    taken = [0] * len(combos)
    one_by_one = bool(coupling.balances) or any(rule.key != HOST for rule in coupling.spreads)
    left = pods
    while left:
        best = _best(tally, coupling, spots, costs)
        if best is None:
            break
        count = tally.room(coupling, spots[best], 1 if one_by_one else left)
        tally.count(coupling.adds, spots[best], count)
        taken[best] += count
        left -= count
    return [(index, count) for index, count in enumerate(taken) if count], left


def _best(tally: Tally, coupling: Coupling, spots: Sequence[Spot], costs: Sequence[int]) -> int | None:
    open_to = [index for index, spot in enumerate(spots) if tally.room(coupling, spot, 1)]
    return min(open_to, key=lambda index: (*tally.matching(coupling, spots[index]), costs[index], index), default=None)
