"""Why a pool has no node for pods that are tied to others: what is left once all that is placed is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from engine.model.constraint import HostPort, PodTerm, TopologySpread
from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    CouplingRefusal,
    HostPortTaken,
    SpreadUnsatisfiable,
)
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind
from engine.scheduling.offers import PoolOffers
from engine.scheduling.problem import NodeOption
from engine.scheduling.requirements import canonical_labels
from engine.scheduling.topology.coupling import Coupling
from engine.scheduling.topology.tally import Bar
from engine.scheduling.topology.topology import Topology
from engine.scheduling.whereabouts import Whereabouts

# The values that a new node would have of the keys that matter to a coupling.
_Domains = tuple[tuple[str, str], ...]


@frozen(eq=False)
class LeftByTies:
    """The ``kinds`` of a pool, cut down to those options where a new node could take the pod; and where there is none,
    the ``refusal``: the constraint that removed the last of them, when they are asked one after another."""

    kinds: Sequence[Kind]
    refusal: CouplingRefusal | None


class TieRefusals:
    """Asked when all is settled."""

    def __init__(self, topology: Topology, whereabouts: Whereabouts) -> None:
        self._topology = topology
        self._whereabouts = whereabouts

    def left(self, pod_class: PodClass, kinds: Sequence[Kind]) -> LeftByTies:
        """Of the kinds that would hold a pod of the class."""
        coupling = pod_class.coupling
        if coupling is None or not pod_class.is_tied:
            return LeftByTies(kinds, None)
        bars: dict[_Domains, Bar | None] = {}
        open_kinds = []
        for kind in kinds:
            options = []
            for option in kind.options:
                labels = {**canonical_labels(option.labels_once_up), **dict(kind.added_labels)}
                domains = tuple((key, labels[key]) for key in sorted(coupling.pinned_keys) if key in labels)
                if domains not in bars:
                    bars[domains] = self._topology.why_not_alone(coupling, dict(domains))
                if bars[domains] is None:
                    options.append(option)
            if options:
                open_kinds.append(_cut_down(kind, options))
        told = [(domains, bar) for domains, bar in sorted(bars.items()) if bar is not None]
        return LeftByTies(open_kinds, self._refusal(coupling, told) if told and not open_kinds else None)

    def _refusal(self, coupling: Coupling, bars: Sequence[tuple[_Domains, Bar]]) -> CouplingRefusal:
        last = max(bar.place for _, bar in bars)
        decisive = [(dict(domains), bar) for domains, bar in bars if bar.place == last]
        bar = decisive[0][1]
        reachable = tuple(sorted({labels[bar.key] for labels, _ in decisive if labels.get(bar.key)}))
        match bar.constraint:
            case TopologySpread(max_skew=max_skew, min_domains=min_domains):
                counts = self._topology.tally.spread_over(coupling.spreads[bar.place])
                return SpreadUnsatisfiable(bar.key, max_skew, tuple(counts.items()), reachable, min_domains or 0)
            case PodTerm(selector=selector) if bar.here:
                domain = reachable[0]
                pod = self._whereabouts.counted_in(bar.counter, bar.key, domain)
                return AntiAffinityInTheWay(bar.key, domain, pod, len(reachable), is_its_own=bar.by_others)
            case PodTerm(selector=selector):
                there = self._topology.tally.counted(bar.counter)
                return AffinityUnsatisfiable(bar.key, selector, sum(there.values()), tuple(there))
            case HostPort(port=port, protocol=protocol):
                return HostPortTaken(port, protocol)


def port_refusal(pod_class: PodClass, pool: PoolOffers, permitted: Iterable[Kind]) -> HostPortTaken | None:
    """Where each of the permitted kinds that have room for a pod of the class has a daemon on its host port."""
    ports = pod_class.coupling.ports if pod_class.coupling is not None else ()
    if not ports:
        return None
    taken: list[tuple[HostPort, str]] = []
    for kind in permitted:
        if pool.open_to(pod_class, kind) and pod_class.requests.times_in(kind.room):
            labels = {**canonical_labels(kind.options[0].labels_once_up), **dict(kind.added_labels)}
            there = pool.daemons.host_ports_by_name(labels)
            in_the_way = [(port, name) for other, name in there for port in ports if port.conflicts(other)]
            if not in_the_way:
                return None
            taken += in_the_way
    port, taken_by = min(taken, default=(None, ""))
    return HostPortTaken(port.port, port.protocol, taken_by) if port is not None else None


def _cut_down(kind: Kind, options: Sequence[NodeOption]) -> Kind:
    return kind if len(options) == len(kind.options) else evolve(kind, options=tuple(options))
