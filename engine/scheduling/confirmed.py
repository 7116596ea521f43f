"""Nodes that should go, cut down to those of which the scheduler says that it can be done and pays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from engine.model.pod import PodKey
from engine.model.stay import NoOtherPlace, NotWorthVacating
from engine.scheduling.estate import NOWHERE, Estate
from engine.scheduling.exchange import Exchange, exchanges
from engine.scheduling.movable import MovableNode, MoveCost, NodeName
from engine.scheduling.problem import Solution
from engine.scheduling.solve import solve

# So often the scheduler is asked about fewer and fewer nodes; then none goes.
_QUESTIONS = 8
# Of packing, in one answer: what is asked for was found by packing already.
_STEPS = 2_000_000


@frozen(eq=False)
class Confirmed:
    """``estate`` is what comes of it, the same as before where nothing does; ``objections`` are why some do not go, by
    claim."""

    estate: Estate
    objections: Mapping[str, NotWorthVacating]


def confirmed(
    estate: Estate,
    wanted: Iterable[MovableNode],
    cost: MoveCost,
    expected: Mapping[PodKey, NodeName] = NOWHERE,
) -> Confirmed:
    """As many of the nodes go as all pods on them have a place without, in exchanges that are worth it.

    ``expected`` is where pods are to go if they may. All that goes is confirmed by one answer.
    """
    going = sorted(wanted, key=lambda each: each.claim)
    objections: dict[str, NotWorthVacating] = {}
    for _ in range(_QUESTIONS):
        if not going:
            break
        answer = solve(estate.without(going, expected), _STEPS)
        after = estate.after(going, answer)
        found = _homeless(going, answer) or _below_base(going, answer, after, estate, cost)
        if not found:
            coming = [each for each in after.movable if each.claim in after.bought and each.claim not in estate.bought]
            found = _not_worth_it(exchanges(going, coming), cost)
        if not found:
            return Confirmed(after, objections)
        objections.update(found)
        going = [each for each in going if each.claim not in found]
        # What is well stays as it is; the others' places are free again.
        moving = {pod.key for each in going for pod in each.pods}
        expected = {each.pod: (each.node, each.claim) for each in answer.placements if each.pod in moving}
    return Confirmed(estate, objections)


def _homeless(going: Sequence[MovableNode], answer: Solution) -> Mapping[str, NotWorthVacating]:
    if not answer.unplaced:
        return {}
    refused = {each.pod: each.refusals for each in answer.unplaced}
    found: dict[str, NotWorthVacating] = {}
    for node in going:
        without = [pod.key for pod in node.pods if pod.key in refused]
        if without:
            first = min(without)
            found[node.claim] = NoOtherPlace(first, len(without), refused[first])
    return found


def _below_base(
    going: Sequence[MovableNode], answer: Solution, after: Estate, before: Estate, cost: MoveCost
) -> Mapping[str, NotWorthVacating]:
    """The cheapest that go of pools that would have to buy nodes for nobody, for no better price."""
    found: dict[str, NotWorthVacating] = {}
    empty = [
        each for each in after.movable if each.claim in after.bought.keys() - before.bought.keys() and not each.pods
    ]
    for node in empty:
        own = [each for each in going if each.node_pool == node.node_pool and each.claim not in found]
        if own:
            cheapest = min(own, key=lambda each: (each.usd_per_hour, each.claim))
            exchange = Exchange((cheapest,), (node,))
            objection = exchange.objection(cost)
            if objection is not None:
                found[cheapest.claim] = objection
    return found


def _not_worth_it(parts: Iterable[Exchange], cost: MoveCost) -> Mapping[str, NotWorthVacating]:
    found: dict[str, NotWorthVacating] = {}
    for part in parts:
        objection = part.objection(cost)
        if objection is not None:
            found.update((each.claim, objection) for each in part.going)
    return found
