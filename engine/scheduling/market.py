"""All pools' offers to classes of pods, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.model import labels as keys
from engine.model.constraint import PreferredNodeTerm
from engine.model.money import FREE, UsdPerHour
from engine.scheduling.groups import PodClass, Shape
from engine.scheduling.kinds import Kind, Make, Offer, OfferingName, Pin, Rung
from engine.scheduling.offers import PoolOffers
from engine.scheduling.preferences import preferred_weight
from engine.scheduling.problem import NodeOption


class Combo(NamedTuple):
    """Values of some keys that nodes of a rung can have, the least that a pod costs there, and such a node's labels."""

    pin: Pin
    least_micros: int
    labels: Mapping[str, str]


class Market:
    """All pools' offers to a class of pods, in tiers by weight."""

    def __init__(self, pools: Sequence[PoolOffers]) -> None:
        self.pools = pools
        # By what decides of a class, so that classes which only their neighbours tell apart are asked about once.
        self._offers: dict[Shape, tuple[Offer, ...]] = {}
        self._rungs: dict[Shape, tuple[Rung, ...]] = {}
        self._kinds: dict[Shape, Mapping[Make, Kind]] = {}
        self._labels: dict[Shape, tuple[Mapping[str, str], ...]] = {}
        # By what is offered: shapes by the dozen are offered the same nodes, and differ in how many pods one holds.
        self._labels_of: dict[_Ground, tuple[Mapping[str, str], ...]] = {}
        self._pins_of: dict[tuple[_Ground, tuple[str, ...]], _Pins] = {}
        self._by_offering: dict[Shape, Mapping[OfferingName, Offer]] = {}
        self._combos: dict[tuple[int, tuple[str, ...]], tuple[Rung, tuple[Combo, ...]]] = {}
        self._ranked: dict[tuple[Shape, int, int], tuple[Offer, ...]] = {}

    def offers(self, pod_class: PodClass) -> tuple[Offer, ...]:
        """What the pools that make nodes for pods offer to the class, whether it can be bought now or not.

        A pool with a PreferNoSchedule taint against the class comes after those without; then weighs what of its
        preferred node affinity a node meets, then the pools' weights: the order in which Karpenter gives preferences
        up (pkg/controllers/provisioning/scheduling/preferences.go). A pool whose minValues are not met offers nothing.
        """
        known = self._offers.get(pod_class.shape)
        if known is None:
            found = [
                (pool, liking, content)
                for pool in self.pools
                if _makes_nodes_for(pod_class, pool)
                for liking, content in _offers_of(pool, pod_class)
            ]
            tiers = {
                (pool.name, liking): self._tier(pod_class, pool, liking)
                for pool, liking in {(pool, liking) for pool, liking, _ in found}
            }
            places = {tier: place for place, tier in enumerate(sorted(set(tiers.values())))}
            known = self._offers[pod_class.shape] = tuple(
                [Offer(places[tiers[pool.name, liking]], *content) for pool, liking, content in found]
            )
        return known

    def rungs(self, pod_class: PodClass) -> tuple[Rung, ...]:
        """The class's offers that can be bought now, in groups: those of one tier that are preferred alike.

        A group at any price comes before the next; inside one, price decides. A class that starts no nodes has none.
        """
        if pod_class.terms.fills_only:
            return ()
        known = self._rungs.get(pod_class.shape)
        if known is None:
            grouped: dict[tuple[int, float], list[Offer]] = {}
            for offer in self.offers(pod_class):
                if offer.options:
                    grouped.setdefault((offer.tier, -offer.preference), []).append(offer)
            known = self._rungs[pod_class.shape] = tuple(tuple(grouped[key]) for key in sorted(grouped))
        return known

    def ranked(self, pod_class: PodClass, pods: int, pods_per_node: int | None) -> tuple[Offer, ...]:
        """What can be bought for the class now, the best for so many pods first; ``pods_per_node``: no more on one."""
        offers = [offer for offer in self.offers(pod_class) if offer.options]
        largest = max((offer.pods_per_node for offer in offers), default=0)
        most = largest if pods_per_node is None else min(pods_per_node, largest)
        # That more pods wait than any node holds makes no difference.
        asked = pod_class.shape, most, min(pods, most)
        if asked not in self._ranked:
            offers.sort(key=lambda each: each.cost(pods, min(most, each.pods_per_node)))
            self._ranked[asked] = tuple(offers)
        return self._ranked[asked]

    def combos(self, rung: Rung, keys: tuple[str, ...]) -> tuple[Combo, ...]:
        """The combinations of values of the keys that nodes of the rung can have, in order."""
        asked = (id(rung), keys)
        if asked not in self._combos:
            costs = [offer.kind.cost.micros // offer.pods_per_node for offer in rung]
            found = []
            for pin, places in self._pins(rung, keys):
                cheapest = min(places, key=costs.__getitem__)
                found.append(Combo(pin, costs[cheapest], places[cheapest]))
            # With the rung itself, so that nothing else comes to have its identity.
            self._combos[asked] = rung, tuple(found)
        return self._combos[asked][1]

    def _pins(self, rung: Rung, keys: tuple[str, ...]) -> _Pins:
        asked = (_ground(rung), keys)
        if asked not in self._pins_of:
            found: dict[Pin, dict[int, Mapping[str, str]]] = {}
            for place, offer in enumerate(rung):
                for pin, labels in offer.kind.pins(offer.options, keys).items():
                    found.setdefault(pin, {})[place] = labels
            self._pins_of[asked] = tuple((pin, found[pin]) for pin in sorted(found))
        return self._pins_of[asked]

    def kinds(self, pod_class: PodClass) -> Mapping[Make, Kind]:
        """Those that can be bought for the class now by what they make, the cheapest first."""
        known = self._kinds.get(pod_class.shape)
        if known is None:
            open_to = [offer for offer in self.offers(pod_class) if offer.options]
            open_to.sort(key=lambda offer: (offer.kind.cost.micros, offer.kind.order))
            known = self._kinds[pod_class.shape] = {offer.kind.make: offer.kind for offer in open_to}
        return known

    def kinds_without_pods(self, pool: str) -> Iterable[Kind]:
        """What a pool may launch when no pod says anything, the cheapest first."""
        kinds = next(each for each in self.pools if each.name == pool).kinds_without_pods()
        return sorted((kind for kind in kinds if kind.buyable), key=lambda kind: (kind.cost.micros, kind.order))

    def labels(self, pod_class: PodClass) -> tuple[Mapping[str, str], ...]:
        """Those of all nodes that can be bought for the class now."""
        known = self._labels.get(pod_class.shape)
        if known is None:
            offers = self.offers(pod_class)
            ground = _ground(offers)
            if ground not in self._labels_of:
                self._labels_of[ground] = tuple(
                    offer.kind.labels_of(option) for offer in offers for option in offer.options
                )
            known = self._labels[pod_class.shape] = self._labels_of[ground]
        return known

    def by_offering(self, pod_class: PodClass) -> Mapping[OfferingName, Offer]:
        """The class's offers by what they become: pool, instance type, capacity type and zone."""
        known = self._by_offering.get(pod_class.shape)
        if known is None:
            known = self._by_offering[pod_class.shape] = {
                (offer.kind.pool, offer.kind.instance_type.name, offer.kind.capacity_type, option.offering.zone): offer
                for offer in self.offers(pod_class)
                for option in (offer.options or offer.kind.options)
            }
        return known

    @staticmethod
    def _tier(pod_class: PodClass, pool: PoolOffers, liking: int) -> tuple[bool, int, int]:
        policy = pool.state.pool
        return pod_class.demand.disliked_taints(policy.taints) > 0, -liking, -policy.weight


# Kinds and those of their options that are offered, by identity, in order.
_Ground = tuple[int, ...]
# Values of some keys, and of each offer that nodes with these can be made of, by its place in the rung, such a node's
# labels.
_Pins = tuple[tuple[Pin, Mapping[int, Mapping[str, str]]], ...]


def _ground(offers: Iterable[Offer]) -> _Ground:
    return tuple([identity for each in offers for identity in (id(each.kind), id(each.options))])


def _makes_nodes_for(pod_class: PodClass, pool: PoolOffers) -> bool:
    policy = pool.state.pool
    return not policy.is_static and pod_class.demand.barring_taint(policy.taints) is None


# Of an offer all but its tier.
_Content = tuple[Kind, UsdPerHour, int, tuple[NodeOption, ...], float]


def _offers_of(pool: PoolOffers, pod_class: PodClass) -> Iterator[tuple[int, _Content]]:
    """The pool's offers with how well their nodes are liked: a kind is parted where its options are liked unlike."""
    fitting = pool.fitting(pod_class)
    if pool.too_few_values((kind for kind, _ in fitting), bought_now=True) is not None:
        return
    is_closed = pool.state.not_ready is not None
    on_demand: dict[str, list[Kind]] = {}
    for kind, _ in fitting:
        if kind.capacity_type == keys.ON_DEMAND and kind.buyable:
            on_demand.setdefault(kind.instance_type.name, []).append(kind)
    rulings, preferred = pod_class.rulings, pod_class.demand.preferred
    for kind, count in fitting:
        price = kind.usd_per_hour
        if price is None:
            continue
        options = () if is_closed else _worth_buying(kind, on_demand.get(kind.instance_type.name, ()))
        preference = rulings.score(pool.name, kind.type_at) if rulings.by_pool else 0.0
        for liking, liked in _by_liking(kind, options, preferred):
            yield liking, (kind, price, count, liked, preference)


def _by_liking(
    kind: Kind, options: tuple[NodeOption, ...], preferred: tuple[PreferredNodeTerm, ...]
) -> Iterable[tuple[int, tuple[NodeOption, ...]]]:
    if not preferred or not options:
        return [(0, options)]
    liked: dict[int, list[NodeOption]] = {}
    for option in options:
        liked.setdefault(preferred_weight(preferred, kind.labels_of(option)), []).append(option)
    return [(liking, tuple(alike)) for liking, alike in liked.items()]


def _worth_buying(kind: Kind, on_demand: Iterable[Kind]) -> tuple[NodeOption, ...]:
    """Spot that is dearer than on-demand of the same type in the same zone is never bought, whatever rules prefer.
    ``on_demand`` are the kinds of that type that can be bought.

    Karpenter compares with the cheapest on-demand of all types (pkg/providers/instance/filter of its AWS provider).
    """
    if kind.capacity_type != keys.SPOT:
        return kind.buyable
    cheaper = {option.offering.zone for other in on_demand if _price(other) < _price(kind) for option in other.buyable}
    if not cheaper:
        # The very same, so that who asks for the same sees it at once.
        return kind.buyable
    return tuple(each for each in kind.buyable if each.offering.zone not in cheaper)


def _price(kind: Kind) -> int:
    return (kind.usd_per_hour or FREE).micros
