"""Which nodes should go, and which be bought in their stead, so that the pods that run cost less: consolidation.

Any set of nodes may go for any set of new ones. Pure and deterministic: the order of the input changes nothing, and no
clock is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from engine.model.money import FREE, UsdPerHour, total
from engine.model.plan import Placement
from engine.model.stay import NoOtherPlace, NotWorthVacating, SavesTooLittle, TooYoung
from engine.scheduling.confirmed import confirmed
from engine.scheduling.estate import Estate
from engine.scheduling.exchange import Exchange, exchanges
from engine.scheduling.groups import by_name
from engine.scheduling.movable import MovableNode, MoveCost
from engine.scheduling.problem import NewNode, Problem
from engine.scheduling.rest import Rest, at_rest, may_go_on
from engine.scheduling.solve import solve
from engine.scheduling.steps import Steps

_NO_COST = MoveCost()
# Steps of packing of which each target may use half of what is left.
_STEPS = 2_000_000


@frozen
class Move:
    """Nodes that go, by claim, and what is bought for their pods, who are on ``new_nodes`` or in ``placements``.

    A move stands for itself: it may be made without the others. Its nodes may go one after another in their order,
    once the new ones are up. ``saving`` is what it saves an hour.
    """

    claims: tuple[str, ...]
    new_nodes: tuple[NewNode, ...]
    placements: tuple[Placement, ...]
    saving: UsdPerHour


@frozen
class Repacking:
    """``moves`` in the order in which they should be made: those that buy nothing first, then the largest saving.

    ``stays`` says of every other node that may go, by claim, why it does not. Prices are of all nodes that may be
    vacated, and of new ones: ``before`` and ``after`` all moves.
    """

    moves: tuple[Move, ...] = ()
    stays: Mapping[str, NotWorthVacating] = field(factory=dict)
    before: UsdPerHour = FREE
    after: UsdPerHour = FREE

    @property
    def going(self) -> tuple[str, ...]:
        """The claims that go, in an order in which they can go one after another."""
        return tuple(claim for move in self.moves for claim in move.claims)


def repacked(problem: Problem, movable: Sequence[MovableNode], cost: MoveCost = _NO_COST) -> Repacking:
    """The best repacking that is found of the nodes that may be vacated.

    ``problem`` is what would be asked for pods that wait, and has the ``movable`` nodes among its existing ones, each
    with the room that its pods leave. Pods that wait are placed first, as they would be without. Rulings and terms are
    needed of pods on movable nodes, too, and ``standing`` needs all nodes. Caps do not count: they are of one pass.
    Limits are asked about the end, once what goes is gone; ceilings of rules as if it still were there.

    Whoever acts on it lets no pod move to a node that is to go later: `estate.vacated` gives the problem without them.
    """
    given = Estate.of(problem, movable)
    settled = given.settled(solve(given.problem))
    young = {each.claim: each for each in settled.movable if _is_young(each, cost)}
    start = evolve(settled, movable=tuple(each for each in settled.movable if each.claim not in young))
    state, rest = _found(start, cost)
    left = {each.claim for each in state.movable}
    stays: dict[str, NotWorthVacating] = {
        each.claim: TooYoung(each.age_seconds or 0, cost.node_life_seconds) for each in young.values()
    }
    stays |= {each.claim: _why(each, rest, cost) for each in start.movable if each.claim in left}
    moves = [_move(each, state) for each in _made(start, state)]
    apart = total(each.usd_per_hour for each in young.values())
    return Repacking(
        moves=tuple(sorted(moves, key=lambda each: (len(each.new_nodes) > 0, -each.saving.micros, each.claims))),
        stays=dict(sorted(stays.items())),
        before=start.price + apart,
        after=state.price + apart,
    )


def _found(start: Estate, cost: MoveCost) -> tuple[Estate, Rest]:
    """The cheapest estate that the scheduler confirms, and why there is no better.

    What is found step by step is asked about again at one go, so that what is promised is one answer. Where that is
    dearer, it is asked about in two.
    """
    anchor = state = start
    steps = Steps(_STEPS)
    rest = at_rest(state, cost, steps)
    while rest.estate.price < state.price:
        for base in dict.fromkeys((anchor, state)):
            better = _at_once(base, rest, cost) if base is not state or rest.steps > 1 else rest.estate
            if better.price < state.price and all(each.objection(cost) is None for each in _made(start, better)):
                anchor, state = base, better
                break
        else:
            break
        if better is rest.estate or not may_go_on(steps):
            break
        rest = at_rest(state, cost, steps)
    return state, rest


def _at_once(base: Estate, rest: Rest, cost: MoveCost) -> Estate:
    there = {each.claim for each in rest.estate.movable}
    going = [each for each in base.movable if each.claim not in there]
    return confirmed(base, going, cost, rest.estate.moved).estate


def _made(before: Estate, after: Estate) -> tuple[Exchange, ...]:
    """What is to be done to come from one to the other."""
    left = {each.claim for each in after.movable}
    going = [each for each in before.movable if each.claim not in left]
    coming = [each for each in after.movable if each.claim in after.bought]
    return exchanges(going, coming) if going else ()


def _is_young(node: MovableNode, cost: MoveCost) -> bool:
    return node.age_seconds is not None and node.age_seconds < cost.node_life_seconds


def _why(node: MovableNode, rest: Rest, cost: MoveCost) -> NotWorthVacating:
    if node.claim in rest.objections:
        return rest.objections[node.claim]
    elsewhere = rest.alone[node.claim]
    if elsewhere is None:
        return NoOtherPlace(min(pod.key for pod in node.pods), len(node.pods))
    return SavesTooLittle(node.usd_per_hour - elsewhere, Exchange((node,), ()).least_saving(cost))


def _move(exchange: Exchange, state: Estate) -> Move:
    own = {pod.key for node in exchange.going for pod in node.pods}
    on_new = {pod.key for node in exchange.coming for pod in node.pods}
    new_nodes = tuple(
        evolve(state.bought[each.claim], pods=tuple(sorted((pod.key for pod in each.pods), key=by_name)))
        for each in exchange.coming
    )
    placed = tuple(Placement(pod, *state.moved[pod]) for pod in sorted(own - on_new, key=by_name))
    order = sorted(exchange.going, key=lambda each: (-each.usd_per_hour.micros / (len(each.pods) or 1), each.claim))
    return Move(tuple(each.claim for each in order), new_nodes, placed, exchange.saving)
