"""Which nodes should go, and which be bought in their stead, so that the pods that run cost less: consolidation.

Any set of nodes may go for any set of new ones. Pure and deterministic: the order of the input changes nothing, and no
clock is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, field, frozen

from engine.model.money import FREE, UsdPerHour, total
from engine.model.plan import Placement
from engine.model.stay import NotWorthVacating, SavesTooLittle
from engine.scheduling.movable import MovableNode, MoveCost
from engine.scheduling.problem import NewNode, Problem, Solution
from engine.scheduling.solve import solve
from engine.scheduling.vacated import UNCAPPED, vacated


@frozen
class Move:
    """Nodes that go, by claim, and what is bought for their pods, who are on ``new_nodes`` or in ``placements``.

    A move stands for itself: it may be made without those that come after it. Its nodes may go one after another in
    their order, once the new ones are up. ``saving`` is what it saves an hour.
    """

    claims: tuple[str, ...]
    new_nodes: tuple[NewNode, ...]
    placements: tuple[Placement, ...]
    saving: UsdPerHour


@frozen
class Repacking:
    """``moves`` in the order in which they should be made: those that buy nothing first, then the largest saving.

    ``stays`` says of every other node that may go, by claim, why it does not. Prices are of all nodes that may be
    vacated, and of new ones: ``before``, ``after`` all moves, and the proven ``lower_bound`` for the pods that run on
    them, on the nodes that policy prefers, nothing paid for what others leave free.
    """

    moves: tuple[Move, ...] = ()
    stays: Mapping[str, NotWorthVacating] = field(factory=dict)
    before: UsdPerHour = FREE
    after: UsdPerHour = FREE
    lower_bound: UsdPerHour = FREE

    @property
    def going(self) -> tuple[str, ...]:
        """The claims that go, in an order in which they can go one after another."""
        return tuple(claim for move in self.moves for claim in move.claims)


def repacked(problem: Problem, movable: Sequence[MovableNode], cost: MoveCost = MoveCost()) -> Repacking:
    """The best repacking that is found of the nodes that may be vacated.

    ``problem`` is what would be asked for pods that wait, and has the ``movable`` nodes among its existing ones, each
    with the room that its pods leave. Its pods are placed as well in either case, so it is best asked while nobody
    waits. Rulings and terms are needed of pods on movable nodes, too, and ``standing`` needs all nodes. Caps do not
    count: they are of one pass. Limits are asked about the end, once what goes is gone.

    Whoever acts on it lets no pod move to a node that is to go later: `vacated` gives the problem without them.
    """
    asked = evolve(problem, caps=UNCAPPED)
    nodes = sorted(movable, key=lambda each: each.claim)
    before = solve(asked)
    least = max(cost.least_saving, FREE)
    going: list[MovableNode] = []
    moves: list[Move] = []
    stays: dict[str, NotWorthVacating] = {}
    spent = _price(before.new_nodes)
    for each in sorted(nodes, key=lambda node: (-node.usd_per_hour.micros, node.claim)):
        answer = solve(vacated(asked, [*going, each]))
        saving = each.usd_per_hour + spent - _price(answer.new_nodes)
        if _leaves_out(answer, before) or saving < least or answer.new_nodes != before.new_nodes:
            stays[each.claim] = SavesTooLittle(saving, least)
            continue
        going.append(each)
        moved = {pod.key for pod in each.pods}
        placed = tuple(place for place in answer.placements if place.pod in moved)
        moves.append(Move((each.claim,), (), placed, saving))
    all_of_them = total(each.usd_per_hour for each in nodes)
    return Repacking(tuple(moves), stays, all_of_them, all_of_them - total(each.usd_per_hour for each in going))


def _leaves_out(answer: Solution, before: Solution) -> bool:
    return len(answer.unplaced) > len(before.unplaced)


def _price(nodes: Iterable[NewNode]) -> UsdPerHour:
    return total(node.option.usd_per_hour or FREE for node in nodes)
