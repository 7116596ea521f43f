"""How many pods each counter has in each domain, and what the counts leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from engine.model.constraint import HostPort, PodTerm, TopologySpread
from engine.scheduling.topology.counter import NodeFilter, Role
from engine.scheduling.topology.coupling import HOST, Coupling, SpreadRule
from engine.scheduling.topology.ground import ABSENT, Ground, Shape, Spot


@frozen
class Bar:
    """A constraint that keeps a pod from a node.

    ``by_others``: it is a placed pod's anti-affinity that names this one. ``here`` pods that matter are in the node's
    domain of the ``key``; of a spread, ``least`` are in the domain that has fewest. ``is_label_missing``: the node has
    no value of the key.

    ``counter`` is whose count bars; ``place`` is the constraint's among those of the pod, in the order of asking.
    """

    constraint: TopologySpread | PodTerm | HostPort
    key: str
    here: int = 0
    least: int = 0
    by_others: bool = False
    is_label_missing: bool = False
    counter: int = field(default=-1, eq=False)
    place: int = field(default=0, eq=False)


class Tally:
    """A state of the counts over one ground. Nodes that join make domains, whether or not they hold pods."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._counts: list[dict[int, int]] = [{} for _ in ground.counters]
        self._nodes: dict[Shape, int] = {}
        self._offered: dict[int, frozenset[int]] = {}
        self._universe: dict[tuple[NodeFilter, int], frozenset[int]] = {}
        self._known: dict[int, frozenset[int]] = {}

    def copy(self) -> Tally:
        twin = Tally.__new__(Tally)
        twin.ground = self.ground
        twin._counts = [dict(counts) for counts in self._counts]
        twin._nodes = dict(self._nodes)
        twin._offered = dict(self._offered)
        twin._universe = dict(self._universe)
        twin._known = dict(self._known)
        return twin

    def enter(self, spot: Spot, change: int = 1) -> None:
        """A node is there from now on, or, by -1, no more."""
        before = self._nodes.get(spot.shape, 0)
        self._nodes[spot.shape] = before + change
        if not (before and before + change):
            self._universe.clear()
            self._known.clear()

    def offer(self, coupling: Coupling, combos: Sequence[Mapping[str, str]]) -> None:
        """Nodes with such labels could be made for its pods: their domains are there to spread over."""
        if not coupling.spreads:
            return
        spots = self.ground.foreseen_apart(combos)
        whole = [spot for spot in spots if all(rule.key in spot.shape.present for rule in coupling.spreads)]
        for rule in coupling.spreads:
            offered = frozenset(spot.domains[rule.key] for spot in whole)
            known = self._offered.get(rule.counter)
            if known is None or not known >= offered:
                self._offered[rule.counter] = (known or frozenset()) | offered
                self._known.pop(rule.counter, None)

    def count(self, adds: tuple[int, ...], spot: Spot, pods: int) -> None:
        """So many pods that add to these counters are there from now on; a negative number takes them away."""
        domains = spot.domains
        for counter, key in spot.shape.counting(adds, self.ground.counters, self.ground.key_at):
            counts, domain = self._counts[counter], domains[key]
            total = counts.get(domain, 0) + pods
            if total:
                counts[domain] = total
            else:
                counts.pop(domain, None)

    def room(self, coupling: Coupling, spot: Spot, most: int) -> int:
        """How many more pods of the coupling, ``most`` at most, the counts admit there one after another."""
        counts, domains = self._counts, spot.domains
        for counter, key in coupling.bars:
            if domains[key] in counts[counter]:
                return 0
        for key in coupling.needed_keys:
            if key not in spot.shape.present:
                return 0
        if coupling.affinity and not self.has_company(coupling, spot):
            return 0
        for rule in coupling.spreads:
            most = min(most, self._spread_room(rule, spot, most))
        for key in coupling.excludes_itself:
            if domains[key] != ABSENT:
                return min(most, 1)
        return most

    def matching(self, coupling: Coupling, spot: Spot) -> tuple[int, int, int]:
        """How many pods count there, hostnames apart: for its spread constraints that it matches itself; for those of
        others that it is to leave even; for its own that it does not match."""
        own = other = 0
        for rule in coupling.spreads:
            if rule.key != HOST:
                here = self._counts[rule.counter].get(spot.domains[rule.key], 0)
                own, other = (own + here, other) if rule.counts_itself else (own, other + here)
        even = 0
        for counter, key in coupling.balances:
            even += self._counts[counter].get(spot.domains[key], 0)
        return own, even, other

    def counted(self, counter: int) -> Mapping[str, int]:
        """The pods that the counter counts by the names of their domains, those without any left out; in name order."""
        return dict(sorted((self.ground.name(domain), pods) for domain, pods in self._counts[counter].items()))

    def spread_over(self, rule: SpreadRule) -> Mapping[str, int]:
        """The same, of all domains that a spread over something else than hostnames spreads over, empty ones too."""
        counts = self._counts[rule.counter]
        return dict(sorted((self.ground.name(each), counts.get(each, 0)) for each in self._domains_of(rule)))

    def bar(self, coupling: Coupling, spot: Spot) -> Bar | None:
        """The first constraint, in the order of kube-scheduler's filters, that admits no pod there."""
        return self._bar_of_spreads(coupling, spot) or self._bar_of_terms(coupling, spot)

    def _bar_of_spreads(self, coupling: Coupling, spot: Spot) -> Bar | None:
        for place, rule in enumerate(coupling.spreads):
            key = self.ground.keys[rule.key]
            if rule.key not in spot.shape.present:
                return Bar(rule.constraint, key, is_label_missing=True, counter=rule.counter, place=place)
            if not self._spread_room(rule, spot, 1):
                here, elsewhere = self._extremes(rule, spot.domains[rule.key])
                least = 0 if elsewhere is None else min(here, elsewhere)
                return Bar(rule.constraint, key, here, least, counter=rule.counter, place=place)
        return None

    def _bar_of_terms(self, coupling: Coupling, spot: Spot) -> Bar | None:
        before = len(coupling.spreads)
        for place, (counter, key) in enumerate(coupling.affinity, before):
            if key not in spot.shape.present:
                return self._term_bar(counter, 0, place, is_label_missing=True)
        if coupling.affinity and not self.has_company(coupling, spot):
            for place, (counter, key) in enumerate(coupling.affinity, before):
                if spot.domains[key] not in self._counts[counter]:
                    return self._term_bar(counter, 0, place)
        # Its own anti-affinity before that of others.
        bars = sorted(coupling.bars, key=lambda bar: self.ground.counters[bar[0]].role is Role.HOLDER)
        for place, (counter, key) in enumerate(bars, before + len(coupling.affinity)):
            here = self._counts[counter].get(spot.domains[key], 0)
            if here:
                return self._term_bar(counter, here, place)
        return None

    def _term_bar(self, number: int, here: int, place: int, *, is_label_missing: bool = False) -> Bar:
        counter = self.ground.counters[number]
        assert counter.subject is not None
        return Bar(
            counter.subject,
            counter.key,
            here,
            by_others=counter.role is Role.HOLDER,
            is_label_missing=is_label_missing,
            counter=number,
            place=place,
        )

    def has_company(self, coupling: Coupling, spot: Spot) -> bool:
        """Whether pods are there for each of its affinity terms, or it may be the first of all."""
        return self.meets_company(coupling, spot) or (
            coupling.may_begin and not any(self._counts[counter] for counter, _ in coupling.affinity)
        )

    def meets_company(self, coupling: Coupling, spot: Spot) -> bool:
        """Whether pods are there for each of its affinity terms."""
        terms = coupling.affinity
        if spot.shape.foreseen:
            terms = tuple((counter, key) for counter, key in terms if key != HOST)
        return all(spot.domains[key] in self._counts[counter] for counter, key in terms)

    def _spread_room(self, rule: SpreadRule, spot: Spot, most: int) -> int:
        domain = spot.domains[rule.key]
        if domain == ABSENT:
            # Of a node to be made: its hostname's domain is its own, and empty.
            return most
        here, elsewhere = self._extremes(rule, domain)
        if not rule.counts_itself:
            least = here if elsewhere is None else min(here, elsewhere)
            return most if here - least <= rule.max_skew else 0
        # Alone, the domain is its own minimum however many pods it takes.
        return most if elsewhere is None else max(0, elsewhere + rule.max_skew - here)

    def _extremes(self, rule: SpreadRule, domain: int) -> tuple[int, int | None]:
        """The pods that the rule counts in the domain, and the fewest of any other: 0 where there are too few domains,
        None where there is no other."""
        counts = self._counts[rule.counter]
        here = counts.get(domain, 0)
        if rule.key == HOST:
            return here, self._fewest_on_hosts(rule, domain)
        known = self._domains_of(rule)
        if len(known) < rule.min_domains:
            return here, 0
        elsewhere = [counts.get(other, 0) for other in known if other != domain]
        return here, min(elsewhere) if elsewhere else None

    def _fewest_on_hosts(self, rule: SpreadRule, host: int) -> int | None:
        if self._offered.get(rule.counter):
            # Another host can be made, with no pod on it.
            return 0
        counts = self._counts[rule.counter]
        node_filter = self._filter_of(rule)
        hosts = sum(nodes for shape, nodes in self._nodes.items() if nodes and shape.is_counted_by(node_filter))
        if hosts < rule.min_domains or hosts - len(counts) - (host not in counts) > 0:
            return 0
        return min((pods for other, pods in counts.items() if other != host), default=None)

    def _domains_of(self, rule: SpreadRule) -> frozenset[int]:
        """The domains that the rule spreads over: of the nodes that it counts on, and of those that could be made."""
        if rule.counter not in self._known:
            offered = self._offered.get(rule.counter, frozenset())
            self._known[rule.counter] = self._universe_of(self._filter_of(rule), rule.key) | offered
        return self._known[rule.counter]

    def _universe_of(self, node_filter: NodeFilter, key: int) -> frozenset[int]:
        asked = (node_filter, key)
        if asked not in self._universe:
            shapes = [shape for shape, nodes in self._nodes.items() if nodes and shape.is_counted_by(node_filter)]
            self._universe[asked] = frozenset(shape.domains[key] for shape in shapes)
        return self._universe[asked]

    def _filter_of(self, rule: SpreadRule) -> NodeFilter:
        node_filter = self.ground.counters[rule.counter].node_filter
        assert node_filter is not None
        return node_filter
