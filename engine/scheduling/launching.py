"""The nodes that a draft opened as launches, each with what else would have held its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from engine.model.money import FREE
from engine.model.pod import PodKey
from engine.model.quantity import NOTHING, Resources
from engine.model.refusal import LostOffering
from engine.scheduling.draft import Draft
from engine.scheduling.existing import World
from engine.scheduling.groups import PodClass, Shape, by_name
from engine.scheduling.kinds import Kind
from engine.scheduling.losers import Rival, losers
from engine.scheduling.market import Market
from engine.scheduling.new_nodes import Opened, node_labels
from engine.scheduling.next_best import next_best
from engine.scheduling.problem import NewNode

# So many of the cheapest kinds that would do are looked at; a few of them are told.
_RIVALS = 24


class Launching:
    """Nodes that hold pods alike lost alike, so each way to hold them is looked at once."""

    def __init__(self, market: Market, classes: Sequence[PodClass]) -> None:
        self._market = market
        self._class_of = {pod: pod_class for pod_class in classes for pod in pod_class.pods}
        self._lost: dict[tuple[Kind, frozenset[tuple[Shape, int]]], tuple[LostOffering, ...]] = {}

    def new_nodes(self, draft: Draft) -> tuple[NewNode, ...]:
        """In an order that does not depend on how they were found."""
        made = [
            self._new_node(opened, sorted(draft.world.pods.get(opened.member, ()), key=by_name), draft.world)
            for opened in draft.new_nodes.opened.values()
        ]
        return tuple(sorted(made, key=_order))

    def _new_node(self, opened: Opened, pods: Sequence[PodKey], world: World) -> NewNode:
        lost = self._lost_to(opened.kind, pods)
        return NewNode(
            node_pool=opened.kind.pool,
            option=opened.option,
            pods=tuple(pods),
            for_base_capacity=opened.for_base_capacity or not pods,
            lost=lost,
            next_best=next_best(opened, lost, world),
            labels=node_labels(opened.kind, opened.option),
        )

    def _lost_to(self, kind: Kind, pods: Sequence[PodKey]) -> tuple[LostOffering, ...]:
        of_shape = {self._class_of[pod].shape: self._class_of[pod] for pod in pods}
        counts = Counter(self._class_of[pod].shape for pod in pods)
        held = (kind, frozenset(counts.items()))
        if held not in self._lost:
            self._lost[held] = losers(kind, kind.usd_per_hour or FREE, self._rivals(kind, of_shape, counts))
        return self._lost[held]

    def _rivals(self, winner: Kind, of_shape: Mapping[Shape, PodClass], counts: Mapping[Shape, int]) -> Iterable[Rival]:
        """Kinds that hold all of the pods, the cheapest first; for pods of one shape, also several nodes together.

        Places in reservations are no rivals: those that were left would have won.
        """
        if not of_shape:
            return ((kind, 1) for kind in self._market.kinds_without_pods(winner.pool) if not kind.reservation)
        if len(of_shape) == 1:
            [(shape, pod_class)] = of_shape.items()
            return self._several(pod_class, counts[shape])
        needed = NOTHING
        for shape, count in counts.items():
            requests = of_shape[shape].requests
            needed = needed + Resources({resource: amount * count for resource, amount in requests.items()})
        first, *others = [self._market.kinds(pod_class) for pod_class in of_shape.values()]
        holding = (
            (kind, 1)
            for make, kind in first.items()
            if not kind.reservation and needed.fits_in(kind.room) and all(make in kinds for kinds in others)
        )
        return islice(holding, _RIVALS)

    def _several(self, pod_class: PodClass, pods: int) -> Iterator[Rival]:
        for kind in self._market.kinds(pod_class).values():
            fitting = pod_class.requests.times_in(kind.room)
            if fitting and not kind.reservation:
                yield kind, -(-pods // fitting)


def _order(launch: NewNode) -> tuple[object, ...]:
    pods = [by_name(pod) for pod in launch.pods]
    return launch.node_pool, launch.option.offering.key, pods, sorted(launch.labels.items())
