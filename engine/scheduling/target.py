"""Which nodes would stay were all of them packed anew: a question of packing in which what stands is a kind of node.

It decides what to try, no more: where the pods can go, and what then is bought, the scheduler is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from decimal import Decimal

from engine.model import labels as keys
from engine.scheduling.layout import Layout, Vacant
from engine.scheduling.movable import MovableNode, MoveCost
from engine.scheduling.packing.problem import NodeKind, PackClass, Packing, PackingProblem
from engine.scheduling.steps import Steps

# So much a standing node is cheaper for packing than it is, at the least: of two equals the one that stands is kept.
_STANDS_ALREADY = 1


def target(layout: Layout, cost: MoveCost, steps: Steps) -> tuple[MovableNode, ...]:
    """The nodes that the cheapest packing does without that is found in half of these steps.

    What stands is cheaper by the share of its price that a move must save: what is new must be worth it.
    """
    takers = [each.takes for each in layout.offered]
    return _going(layout, _packed(layout, takers, layout.on_hosts.rooms, steps, cost))


def target_of_what_stands(layout: Layout, steps: Steps) -> tuple[MovableNode, ...]:
    """The nodes that the cheapest packing does without in which nothing is bought."""
    nobody = frozenset[int]()
    return _going(layout, _packed(layout, [nobody for _ in layout.offered], layout.on_hosts.rooms, steps))


def _going(layout: Layout, answer: Packing) -> tuple[MovableNode, ...]:
    kept: Counter[int] = Counter()
    for found in answer.nodes:
        kept[found.kind] += found.nodes
    going: list[MovableNode] = []
    for at, each in enumerate(layout.vacant, start=len(layout.offered)):
        # Those stay whose pods would cost most elsewhere.
        ranked = sorted(each.nodes, key=lambda node: (layout.worth(node), node.claim))
        going += ranked[: len(ranked) - kept[at]]
    return tuple(sorted(going, key=lambda each: each.claim))


def _packed(
    layout: Layout, takers: Sequence[Set[int]], rooms: tuple[int, ...], steps: Steps, cost: MoveCost | None = None
) -> Packing:
    """``takers`` are whom the kinds take that can be bought, ``rooms`` what an empty node has of pseudo-resources."""
    full = (0,) * len(rooms)
    kinds = [NodeKind((*layout.amounts(each.room), *rooms), each.micros, each.most) for each in layout.offered]
    kinds += [
        NodeKind((*layout.amounts(each.room), *rooms), _price(each, cost), len(each.nodes)) for each in layout.vacant
    ]
    kinds += [NodeKind((*layout.amounts(each.room), *full), 0, each.count) for each in layout.remaining]
    every = [*takers, *(each.takes for each in layout.vacant), *(each.takes for each in layout.remaining)]
    homes: list[set[int]] = [set() for _ in layout.classes]
    for kind, takes in enumerate(every):
        for at in takes:
            homes[at].add(kind)
    # Classes that packing cannot tell apart are one.
    alike: Counter[tuple[tuple[int, ...], frozenset[int]]] = Counter()
    for at, each in enumerate(layout.classes):
        asked = (*layout.requests[at], *layout.on_hosts.takes[at]) if rooms else layout.requests[at]
        alike[asked, frozenset(homes[at])] += len(each.pods)
    classes = tuple(PackClass(asked, count, may) for (asked, may), count in alike.items())
    return steps.pack(PackingProblem(classes, tuple(kinds)))


def _price(vacant: Vacant, cost: MoveCost | None) -> int:
    """In micro-dollars, less what keeps it."""
    share = Decimal(0)
    if cost is not None:
        is_spot = any(each.capacity_type == keys.SPOT for each in vacant.nodes)
        share = cost.spot_share if is_spot else cost.least_share
    return max(0, int(vacant.micros * (1 - share)) - _STANDS_ALREADY)
