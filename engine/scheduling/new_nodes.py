"""Which nodes to open: the pool by weight, then the offering with the least price for each pod that it serves.

Pools of equal weight compete on price. (Karpenter orders them by name and never compares prices between pools.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define

from engine.model.money import FREE, UsdPerHour
from engine.model.pod import PodKey
from engine.model.refusal import LostOffering
from engine.scheduling.ceilings import Counts
from engine.scheduling.existing import World
from engine.scheduling.groups import PodClass
from engine.scheduling.limits import Headroom
from engine.scheduling.offers import Kind, Market, Offer, PoolOffers
from engine.scheduling.problem import NodeOption
from engine.scheduling.requirements import canonical_labels

_SHOWN_LOSERS = 3


@define(eq=False)
class Opened:
    """A node of this plan. ``for_base_capacity``: opened without any pod asking."""

    member: int
    kind: Kind
    option: NodeOption
    for_base_capacity: bool
    lost: tuple[LostOffering, ...]


class NewNodes:
    """The nodes that this plan opens, within limits and caps."""

    def __init__(self, market: Market, headroom: Headroom, first_member: int) -> None:
        """Opened nodes are the world's members from ``first_member`` on."""
        self._market = market
        self._taints = {pool.name: pool.state.pool.taints for pool in market.pools}
        self._headroom = headroom
        self._next_member = first_member
        self.opened: dict[int, Opened] = {}

    def open_for(self, pod_class: PodClass, pods: Sequence[PodKey], world: World) -> Sequence[PodKey]:
        """Opens nodes for pods of one class and puts them there; returns those for which none may be opened."""
        if pod_class.terms.fills_only:
            return pods
        offers = [offer for offer in self._market.offers(pod_class) if offer.options]
        while pods:
            ranked = self._ranked(offers, pod_class, len(pods), world.counts)
            # A cap lasts one pass, so it is no reason to settle for something worse than the best.
            affordable = self._headroom.nodes_within_caps(ranked[0].usd_per_hour) if ranked else 0
            if not affordable:
                break
            best = ranked[0]
            admitted = _admitted(best.kind, pod_class, len(pods), world.counts)
            each = min(best.pods_per_node, admitted)
            within = min(self._within_limits(best.kind), affordable)
            count = min(admitted // each, _nodes_admitted(best.kind, pod_class, within, world.counts))
            lost = _lost_for_pods(ranked, each)
            for start in range(0, count * each, each):
                opened = self._open(best.kind, best.options, world, lost)
                self._settle(opened, world, pods[start : start + each], pod_class)
            pods = pods[count * each :]
        return pods

    def open_base(self, pool: PoolOffers, world: World) -> None:
        """Opens the cheapest nodes until the pool has its base capacity or may have no more."""
        while self.nodes_of(pool) < pool.state.pool.base_nodes and pool.state.not_ready is None:
            priced = [
                (kind.usd_per_hour, kind)
                for kind in pool.kinds_without_pods()
                if kind.usd_per_hour is not None and kind.buyable and self._within_limits(kind)
            ]
            priced.sort(key=lambda pair: (pair[0].micros, pair[1].order))
            if not priced or not self._headroom.nodes_within_caps(priced[0][0]):
                return
            price, kind = priced[0]
            lost = _lost_to(kind, price, [(paid, paid, other, other.buyable) for paid, other in priced])
            self._settle(self._open(kind, kind.buyable, world, lost, for_base=True), world)

    def nodes_of(self, pool: PoolOffers) -> int:
        """How many nodes the pool keeps, those of this plan included."""
        return pool.state.nodes + sum(opened.kind.pool == pool.name for opened in self.opened.values())

    def without_idle(self, world: World) -> bool:
        """Gives up nodes that in the end serve no pod and are no base capacity; tells whether there were any."""
        spare = {pool.name: self.nodes_of(pool) - pool.state.pool.base_nodes for pool in self._market.pools}
        idle = [opened for opened in self.opened.values() if not world.pods.get(opened.member)]
        gone = False
        for opened in sorted(idle, key=lambda each: (-(each.kind.usd_per_hour or FREE).micros, each.member)):
            if spare[opened.kind.pool] > 0:
                spare[opened.kind.pool] -= 1
                self._close(opened)
                gone = True
        return gone

    def join(self, world: World) -> None:
        """Adds the opened nodes, empty, to a world."""
        for opened in self.opened.values():
            self._settle(opened, world)

    def _ranked(self, offers: Iterable[Offer], pod_class: PodClass, pods: int, counts: Counts) -> list[Offer]:
        """Offers within limits and ceilings, the best for so many pods, or as many of them as may come, first."""
        within = [each for each in offers if self._within_limits(each.kind)]
        if not pod_class.shares:
            return sorted(within, key=lambda each: each.cost(pods, each.pods_per_node))
        admitted = {each: _admitted(each.kind, pod_class, pods, counts) for each in within}
        within = [each for each in within if admitted[each] and _nodes_admitted(each.kind, pod_class, 1, counts)]
        return sorted(within, key=lambda each: each.cost(admitted[each], each.pods_per_node))

    def _within_limits(self, kind: Kind) -> int:
        return self._headroom.nodes_within_limits(kind.pool, kind.capacity, kind.usd_per_hour or FREE, kind.probes)

    def _open(
        self,
        kind: Kind,
        options: Sequence[NodeOption],
        world: World,
        lost: tuple[LostOffering, ...],
        for_base: bool = False,
    ) -> Opened:
        # Zones cost the same here, so the one with the fewest nodes takes it.
        option = min(options, key=lambda each: world.zone_order(kind.pool, each.offering.zone, with_empty=for_base))
        self._headroom.take(kind.pool, kind.capacity, kind.usd_per_hour or FREE, kind.probes)
        opened = Opened(self._next_member, kind, option, for_base, lost)
        self.opened[opened.member] = opened
        self._next_member += 1
        return opened

    def _close(self, opened: Opened) -> None:
        del self.opened[opened.member]
        kind = opened.kind
        self._headroom.give_back(kind.pool, kind.capacity, kind.usd_per_hour or FREE, kind.probes)

    def _settle(
        self, opened: Opened, world: World, pods: Sequence[PodKey] = (), pod_class: PodClass | None = None
    ) -> None:
        place = world.place_of(
            {**opened.option.predicted_labels, **node_labels(opened.kind, opened.option)},
            self._taints[opened.kind.pool],
            is_accelerated=opened.kind.instance_type.is_accelerated,
            in_flight=True,
        )
        world.counts.prices[opened.member] = opened.kind.usd_per_hour or FREE
        if pod_class is None:
            world.add(place, opened.kind.room, opened.member)
        else:
            world.settle(place, opened.kind.room, opened.member, pods, pod_class)


def _admitted(kind: Kind, pod_class: PodClass, pods: int, counts: Counts) -> int:
    """How many of so many pods ceilings admit to new nodes of the kind."""
    return counts.pods_within(pod_class.shares, kind.pool, pod_class.requests, pods)


def _nodes_admitted(kind: Kind, pod_class: PodClass, nodes: int, counts: Counts) -> int:
    """How many of so many new nodes of the kind ceilings admit for pods of the class."""
    return counts.nodes_within(pod_class.shares, kind.pool, kind.usd_per_hour or FREE, nodes)


def node_labels(kind: Kind, option: NodeOption) -> dict[str, str]:
    """The labels of the node that an option becomes, custom ones that were left to choose included."""
    return {**canonical_labels(option.labels), **dict(kind.added_labels)}


# What its nodes for the same end cost together, what one costs, its kind, its options.
_Loser = tuple[UsdPerHour, UsdPerHour, Kind, Sequence[NodeOption]]


def _lost_for_pods(ranked: Sequence[Offer], pods: int) -> tuple[LostOffering, ...]:
    """The next-best of the ranking, priced for the same pods: as many of its nodes as these would need."""
    best = ranked[0]
    losers: list[_Loser] = []
    for offer in ranked[1:]:
        nodes = -(-pods // offer.pods_per_node)
        losers.append((UsdPerHour(offer.usd_per_hour.micros * nodes), offer.usd_per_hour, offer.kind, offer.options))
    return _lost_to(best.kind, best.usd_per_hour, losers)


def _lost_to(winner: Kind, price: UsdPerHour, losers: Iterable[_Loser]) -> tuple[LostOffering, ...]:
    """Of each other type and capacity type the cheapest, three at most."""
    shown: dict[tuple[str, str], LostOffering] = {}
    won = (winner.instance_type.name, winner.capacity_type)
    for cost, each, kind, options in sorted(losers, key=lambda lost: (lost[0].micros, lost[1].micros, lost[2].order)):
        name = (kind.instance_type.name, kind.capacity_type)
        if name != won and name not in shown:
            shown[name] = LostOffering(options[0].offering.key, each, cost - price)
        if len(shown) == _SHOWN_LOSERS:
            break
    return tuple(shown.values())
