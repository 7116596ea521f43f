"""What a pool can offer to pods: its options as the nodes they would become, grouped where only the zone differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from attrs import field, frozen

from engine.model.constraint import HostPort, Requirement
from engine.model.money import UsdPerHour
from engine.model.pod import DaemonSet
from engine.model.policy import NodePool
from engine.model.quantity import NODES, Resources
from engine.scheduling.daemons import Daemons
from engine.scheduling.groups import Demand, PodClass
from engine.scheduling.kinds import AddedLabels, Kind, Make
from engine.scheduling.problem import NodeOption, PoolState
from engine.scheduling.requirements import Requirements, ValueSet, canonical_labels, is_custom

_ONE_NODE = Resources({NODES: 1})

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
    makes: dict[_Content, Make] = field(factory=dict)


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
        self.options, self._kinds, self._makes = stock.options, stock.kinds, stock.makes
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
        holding = self.holding(pod_class)
        if not (rulings.by_pool or wasteful):
            return holding
        return [
            pair
            for pair in holding
            if rulings.bar(self.name, pair[0].type_at) is None
            and (self.name, pair[0].instance_type.name) not in wasteful
        ]

    def holding(self, pod_class: PodClass) -> list[tuple[Kind, int]]:
        """The same, whatever rules say, and whatever goes unused."""
        kinds = self.permitted(pod_class.demand)
        # Kinds of one instance type share their room.
        rooms = {id(kind.room): kind.room for kind in kinds}
        requests, ports = pod_class.requests, pod_class.ports
        counts = {identity: requests.times_in(room) for identity, room in rooms.items()}
        return [
            (kind, counts[id(kind.room)])
            for kind in kinds
            if counts[id(kind.room)] and self.open_to(pod_class, kind) and not (ports and _has_port_of(kind, ports))
        ]

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
                make=self._makes.setdefault(content, Make()),
            )
            for content, options in groups.items()
            for (_, capacity_type, _, price, capacity, room, overhead, added, probes, ports) in (content,)
        )


def _has_port_of(kind: Kind, ports: Iterable[HostPort]) -> bool:
    """Whether a daemon takes one of the host ports on such a node."""
    return any(port.conflicts(taken) for port in ports for taken in kind.daemon_ports)


_NO_DEMAND = Demand(terms=((),), tolerations=(), keys=frozenset())


def _by_name(option: NodeOption) -> tuple[str, str, str, str, int]:
    micros = option.usd_per_hour.micros if option.usd_per_hour is not None else -1
    of = option.offering
    return of.instance_type, of.capacity_type, of.zone, of.reservation_id, micros
