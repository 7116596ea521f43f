"""Nodes for shares: pods that go to one node together or not at all, onto what is there, else onto new nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from attrs import evolve

from engine.model.pod import PodKey
from engine.scheduling.company import Company, Estimate, Parting
from engine.scheduling.existing import World
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Offer
from engine.scheduling.market import Market
from engine.scheduling.new_nodes import NewNodes
from engine.scheduling.packed import PackedNode
from engine.scheduling.problem import NodeOption
from engine.scheduling.requirements import canonical_labels
from engine.scheduling.shares import Share

# Offers that limits or ties turn out to bar: after so many, the pods are left to other ways.
_MOST_TRIED = 4


class Hosts:
    """What new nodes there are for shares."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._taints = {pool.name: pool.state.pool.taints for pool in market.pools}
        self._offers: dict[tuple[tuple[PodClass, int], ...], Sequence[tuple[Offer, int]]] = {}

    def offers(self, share: Share) -> Sequence[tuple[Offer, int]]:
        """What can be bought for the share now, with those options only that suit all of its pods, and how many such
        shares a node holds.

        An offer is that of the class which asks for accelerators, where one does: the others ride with it.
        """
        if share.content not in self._offers:
            first = next((each for each, _ in share.loads if each.accelerators), share.loads[0][0])
            others = [each for each, _ in share.loads if each is not first]
            found = []
            for offer in self._market.offers(first):
                count = _held(share, offer)
                options = tuple(each for each in offer.options if count and self._suits(offer, each, others))
                if options:
                    found.append((evolve(offer, options=options), count))
            self._offers[share.content] = found
        return self._offers[share.content]

    def estimate(self, shares: Sequence[Share], left: Mapping[PodClass, int]) -> Estimate:
        """What nodes would cost that hold nothing else, and for how many pods there would be none."""
        left_out = cost = 0
        alike: dict[tuple[tuple[PodClass, int], ...], list[Share]] = {}
        for share in shares:
            alike.setdefault(share.content, []).append(share)
        for same in alike.values():
            prices = [offer.kind.cost.micros * -(-len(same) // count) for offer, count in self.offers(same[0])]
            cost += min(prices, default=0)
            left_out += 0 if prices else sum(len(pods) for share in same for _, pods in share.loads)
        for pod_class, count in left.items():
            coupling = pod_class.coupling
            if count and coupling is not None and not coupling.affinity:
                prices = [
                    offer.kind.cost.micros * count // offer.pods_per_node
                    for offer in self._market.offers(pod_class)
                    if offer.options
                ]
                cost += min(prices, default=0)
            else:
                left_out += count
        return left_out, cost

    def _suits(self, offer: Offer, option: NodeOption, others: Iterable[PodClass]) -> bool:
        kind = offer.kind
        labels = {**canonical_labels(option.labels_once_up), **dict(kind.added_labels)}
        return all(
            each.demand.admits(labels)
            and each.demand.barring_taint(self._taints[kind.pool]) is None
            and each.rulings.bar(kind.pool, kind.type_at) is None
            for each in others
        )


def put_company(
    company: Company,
    parting: Parting,
    pods: Mapping[PodClass, Sequence[PodKey]],
    world: World,
    new_nodes: NewNodes,
    hosts: Hosts,
) -> set[PodKey]:
    """Parts the company's ``pods`` and puts its shares on nodes, the largest first; tells who went somewhere."""
    shares = sorted(
        company.parted(parting, pods, hosts.estimate), key=lambda share: -sum(len(some) for _, some in share.loads)
    )
    went: set[PodKey] = set()
    for _, alike in groupby(shares, key=lambda share: share.content):
        waiting = []
        for share in alike:
            there = next(filter(None, (world.put_together(share.loads, at) for at in _standing(share, world))), ())
            went.update(there)
            waiting += [] if there else [share]
        went.update(_on_new_nodes(waiting, world, new_nodes, hosts))
    return went


def _standing(share: Share, world: World) -> Sequence[int]:
    """The nodes with room for all of the share."""
    first = next((each for each, _ in share.loads if each.accelerators), share.loads[0][0])
    return world.nodes_for(first, share.requests)


def _on_new_nodes(waiting: Sequence[Share], world: World, new_nodes: NewNodes, hosts: Hosts) -> Iterable[PodKey]:
    """Opens nodes for shares that are alike as long as any may be opened."""
    while waiting:
        ranked = sorted(hosts.offers(waiting[0]), key=lambda pair: pair[0].cost(len(waiting), pair[1]))
        taken = 0
        for offer, count in ranked[:_MOST_TRIED]:
            options = _open_to(waiting[0], offer, world)
            member = new_nodes.open_packed(PackedNode(offer.kind, options, ()), world) if options else None
            if member is None:
                continue
            for share in waiting[:count]:
                there = world.put_together(share.loads, member)
                if not there:
                    break
                taken += 1
                yield from there
            if taken:
                break
        if not taken:
            return
        waiting = waiting[taken:]


def _open_to(share: Share, offer: Offer, world: World) -> tuple[NodeOption, ...]:
    """The options where pods of the share may be, as far as that is known before the first of them is there."""
    options = offer.options
    for pod_class, _ in share.loads:
        if pod_class.coupling is not None and not pod_class.coupling.affinity:
            options = world.options_open_to(pod_class, offer.kind, options)
    return options


def _held(share: Share, offer: Offer) -> int:
    most = share.most_on_a_new_node
    count = share.requests.times_in(offer.kind.room)
    return count if most is None else min(count, most)
