"""What a pool can offer to pods: its options as the nodes they would become, grouped where only the zone differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

from attrs import evolve, field, frozen

from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.constraint import HostPort, PreferredNodeTerm, Requirement
from engine.model.money import FREE, UsdPerHour
from engine.model.pod import DaemonSet
from engine.model.policy import NodePool
from engine.model.quantity import NODES, Resources
from engine.model.reservation import ReservationKind
from engine.policy.rules.ruling import TypeAt
from engine.scheduling.daemons import Daemons
from engine.scheduling.groups import Demand, PodClass, Shape
from engine.scheduling.preferences import preferred_weight
from engine.scheduling.problem import NodeOption, PoolState
from engine.scheduling.requirements import Requirements, ValueSet, canonical_labels, is_custom

_ONE_NODE = Resources({NODES: 1})

# Custom labels that were left to choose, in name order.
AddedLabels = tuple[tuple[str, str], ...]
# Type, capacity type, reservation, price, capacity, room, overhead, added labels, probes, daemons' ports.
_Content = tuple[
    str,
    str,
    str,
    UsdPerHour | None,
    Resources,
    Resources,
    Resources,
    AddedLabels,
    tuple[str, ...],
    frozenset[HostPort],
]


# What a node of a kind is, whatever options it may be made from.
Make = tuple[object, ...]


@frozen(eq=False)
class Kind:
    """Options of one pool that differ in nothing but the zone; those on probation are apart from the others, and each
    reservation is a kind of its own, of which ``most`` more nodes can be had, of all pools together.

    ``capacity`` is what counts against limits, one ``nodes`` included; ``room`` is allocatable less daemons, which
    take ``overhead``. ``cost`` is what it is chosen by: its price and what the pool says a node costs besides; free
    where it has no price. ``added_labels`` are the pool's custom labels that were left to choose. ``buyable`` are the
    options that have a price and refused no launch lately, or may be tried again: then, for each of the ``probes``, one
    launch. ``order`` decides where prices are equal.
    """

    pool: str
    instance_type: InstanceType
    capacity_type: str
    usd_per_hour: UsdPerHour | None
    capacity: Resources
    room: Resources
    overhead: Resources
    added_labels: AddedLabels
    options: tuple[NodeOption, ...]
    node_cost: UsdPerHour = FREE
    daemon_ports: frozenset[HostPort] = frozenset()
    probes: tuple[str, ...] = ()
    buyable: tuple[NodeOption, ...] = field(init=False)
    order: tuple[object, ...] = field(init=False)
    cost: UsdPerHour = field(init=False)
    reservation: str = field(init=False)
    most: int | None = field(init=False)

    @buyable.default
    def _priced_and_available(self) -> tuple[NodeOption, ...]:
        return tuple(
            each for each in self.options if each.usd_per_hour is not None and each.is_available and each.available != 0
        )

    @order.default
    def _fewest_accelerators_then_names(self) -> tuple[object, ...]:
        devices = sum(self.instance_type.accelerators.values())
        name = (self.instance_type.name, self.capacity_type, *_reservation_order(self.options[0]))
        return devices, self.pool, *name, self.added_labels, self.probes

    @cost.default
    def _price_and_node_cost(self) -> UsdPerHour:
        return self.usd_per_hour + self.node_cost if self.usd_per_hour is not None else FREE

    @reservation.default
    def _that_of_its_options(self) -> str:
        return self.options[0].offering.reservation_id

    @most.default
    def _places_of_the_reservation(self) -> int | None:
        return self.options[0].available

    @cached_property
    def make(self) -> Make:
        """The same for kinds of two classes that differ in nothing but the options that each class may have."""
        return (
            self.pool,
            *self.type_at,
            self.reservation,
            self.usd_per_hour,
            self.capacity,
            self.room,
            self.overhead,
            self.added_labels,
            self.probes,
            self.daemon_ports,
        )

    @property
    def type_at(self) -> TypeAt:
        """What rules know it by."""
        return self.instance_type.name, self.capacity_type


@frozen(eq=False)
class Offer:
    """A kind of node that holds ``pods_per_node`` of a class, and has a price. ``tier`` 0 is asked first.

    ``options`` can be bought now; there may be none. ``preference`` is what rules give it, for this class.
    """

    tier: int
    kind: Kind
    usd_per_hour: UsdPerHour
    pods_per_node: int
    options: tuple[NodeOption, ...]
    preference: float = 0.0

    def cost(self, pods: int, pods_per_node: int) -> tuple[int, float, float, int, tuple[object, ...]]:
        """The smaller the better for so many pods: tier, what rules prefer, price for each pod served, then more of
        them on one node. So inside a tier the most preferred offering wins at any price; price decides among equals.

        ``pods_per_node`` may differ from the offer's where a real node has other room than was foretold.
        """
        served = min(pods_per_node, pods)
        return self.tier, -self.preference, self.kind.cost.micros / served, -served, self.kind.order


# Offers that a class would as soon have, but for their price.
Rung = tuple[Offer, ...]
# Pool, instance type, capacity type, zone.
OfferingName = tuple[str, str, str, str]


_Kinds = dict[tuple[object, ...], tuple[Kind, ...]]
_MOST_KINDS = 500
# Of a custom key: more values than that are not tried one by one.
_FEW_VALUES = 8


@frozen(eq=False)
class _Stock:
    """What was worked out of a pool's options: good for the very same options, and equal daemonsets."""

    given: tuple[NodeOption, ...]
    pool: NodePool
    daemon_sets: tuple[DaemonSet, ...]
    chosen: tuple[tuple[str, tuple[str, ...]], ...]
    options: tuple[tuple[NodeOption, Mapping[str, str]], ...]
    kinds: _Kinds


# The last stock of each pool.
_STOCKS: dict[str, _Stock] = {}


def _stock_of(
    state: PoolState, daemon_sets: tuple[DaemonSet, ...], chosen: tuple[tuple[str, tuple[str, ...]], ...]
) -> _Stock:
    """``chosen`` are custom keys with the values that nodes are made with, each value as an option of its own."""
    name, last = state.pool.name, _STOCKS.get(state.pool.name)
    if (
        last is not None
        and last.given is state.options
        and (last.pool, last.daemon_sets, last.chosen) == (state.pool, daemon_sets, chosen)
        and len(last.kinds) < _MOST_KINDS
    ):
        return last
    options = tuple(
        (each, labels)
        for each in sorted(state.options, key=_by_name)
        for labels in _with_chosen(canonical_labels(each.labels_once_up), chosen)
    )
    _STOCKS[name] = _Stock(state.options, state.pool, daemon_sets, chosen, options, {})
    return _STOCKS[name]


def _with_chosen(
    labels: Mapping[str, str], chosen: Iterable[tuple[str, tuple[str, ...]]]
) -> Iterator[Mapping[str, str]]:
    """The labels with each choice of values for the keys that they lack."""
    lacking = [[(key, value) for value in values] for key, values in chosen if key not in labels]
    return ({**labels, **dict(choice)} for choice in product(*lacking)) if lacking else iter((labels,))


class PoolOffers:
    """One pool, ready to be asked what it has for a class of pods.

    A custom key with several permitted values has none on the options: the node gets the least value that the pool
    and the pod permit, or no such label where both permit that. (Karpenter picks any one, another at each turn.)
    """

    def __init__(self, state: PoolState, daemon_sets: Iterable[DaemonSet], decisive_keys: Iterable[str] = ()) -> None:
        """By ``decisive_keys`` pods ask for nodes, are spread or kept together: of custom ones each of a few values
        that the pool names is one that it can make nodes with, for whomever."""
        self.state = state
        self.name = state.pool.name
        self.daemons = Daemons(daemon_sets, state.pool.taints)
        own = Requirements.of(state.pool.requirements).sets
        self.custom: Mapping[str, ValueSet] = {key: own[key] for key in sorted(own) if is_custom(key)}
        self.min_values = {key: each.min_values for key, each in sorted(own.items()) if each.min_values}
        chosen = tuple(
            (key, tuple(sorted(self.custom[key].values)))
            for key in sorted(set(decisive_keys).intersection(self.custom))
            if not self.custom[key].complement and 0 < len(self.custom[key].values) <= _FEW_VALUES
        )
        stock = _stock_of(state, tuple(daemon_sets), chosen)
        self.options, self._kinds = stock.options, stock.kinds
        self._permitted: dict[Demand, tuple[Kind, ...]] = {}

    def permitted(self, demand: Demand) -> tuple[Kind, ...]:
        """The kinds of node that meet the demand's labels; taints and room are other questions."""
        if demand not in self._permitted:
            chosen = []
            for index, (_, labels) in enumerate(self.options):
                added = self._labels_to_add(demand, labels)
                if added is not None:
                    chosen.append((index, added))
            key = tuple(chosen)
            # Demands that leave the same options share their kinds, whatever they say.
            if key not in self._kinds:
                self._kinds[key] = self._grouped(chosen)
            self._permitted[demand] = self._kinds[key]
        return self._permitted[demand]

    def open_to(self, pod_class: PodClass, kind: Kind) -> bool:
        """Whether the class may have such a node made: without an accelerator request it gets no accelerated one."""
        return bool(pod_class.accelerators) or not kind.instance_type.is_accelerated or self.state.pool.open_to_all_pods

    def fitting(self, pod_class: PodClass) -> list[tuple[Kind, int]]:
        """The permitted kinds that hold at least one pod of the class and may be made for it, with how many.

        No rule bars them, and not too many of their GPUs would go unused.
        """
        rulings, wasteful = pod_class.rulings, pod_class.terms.wasteful
        return [
            pair
            for pair in self.holding(pod_class)
            if rulings.bar(self.name, pair[0].type_at) is None
            and (self.name, pair[0].instance_type.name) not in wasteful
        ]

    def holding(self, pod_class: PodClass) -> list[tuple[Kind, int]]:
        """The same, whatever rules say, and whatever goes unused."""
        counts: dict[int, int] = {}
        found = []
        for kind in self.permitted(pod_class.demand):
            if self.open_to(pod_class, kind) and not _has_port_of(kind, pod_class.ports):
                # Kinds of one instance type share their room.
                count = counts.get(id(kind.room))
                if count is None:
                    count = counts[id(kind.room)] = pod_class.requests.times_in(kind.room)
                if count:
                    found.append((kind, count))
        return found

    def kinds_without_pods(self) -> tuple[Kind, ...]:
        """What the pool may launch when no pod says anything."""
        return self.permitted(_NO_DEMAND)

    def too_few_values(
        self, kinds: Iterable[Kind], *, bought_now: bool = False
    ) -> tuple[str, int, frozenset[str]] | None:
        """The first key of which these kinds show fewer values than the pool insists on, and the values.

        ``bought_now``: only what can be bought now is to show them.
        """
        if self.state.pool.min_values_best_effort:
            return None
        return next(self.lacking_values(kinds, bought_now=bought_now), None)

    def lacking_values(
        self, kinds: Iterable[Kind], *, bought_now: bool = False
    ) -> Iterator[tuple[str, int, frozenset[str]]]:
        """Each key of which these kinds show fewer values than the pool's minValues ask, and the values."""
        if not self.min_values:
            return
        shown = [
            {**option.labels_once_up, **dict(kind.added_labels)}
            for kind in kinds
            for option in (kind.buyable if bought_now else kind.options)
        ]
        for key, least in self.min_values.items():
            values = frozenset(labels[key] for labels in shown if key in labels)
            if len(values) < least:
                yield key, least, values

    def offered_values(self, key: str) -> ValueSet:
        """What the pool's nodes may have under a key: of its options' labels, or of its own custom requirement."""
        told = frozenset(labels[key] for _, labels in self.options if key in labels)
        if told or key not in self.custom:
            return ValueSet(told, absent=any(key not in labels for _, labels in self.options))
        return self.custom[key]

    def _labels_to_add(self, demand: Demand, labels: Mapping[str, str]) -> AddedLabels | None:
        """The custom labels that make an option meet the first of the terms that it can; None: it meets none."""
        if not self.custom:
            return () if demand.admits(labels) else None
        for term in demand.terms:
            added = self._labels_for_term(term, labels)
            if added is not None:
                return added
        return None

    def _labels_for_term(self, term: tuple[Requirement, ...], labels: Mapping[str, str]) -> AddedLabels | None:
        left_to_choose = {key: admitted for key, admitted in self.custom.items() if key not in labels}
        for each in term:
            if each.key in left_to_choose:
                left_to_choose[each.key] = left_to_choose[each.key].intersection(ValueSet.of(each))
            elif not each.admits(labels.get(each.key)):
                return None
        added = []
        for key, admitted in left_to_choose.items():
            if admitted.absent:
                continue
            value = admitted.least()
            if value is None:
                return None
            added.append((key, value))
        return tuple(added)

    def _grouped(self, chosen: list[tuple[int, AddedLabels]]) -> tuple[Kind, ...]:
        groups: dict[_Content, list[NodeOption]] = {}
        rooms: dict[Resources, Resources] = {}
        for index, added in chosen:
            option, labels = self.options[index]
            own = canonical_labels(option.labels_once_up)
            added = (*((key, value) for key, value in sorted(labels.items()) if key not in own), *added)
            overhead = self.daemons.overhead({**labels, **dict(added)} if added else labels)
            room = option.allocatable - overhead
            room = rooms.setdefault(room, room)
            price, capacity = option.usd_per_hour, option.capacity
            offering = option.offering
            name = (offering.instance_type, offering.capacity_type, offering.reservation_id)
            ports = self.daemons.host_ports({**labels, **dict(added)})
            content = (*name, price, capacity, room, overhead, added, option.probes, ports)
            groups.setdefault(content, []).append(option)
        return tuple(
            Kind(
                pool=self.name,
                instance_type=options[0].instance_type,
                capacity_type=capacity_type,
                usd_per_hour=price,
                capacity=capacity + _ONE_NODE,
                room=room,
                overhead=overhead,
                added_labels=added,
                options=tuple(options),
                node_cost=self.state.pool.node_cost,
                daemon_ports=ports,
                probes=probes,
            )
            for (_, capacity_type, _, price, capacity, room, overhead, added, probes, ports), options in groups.items()
        )


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


def _has_port_of(kind: Kind, ports: Iterable[HostPort]) -> bool:
    """Whether a daemon takes one of the host ports on such a node."""
    return any(port.conflicts(taken) for port in ports for taken in kind.daemon_ports)


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


_NO_DEMAND = Demand(terms=((),), tolerations=(), keys=frozenset())


def _by_name(option: NodeOption) -> tuple[str, str, str, str, int]:
    micros = option.usd_per_hour.micros if option.usd_per_hour is not None else -1
    of = option.offering
    return of.instance_type, of.capacity_type, of.zone, of.reservation_id, micros


def _reservation_order(option: NodeOption) -> tuple[bool, str]:
    """Karpenter's (pkg/providers/instance/filter of its AWS provider): a reservation without end before a block."""
    is_block = option.labels.get(keys.CAPACITY_RESERVATION_TYPE) == ReservationKind.CAPACITY_BLOCK.value
    return is_block, option.offering.reservation_id
