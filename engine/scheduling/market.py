"""All pools' offers to classes of pods, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import PreferredNodeTerm
from engine.model.money import FREE
from engine.scheduling.groups import PodClass, Shape
from engine.scheduling.kinds import Kind, Make, Offer, OfferingName, Rung
from engine.scheduling.offers import PoolOffers
from engine.scheduling.preferences import preferred_weight
from engine.scheduling.problem import NodeOption
from engine.scheduling.requirements import canonical_labels


class Market:
    """All pools' offers to a class of pods, in tiers by weight."""

    def __init__(self, pools: Sequence[PoolOffers]) -> None:
        self.pools = pools
        # By what decides of a class, so that classes which only their neighbours tell apart are asked about once.
        self._offers: dict[Shape, tuple[Offer, ...]] = {}
        self._rungs: dict[Shape, tuple[Rung, ...]] = {}
        self._kinds: dict[Shape, Mapping[Make, Kind]] = {}
        self._labels: dict[Shape, tuple[Mapping[str, str], ...]] = {}
        self._by_offering: dict[Shape, Mapping[OfferingName, Offer]] = {}

    def offers(self, pod_class: PodClass) -> tuple[Offer, ...]:
        """What the pools that make nodes for pods offer to the class, whether it can be bought now or not.

        A pool with a PreferNoSchedule taint against the class comes after those without; then weighs what of its
        preferred node affinity a node meets, then the pools' weights: the order in which Karpenter gives preferences
        up (pkg/controllers/provisioning/scheduling/preferences.go). A pool whose minValues are not met offers nothing.
        """
        shape = pod_class.shape
        if shape not in self._offers:
            found = [
                (self._tier(pod_class, pool, liking), offer)
                for pool in self.pools
                if _makes_nodes_for(pod_class, pool)
                for liking, offer in _offers_of(pool, pod_class)
            ]
            places = {tier: place for place, tier in enumerate(sorted({tier for tier, _ in found}))}
            self._offers[shape] = tuple(evolve(offer, tier=places[tier]) for tier, offer in found)
        return self._offers[shape]

    def rungs(self, pod_class: PodClass) -> tuple[Rung, ...]:
        """The class's offers that can be bought now, in groups: those of one tier that are preferred alike.

        A group at any price comes before the next; inside one, price decides. A class that starts no nodes has none.
        """
        if pod_class.terms.fills_only:
            return ()
        shape = pod_class.shape
        if shape not in self._rungs:
            grouped: dict[tuple[int, float], list[Offer]] = {}
            for offer in self.offers(pod_class):
                if offer.options:
                    grouped.setdefault((offer.tier, -offer.preference), []).append(offer)
            self._rungs[shape] = tuple(tuple(grouped[key]) for key in sorted(grouped))
        return self._rungs[shape]

    def kinds(self, pod_class: PodClass) -> Mapping[Make, Kind]:
        """Those that can be bought for the class now by what they make, the cheapest first."""
        shape = pod_class.shape
        if shape not in self._kinds:
            open_to = [offer for offer in self.offers(pod_class) if offer.options]
            open_to.sort(key=lambda offer: (offer.kind.cost.micros, offer.kind.order))
            self._kinds[shape] = {offer.kind.make: offer.kind for offer in open_to}
        return self._kinds[shape]

    def kinds_without_pods(self, pool: str) -> Iterable[Kind]:
        """What a pool may launch when no pod says anything, the cheapest first."""
        kinds = next(each for each in self.pools if each.name == pool).kinds_without_pods()
        return sorted((kind for kind in kinds if kind.buyable), key=lambda kind: (kind.cost.micros, kind.order))

    def labels(self, pod_class: PodClass) -> tuple[Mapping[str, str], ...]:
        """Those of all nodes that can be bought for the class now."""
        shape = pod_class.shape
        if shape not in self._labels:
            self._labels[shape] = tuple(
                {**canonical_labels(option.labels_once_up), **dict(offer.kind.added_labels)}
                for offer in self.offers(pod_class)
                for option in offer.options
            )
        return self._labels[shape]

    def by_offering(self, pod_class: PodClass) -> Mapping[OfferingName, Offer]:
        """The class's offers by what they become: pool, instance type, capacity type and zone."""
        shape = pod_class.shape
        if shape not in self._by_offering:
            self._by_offering[shape] = {
                (offer.kind.pool, offer.kind.instance_type.name, offer.kind.capacity_type, option.offering.zone): offer
                for offer in self.offers(pod_class)
                for option in (offer.options or offer.kind.options)
            }
        return self._by_offering[shape]

    @staticmethod
    def _tier(pod_class: PodClass, pool: PoolOffers, liking: int) -> tuple[bool, int, int]:
        policy = pool.state.pool
        return pod_class.demand.disliked_taints(policy.taints) > 0, -liking, -policy.weight


def _makes_nodes_for(pod_class: PodClass, pool: PoolOffers) -> bool:
    policy = pool.state.pool
    return not policy.is_static and pod_class.demand.barring_taint(policy.taints) is None


def _offers_of(pool: PoolOffers, pod_class: PodClass) -> Iterator[tuple[int, Offer]]:
    """The pool's offers with how well their nodes are liked: a kind is parted where its options are liked unlike."""
    fitting = pool.fitting(pod_class)
    if pool.too_few_values((kind for kind, _ in fitting), bought_now=True) is not None:
        return
    is_closed = pool.state.not_ready is not None
    on_demand: dict[str, list[Kind]] = {}
    for kind, _ in fitting:
        if kind.capacity_type == keys.ON_DEMAND and kind.buyable:
            on_demand.setdefault(kind.instance_type.name, []).append(kind)
    for kind, count in fitting:
        if kind.usd_per_hour is None:
            continue
        options = () if is_closed else _worth_buying(kind, on_demand.get(kind.instance_type.name, ()))
        for liking, liked in _by_liking(kind, options, pod_class.demand.preferred):
            yield (
                liking,
                Offer(
                    tier=0,
                    kind=kind,
                    usd_per_hour=kind.usd_per_hour,
                    pods_per_node=count,
                    options=liked,
                    preference=pod_class.rulings.score(pool.name, kind.type_at),
                ),
            )


def _by_liking(
    kind: Kind, options: tuple[NodeOption, ...], preferred: tuple[PreferredNodeTerm, ...]
) -> Iterable[tuple[int, tuple[NodeOption, ...]]]:
    if not preferred or not options:
        return [(0, options)]
    added = dict(kind.added_labels)
    liked: dict[int, list[NodeOption]] = {}
    for option in options:
        labels = {**canonical_labels(option.labels_once_up), **added}
        liked.setdefault(preferred_weight(preferred, labels), []).append(option)
    return [(liking, tuple(alike)) for liking, alike in liked.items()]


def _worth_buying(kind: Kind, on_demand: Iterable[Kind]) -> tuple[NodeOption, ...]:
    """Spot that is dearer than on-demand of the same type in the same zone is never bought, whatever rules prefer.
    ``on_demand`` are the kinds of that type that can be bought.

    Karpenter compares with the cheapest on-demand of all types (pkg/providers/instance/filter of its AWS provider).
    """
    if kind.capacity_type != keys.SPOT:
        return kind.buyable
    cheaper = {option.offering.zone for other in on_demand if _price(other) < _price(kind) for option in other.buyable}
    return tuple(each for each in kind.buyable if each.offering.zone not in cheaper)


def _price(kind: Kind) -> int:
    return (kind.usd_per_hour or FREE).micros
