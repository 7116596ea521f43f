"""The nodes that a draft opened as launches, each with what else would have held its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from engine.model.money import FREE
from engine.model.pod import PodKey
from engine.model.quantity import NOTHING
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
        # Pods by one class of each shape: nodes that hold alike many of these are asked about once.
        first_of: dict[Shape, PodClass] = {}
        self._like: dict[PodKey, PodClass] = {}
        for pod_class in classes:
            self._like |= dict.fromkeys(pod_class.pods, first_of.setdefault(pod_class.shape, pod_class))
        self._lost: dict[tuple[Kind, frozenset[tuple[PodClass, int]]], tuple[LostOffering, ...]] = {}

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
        counts = Counter([self._like[pod] for pod in pods])
        held = (kind, frozenset(counts.items()))
        if held not in self._lost:
            self._lost[held] = losers(kind, kind.usd_per_hour or FREE, self._rivals(kind, counts))
        return self._lost[held]

    def _rivals(self, winner: Kind, counts: Mapping[PodClass, int]) -> Iterable[Rival]:
        """Kinds that hold all of the pods, the cheapest first; for pods of one shape, also several nodes together.

        Places in reservations are no rivals: those that were left would have won.
        """
        if not counts:
            return ((kind, 1) for kind in self._market.kinds_without_pods(winner.pool) if not kind.reservation)
        if len(counts) == 1:
            [(pod_class, count)] = counts.items()
            return self._several(pod_class, count)
        needed = NOTHING
        for pod_class, count in counts.items():
            needed = needed + pod_class.requests * count
        first, *others = map(self._market.kinds, counts)
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
    # No two have the same pods.
    labels = sorted(launch.labels.items()) if not pods else []
    return launch.node_pool, launch.option.offering.key, pods, labels
