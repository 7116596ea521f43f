"""One target after another, until none is found that is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from engine.model.money import UsdPerHour
from engine.model.stay import NotWorthVacating
from engine.scheduling.confirmed import confirmed
from engine.scheduling.estate import Estate
from engine.scheduling.exchange import Exchange
from engine.scheduling.filling import filling
from engine.scheduling.layout import Layout
from engine.scheduling.movable import MovableNode, MoveCost
from engine.scheduling.steps import Steps
from engine.scheduling.target import target, target_of_what_stands

# So many targets are set at most, and none but the first with fewer steps of packing than are worth a search: whoever
# asks again later goes on from there.
_TARGETS, _FEWEST_STEPS = 12, 300_000
# What it counts as to ask the scheduler about a pod.
_STEPS_OF_A_POD = 300
# So many of those that waste most are asked about.
_AT_ONCE = (32, 8, 2, 1)


@frozen(eq=False)
class Rest:
    """An ``estate`` that nothing better was found for. ``steps`` is how many answers of the scheduler led there.

    ``objections`` are why nodes that were to go do not, ``alone`` what new nodes for a node's own pods alone would
    cost, both by claim, and both of nodes that went on the way, too.
    """

    estate: Estate
    objections: Mapping[str, NotWorthVacating]
    alone: Mapping[str, UsdPerHour | None]
    steps: int


def at_rest(estate: Estate, cost: MoveCost, steps: Steps) -> Rest:
    """Each step is confirmed by the scheduler, and saves what a move must. Targets share the ``steps`` of packing."""
    alone: dict[str, UsdPerHour | None] = {}
    objections: Mapping[str, NotWorthVacating] = {}
    for number in range(_TARGETS):
        layout = Layout(estate)
        alone |= {each.claim: layout.alone(each) for each in estate.movable}
        better, found = _step(estate, _drafts(layout, alone, cost, steps), cost, steps)
        objections = {**objections, **found}
        rest = Rest(estate, objections, alone, number)
        if better is None:
            break
        estate = better
        rest = Rest(estate, objections, alone, number + 1)
        if not may_go_on(steps):
            break
    return rest


def may_go_on(steps: Steps) -> bool:
    """Whether enough is left of them for another target."""
    return steps.left >= _FEWEST_STEPS


def _drafts(
    layout: Layout, alone: Mapping[str, UsdPerHour | None], cost: MoveCost, steps: Steps
) -> Iterator[Sequence[MovableNode]]:
    """Who might go. What the best packing does without may go for too little, and then something else does not."""
    yield target(layout, cost, steps)
    yield target_of_what_stands(layout, steps)
    yield _dear(layout.estate, alone, cost)
    yield filling(layout)
    # Many share what is bought, and the few that waste most save more of what they cost.
    wasteful = _wasteful(layout)
    for count in _AT_ONCE:
        yield wasteful[:count]


def _step(
    estate: Estate, drafts: Iterable[Sequence[MovableNode]], cost: MoveCost, steps: Steps
) -> tuple[Estate | None, Mapping[str, NotWorthVacating]]:
    """A cheaper estate, None where none is found, and what was in the way. The first draft is tried in any case."""
    objections: dict[str, NotWorthVacating] = {}
    for number, wanted in enumerate(drafts):
        if number and not may_go_on(steps):
            break
        found = confirmed(estate, wanted, cost)
        steps.left = max(0, steps.left - _STEPS_OF_A_POD * sum(len(node.pods) for node in wanted))
        objections = {**objections, **found.objections}
        if found.estate.price < estate.price:
            return found.estate, objections
    return None, objections


def _dear(estate: Estate, alone: Mapping[str, UsdPerHour | None], cost: MoveCost) -> Sequence[MovableNode]:
    """The nodes that cost more than new ones for their pods would."""
    found = []
    for node in estate.movable:
        elsewhere = alone[node.claim]
        if elsewhere is not None and node.usd_per_hour - elsewhere >= Exchange((node,), ()).least_saving(cost):
            found.append(node)
    return found


def _wasteful(layout: Layout) -> Sequence[MovableNode]:
    """The nodes that cost more than their pods do elsewhere at the least, those first of which that is most."""
    waste = {each.claim: each.usd_per_hour.micros - layout.worth(each) for each in layout.estate.movable}
    found = [each for each in layout.estate.movable if waste[each.claim] > 0]
    return sorted(found, key=lambda each: (-waste[each.claim], each.claim))
