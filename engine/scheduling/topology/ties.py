"""The required constraints of one pod towards other pods, as the counters that they ask for."""

from __future__ import annotations

from attrs import field, frozen

from engine.model.constraint import HostPort, PodTerm, TopologySpread
from engine.model.pod import Placing, Pod
from engine.scheduling.groups import Demand
from engine.scheduling.requirements import canonical_key
from engine.scheduling.topology.counter import Counter, Look, NodeFilter, Role


@frozen(eq=False)
class Ties:
    """One object for pods of equal constraints. ``anti`` counts whom its terms name, ``held`` who holds such terms."""

    spreads: tuple[tuple[Counter, TopologySpread], ...] = ()
    affinity: tuple[Counter, ...] = ()
    anti: tuple[Counter, ...] = ()
    held: tuple[Counter, ...] = ()
    ports: tuple[HostPort, ...] = ()


@frozen(eq=False)
class TieReader:
    """Reads pods, each kind of them once."""

    _by_placing: dict[tuple[int, str], Ties | None] = field(factory=dict)
    _by_content: dict[object, Ties] = field(factory=dict)
    _filters: dict[object, NodeFilter] = field(factory=dict)

    def ties_of(self, pod: Pod) -> Ties | None:
        """None for a pod without a required constraint. The pod must stay alive as long as the reader does."""
        placing = pod.placing
        if not (placing.spreads or placing.pod_affinity or placing.pod_anti_affinity or placing.host_ports):
            return None
        known = (id(placing), pod.key.namespace)
        if known not in self._by_placing:
            self._by_placing[known] = self._read(placing, pod.key.namespace)
        return self._by_placing[known]

    def _read(self, placing: Placing, namespace: str) -> Ties | None:
        spreads = tuple(each for each in placing.spreads if each.is_required)
        where = (namespace, _asked_of_nodes(placing)) if spreads else None
        content = (spreads, placing.pod_affinity, placing.pod_anti_affinity, placing.host_ports, where)
        if not any(content):
            return None
        if content not in self._by_content:
            anti = tuple((Look.of(term), term) for term in placing.pod_anti_affinity)
            self._by_content[content] = Ties(
                spreads=tuple((self._spread_counter(each, spreads, placing, namespace), each) for each in spreads),
                affinity=_affinity_counters(placing.pod_affinity),
                anti=_counters(Role.MATCH, anti),
                held=_counters(Role.HOLDER, anti),
                ports=tuple(sorted(set(placing.host_ports))),
            )
        return self._by_content[content]

    def _spread_counter(
        self, spread: TopologySpread, all_spreads: tuple[TopologySpread, ...], placing: Placing, namespace: str
    ) -> Counter:
        keys = tuple(sorted({canonical_key(each.key) for each in all_spreads}))
        asked = _asked_of_nodes(placing)
        content = (
            keys,
            asked[:2] if spread.honors_affinity else None,
            asked[2] if spread.honors_taints else None,
        )
        if content not in self._filters:
            demand = Demand.of(placing).own
            is_choosy = spread.honors_affinity and any(asked[:2])
            self._filters[content] = NodeFilter(
                keys=keys,
                affinity=demand if is_choosy else None,
                tolerations=demand if spread.honors_taints else None,
                order=repr(content),
            )
        look = Look((namespace,), None, spread.selector)
        return Counter(Role.SPREAD, canonical_key(spread.key), (look,), self._filters[content])


def _asked_of_nodes(placing: Placing) -> tuple[object, object, object]:
    return tuple(sorted(placing.node_selector.items())), placing.affinity_terms, placing.tolerations


def _affinity_counters(terms: tuple[PodTerm, ...]) -> tuple[Counter, ...]:
    """One for each key: what counts for affinity is a pod that all the terms see, not one for each term."""
    looks = tuple(sorted({Look.of(term) for term in terms}, key=repr))
    by_key = {
        canonical_key(term.key): Counter(Role.MATCH, canonical_key(term.key), looks, None, term) for term in terms
    }
    return tuple(by_key[key] for key in sorted(by_key))


def _counters(role: Role, terms: tuple[tuple[Look, PodTerm], ...]) -> tuple[Counter, ...]:
    return tuple(Counter(role, canonical_key(term.key), (look,), None, term) for look, term in terms)
