"""Where counters count: nodes as the domains they are in, told apart only by what some constraint looks at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from engine.model.constraint import Taint
from engine.model.labels import ALIASES
from engine.model.labels import HOSTNAME as HOSTNAME_KEY
from engine.scheduling.requirements import canonical_labels
from engine.scheduling.topology.counter import Counter, NodeFilter
from engine.scheduling.topology.coupling import HOST, CountAt
from engine.scheduling.topology.neighbourhood import Neighbourhood

# The domain of a node without the label.
ABSENT = -1
# What a person is told of the hostname of a node that has none yet.
_UNNAMED = "a node to come"


@frozen(eq=False)
class Shape:
    """Nodes alike in all that constraints look at, their hostnames apart. One object for equal ones.

    ``domains`` are by the neighbourhood's keys, that of the hostname ABSENT. ``present`` are the keys with a value that
    is not empty; a node that is to come has a hostname whatever its labels say. A ``foreseen`` shape is of nodes that
    could be made, of which only some labels are known.
    """

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    domains: tuple[int, ...]
    present: frozenset[int]
    foreseen: bool
    _admitted: dict[NodeFilter, bool] = field(factory=dict)
    _counting: dict[tuple[int, ...], tuple[CountAt, ...]] = field(factory=dict)

    def is_counted_by(self, node_filter: NodeFilter) -> bool:
        """Whether the pods that are on such nodes count."""
        if node_filter not in self._admitted:
            labels = dict(self.labels)
            if HOST in self.present and not labels.get(HOSTNAME_KEY):
                labels[HOSTNAME_KEY] = "self"
            seen = node_filter.may_admit(labels) if self.foreseen else node_filter.admits(labels, self.taints)
            self._admitted[node_filter] = seen
        return self._admitted[node_filter]

    def counting(
        self, adds: tuple[int, ...], counters: tuple[Counter, ...], at: tuple[int, ...]
    ) -> tuple[CountAt, ...]:
        """Those of the counters that count here; ``at`` has each counter's place among the keys."""
        if adds not in self._counting:
            self._counting[adds] = tuple((each, at[each]) for each in adds if self._counts(counters[each], at[each]))
        return self._counting[adds]

    def _counts(self, counter: Counter, key: int) -> bool:
        if key == HOST:
            if self.foreseen or HOST not in self.present:
                return False
        elif self.domains[key] == ABSENT:
            return False
        return counter.node_filter is None or self.is_counted_by(counter.node_filter)


@frozen(eq=False)
class Spot:
    """One node: its shape, and its domain under each key."""

    shape: Shape
    domains: tuple[int, ...]


class Ground:
    """The shapes and domains of one neighbourhood, shared by all states of it: what it learns is true for all."""

    def __init__(self, neighbourhood: Neighbourhood) -> None:
        self.counters = neighbourhood.counters
        self.keys = neighbourhood.topology_keys
        place = {key: index for index, key in enumerate(self.keys)}
        self.key_at = tuple(place[counter.key] for counter in self.counters)
        filters = [counter.node_filter for counter in self.counters if counter.node_filter is not None]
        looked_at = {key for each in filters if each.affinity is not None for key in each.affinity.keys}
        self._relevant = sorted(looked_at | set(self.keys[1:]))
        self._minds_taints = any(each.tolerations is not None for each in filters)
        self._domains: dict[tuple[int, str | int], int] = {}
        self._values: list[str] = []
        self._shapes: dict[object, Shape] = {}
        self._foreseen: dict[object, Spot] = {}
        self._foreseen_by: dict[int, tuple[Mapping[str, str], Spot]] = {}
        self._foreseen_of: dict[int, tuple[Sequence[Mapping[str, str]], tuple[Spot, ...]]] = {}
        # Under any of their names: beta names of some keys are old ones.
        self._names = [*self._relevant, *(old for old, present in ALIASES.items() if present in self._relevant)]
        self._fresh: dict[object, Spot] = {}

    def domain(self, key: int, value: str | int) -> int:
        """The number of a domain; an integer is the name of a node that has no hostname."""
        found = self._domains.setdefault((key, value), len(self._domains))
        if found == len(self._values):
            self._values.append(value if isinstance(value, str) else _UNNAMED)
        return found

    def name(self, domain: int) -> str:
        """The value that a domain is known by."""
        return self._values[domain]

    def spot(self, labels: Mapping[str, str], taints: Iterable[Taint], host: str | int | None) -> Spot:
        """A node's spot; ``host`` stands for its hostname where it has no such label. None: then it is in no domain of
        hostnames."""
        present = canonical_labels(labels)
        hostname = present.get(HOSTNAME_KEY) or host
        minded = tuple(sorted(taints, key=str)) if self._minds_taints else ()
        shape = self._shape(present, minded, foreseen=False, has_hostname=hostname is not None)
        return Spot(shape, (ABSENT if hostname is None else self.domain(HOST, hostname), *shape.domains[1:]))

    def foreseen(self, labels: Mapping[str, str]) -> Spot:
        """A node to be made, of its own hostname, of which these labels are known."""
        known = self._foreseen_by.get(id(labels))
        if known is not None:
            return known[1]
        content = tuple([labels.get(name) for name in self._names])
        if content not in self._foreseen:
            shape = self._shape(canonical_labels(labels), (), foreseen=True)
            self._foreseen[content] = Spot(shape, shape.domains)
        # With the labels themselves, so that nothing else comes to have their identity.
        self._foreseen_by[id(labels)] = labels, self._foreseen[content]
        return self._foreseen[content]

    def foreseen_apart(self, nodes: Sequence[Mapping[str, str]]) -> tuple[Spot, ...]:
        """The different ones of many nodes to be made. What a tuple comes to is kept: thousands of classes are offered
        the very same nodes."""
        known = self._foreseen_of.get(id(nodes))
        if known is not None:
            return known[1]
        spots = tuple({spot.shape: spot for spot in map(self.foreseen, nodes)}.values())
        if isinstance(nodes, tuple):
            # The tuple is kept as well, so that nothing else comes to have its identity.
            self._foreseen_of[id(nodes)] = nodes, spots
        return spots

    def fresh(self, labels: Mapping[str, str]) -> Spot:
        """A node with these labels and its own hostname, on which nobody is yet."""
        content = tuple(labels.items())
        if content not in self._fresh:
            shape = self._shape(canonical_labels(labels), (), foreseen=False)
            self._fresh[content] = Spot(shape, shape.domains)
        return self._fresh[content]

    def _shape(
        self, labels: Mapping[str, str], taints: tuple[Taint, ...], *, foreseen: bool, has_hostname: bool = True
    ) -> Shape:
        shown = tuple((key, labels[key]) for key in self._relevant if key in labels)
        content = (shown, taints, foreseen, has_hostname)
        if content not in self._shapes:
            known = dict(shown)
            domains = [self.domain(at, known[key]) if key in known else ABSENT for at, key in enumerate(self.keys)]
            domains[HOST] = ABSENT
            present = {at for at, key in enumerate(self.keys) if at != HOST and known.get(key)}
            present |= {HOST} if has_hostname else set()
            self._shapes[content] = Shape(known, taints, tuple(domains), frozenset(present), foreseen)
        return self._shapes[content]
