"""One target after another, until none is found that is worth it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from engine.model.money import UsdPerHour
from engine.model.stay import NotWorthVacating
from engine.scheduling.confirmed import confirmed
from engine.scheduling.estate import Estate
from engine.scheduling.exchange import Exchange
from engine.scheduling.movable import MovableNode, MoveCost
from engine.scheduling.target import Layout

# Of packing: for one target.
_STEPS = 4_000_000


@frozen(eq=False)
class Rest:
    """An ``estate`` that nothing better was found for. ``objections`` are why nodes that were to go do not, ``alone``
    the price of the cheapest new node for a node's own pods, both by claim. ``lower_bound`` is the first target's."""

    estate: Estate
    objections: Mapping[str, NotWorthVacating]
    alone: Mapping[str, UsdPerHour | None]
    lower_bound: UsdPerHour


def at_rest(estate: Estate, cost: MoveCost) -> Rest:
    """Each step is confirmed by the scheduler, and saves what a move must: so it comes to an end."""
    bound: UsdPerHour | None = None
    while True:
        layout = Layout(estate)
        aim = layout.target(_STEPS)
        bound = aim.lower_bound if bound is None else bound
        objections: dict[str, NotWorthVacating] = {}
        alone = {each.claim: layout.alone(each) for each in estate.movable}
        better = estate
        for wanted in _drafts(aim.going, layout, alone, cost):
            found = confirmed(estate, wanted, cost)
            objections |= {claim: why for claim, why in found.objections.items() if claim not in objections}
            if found.estate.price < better.price:
                better = found.estate
                break
        if better is estate:
            return Rest(estate, objections, alone, bound)
        estate = better


def _drafts(
    aimed_at: Sequence[MovableNode], layout: Layout, alone: Mapping[str, UsdPerHour | None], cost: MoveCost
) -> Iterator[Sequence[MovableNode]]:
    """Who might go: those that the packing does without; else those that cost more than one new node for
    their pods."""
    yield aimed_at
    yield [
        node
        for node in layout.estate.movable
        for elsewhere in (alone[node.claim],)
        if elsewhere is not None and node.usd_per_hour - elsewhere >= Exchange((node,), ()).least_saving(cost)
    ]
