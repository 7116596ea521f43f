"""Which nodes to open: the pool by weight, then the offering with the least price for each pod that it serves.

Pools of equal weight compete on price. (Karpenter orders them by name and never compares prices between pools.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, frozen

from engine.model.constraint import HostPort
from engine.model.money import FREE
from engine.model.pod import PodKey
from engine.scheduling.ceilings import Counts
from engine.scheduling.existing import World
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind, Offer
from engine.scheduling.limits import Headroom
from engine.scheduling.market import Market
from engine.scheduling.offers import PoolOffers
from engine.scheduling.packed import PackedNode
from engine.scheduling.places import Place
from engine.scheduling.problem import NodeOption
from engine.scheduling.requirements import canonical_labels
from engine.scheduling.values_left import ValuesLeft


@define(eq=False)
class Opened:
    """A node of this plan. ``for_base_capacity``: opened without any pod asking."""

    member: int
    kind: Kind
    option: NodeOption
    for_base_capacity: bool


class NewNodes:
    """The nodes that this plan opens, within limits and caps."""

    def __init__(self, market: Market, headroom: Headroom, first_member: int) -> None:
        """Opened nodes are the world's members from ``first_member`` on."""
        self._market = market
        self._pools = {pool.name: pool for pool in market.pools}
        self._headroom = headroom
        self._next_member = first_member
        self.opened: dict[int, Opened] = {}
        self._sites: dict[tuple[int, int], _Site] = {}
        insisting = [pool for pool in market.pools if pool.min_values]
        self.values_left = ValuesLeft(insisting) if insisting else None

    def open_for(self, pod_class: PodClass, pods: Sequence[PodKey], world: World) -> Sequence[PodKey]:
        """Opens nodes for pods of one class and puts them there; returns those for which none may be opened."""
        if pod_class.terms.fills_only:
            return pods
        while pods:
            best = next(iter(self._ranked(pod_class, len(pods), world.counts)), None)
            # A cap lasts one pass, so it is no reason to settle for something worse than the best.
            affordable = self._headroom.nodes_within_caps(best.usd_per_hour) if best is not None else 0
            if best is None or not affordable:
                break
            admitted = _admitted(best.kind, pod_class, len(pods), world.counts)
            each = min(self._pods_on(best, pod_class), admitted)
            within = min(self._within_limits(best.kind), affordable)
            count = min(admitted // each, _nodes_admitted(best.kind, pod_class, within, world.counts))
            for start in range(0, count * each, each):
                opened = self._open(best.kind, best.options, world)
                self._settle(opened, world, pods[start : start + each], pod_class)
            pods = pods[count * each :]
        return pods

    def open_packed(self, node: PackedNode, world: World) -> int | None:
        """Opens a node, still empty; None where limits or caps are in the way."""
        kind = node.kind
        if not (self._within_limits(kind) and self._headroom.nodes_within_caps(kind.usd_per_hour or FREE)):
            return None
        opened = self._open(kind, node.options, world, stays_empty=True)
        self._settle(opened, world)
        return opened.member

    def open_apart(self, pod_class: PodClass, pods: Sequence[PodKey], world: World) -> Sequence[PodKey]:
        """As `open_for`, for pods that keep each other apart or together: node by node, each where such a pod may go.

        Returns those for which none may be opened.
        """
        while pods:
            found = self._place_for_one(pod_class, len(pods), world)
            if found is None:
                break
            offer, options = found
            opened = self._open(offer.kind, options, world)
            self._settle(opened, world)
            most = min(offer.pods_per_node, len(pods), _admitted(offer.kind, pod_class, len(pods), world.counts))
            went = world.put_one_by_one(pod_class, pods[:most], opened.member)
            if not went:
                break
            pods = pods[went:]
        return pods

    def _place_for_one(
        self, pod_class: PodClass, pods: int, world: World
    ) -> tuple[Offer, tuple[NodeOption, ...]] | None:
        """The best offer, and its options, where the class may have a new node.

        Of pods that stay together the first one's node is the only one, so it has room for as many as may be.
        """
        ranked = self._ranked(pod_class, pods, world.counts)
        if pod_class.coupling is not None and pod_class.coupling.stays_on_one_node:
            ranked = sorted(ranked, key=lambda each: -min(each.pods_per_node, pods))
        for offer in ranked:
            if not self._headroom.nodes_within_caps(offer.usd_per_hour):
                return None
            options = world.options_open_to(pod_class, offer.kind, offer.options)
            if options:
                return offer, options
        return None

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
            _, kind = priced[0]
            self._settle(self._open(kind, kind.buyable, world, for_base=True, stays_empty=True), world)

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

    def _ranked(self, pod_class: PodClass, pods: int, counts: Counts) -> Iterable[Offer]:
        """Offers within limits and ceilings, the best for so many pods, or as many of them as may come, first."""
        if not pod_class.shares and self.values_left is None:
            most = pod_class.coupling.most_on_a_new_node if pod_class.coupling is not None else None
            ranked = self._market.ranked(pod_class, pods, most)
            return (each for each in ranked if self._within_limits(each.kind))
        offers = [offer for offer in self._market.offers(pod_class) if offer.options]
        within = [each for each in offers if self._within_limits(each.kind)]
        if not pod_class.shares:
            return sorted(within, key=lambda each: each.cost(pods, self._pods_on(each, pod_class)))
        admitted = {each: _admitted(each.kind, pod_class, pods, counts) for each in within}
        within = [each for each in within if admitted[each] and _nodes_admitted(each.kind, pod_class, 1, counts)]
        return sorted(within, key=lambda each: each.cost(admitted[each], self._pods_on(each, pod_class)))

    def _pods_on(self, offer: Offer, pod_class: PodClass) -> int:
        """How many pods of the class a new node takes."""
        most = pod_class.coupling.most_on_a_new_node if pod_class.coupling is not None else None
        count = offer.pods_per_node if most is None else min(most, offer.pods_per_node)
        if self.values_left is None:
            return count
        return self.values_left.on_new(pod_class, offer.kind.pool, count)

    def _within_limits(self, kind: Kind) -> int:
        return self._headroom.nodes_within_limits(
            kind.pool, kind.capacity, kind.usd_per_hour or FREE, kind.probes, kind.reservation
        )

    def _open(
        self,
        kind: Kind,
        options: Sequence[NodeOption],
        world: World,
        *,
        for_base: bool = False,
        stays_empty: bool = False,
    ) -> Opened:
        # Zones cost the same here, so the one with the fewest nodes takes it; as long as nodes are opened of which none
        # gets its pods yet, empty ones count.
        option = min(options, key=lambda each: world.zone_order(kind.pool, each.offering.zone, with_empty=stays_empty))
        self._headroom.take(kind.pool, kind.capacity, kind.usd_per_hour or FREE, kind.probes, kind.reservation)
        opened = Opened(self._next_member, kind, option, for_base)
        self.opened[opened.member] = opened
        self._next_member += 1
        return opened

    def _close(self, opened: Opened) -> None:
        del self.opened[opened.member]
        kind = opened.kind
        self._headroom.give_back(kind.pool, kind.capacity, kind.usd_per_hour or FREE, kind.probes, kind.reservation)

    def _site_of(self, opened: Opened, pool: PoolOffers, world: World) -> _Site:
        of = id(opened.kind), id(opened.option)
        if of not in self._sites:
            labels = {**opened.option.predicted_labels, **node_labels(opened.kind, opened.option)}
            is_accelerated = opened.kind.instance_type.is_accelerated
            place = world.place_of(labels, pool.state.pool.taints, is_accelerated=is_accelerated, in_flight=True)
            ports = tuple(pool.daemons.host_ports(labels)) if world.topology is not None else ()
            self._sites[of] = _Site(place, ports)
        return self._sites[of]

    def _settle(
        self, opened: Opened, world: World, pods: Sequence[PodKey] = (), pod_class: PodClass | None = None
    ) -> None:
        pool = self._pools[opened.kind.pool]
        site = self._site_of(opened, pool, world)
        world.counts.prices[opened.member] = opened.kind.usd_per_hour or FREE
        world.add(site.place, opened.kind.room, opened.member, daemon_ports=site.ports)
        if self.values_left is not None and not opened.for_base_capacity:
            self.values_left.join(opened.member, pool.name)
        if pod_class is not None:
            world.put(pod_class, pods, opened.member)


@frozen(eq=False)
class _Site:
    """What nodes of one kind from one of its options are to a world."""

    place: Place
    ports: tuple[HostPort, ...]


def _admitted(kind: Kind, pod_class: PodClass, pods: int, counts: Counts) -> int:
    """How many of so many pods ceilings admit to new nodes of the kind."""
    return counts.pods_within(pod_class.shares, kind.pool, pod_class.requests, pods)


def _nodes_admitted(kind: Kind, pod_class: PodClass, nodes: int, counts: Counts) -> int:
    """How many of so many new nodes of the kind ceilings admit for pods of the class."""
    return counts.nodes_within(pod_class.shares, kind.pool, kind.usd_per_hour or FREE, nodes)


def node_labels(kind: Kind, option: NodeOption) -> dict[str, str]:
    """The labels of the node that an option becomes, custom ones that were left to choose included."""
    return {**canonical_labels(option.labels), **dict(kind.added_labels)}
