"""What ties a pod to others: the counters that it adds to, and those that decide where it may go."""

from __future__ import annotations

from attrs import frozen

from engine.model.constraint import HostPort, TopologySpread

# A counter's number, and the place of its topology key among the neighbourhood's keys.
CountAt = tuple[int, int]

# The place of kubernetes.io/hostname among the keys of every neighbourhood.
HOST = 0


@frozen(eq=False)
class SpreadRule:
    """A required spread constraint over what ``counter`` counts. ``counts_itself``: a pod of the class matches it."""

    counter: int
    key: int
    max_skew: int
    min_domains: int
    counts_itself: bool
    constraint: TopologySpread


@frozen(eq=False)
class Coupling:
    """One object for all pods of a neighbourhood that are tied alike. ``order`` comes from content only, for sorting.

    ``adds`` are the counters that a placed pod of it counts in. ``affinity`` must all be above zero in a node's domains
    unless they are zero everywhere and the pod ``may_begin``. ``bars`` must be zero there: pods that its own
    anti-affinity names, and pods whose anti-affinity names it. ``excludes_itself``: keys in whose domains two of its
    own pods exclude each other. ``needed_keys``: a node without one of them takes none.

    ``pinned_keys`` are the topology keys, hostname apart, by whose values it matters where its pods go. ``balances``
    are counters that it adds to and that spreads of others read which do not add to them: those hold, in whatever order
    pods are bound, only if these are even in the end.
    """

    number: int
    order: str
    adds: tuple[int, ...]
    spreads: tuple[SpreadRule, ...] = ()
    affinity: tuple[CountAt, ...] = ()
    may_begin: bool = False
    bars: tuple[CountAt, ...] = ()
    excludes_itself: tuple[int, ...] = ()
    ports: tuple[HostPort, ...] = ()
    needed_keys: tuple[int, ...] = ()
    pinned_keys: frozenset[str] = frozenset()
    balances: tuple[CountAt, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether others count it, but nothing keeps it from any node."""
        return not (self.spreads or self.affinity or self.bars or self.ports)

    @property
    def stays_on_one_node(self) -> bool:
        """Whether all of its pods go where the first one is."""
        return any(key == HOST and counter in self.adds for counter, key in self.affinity)

    @property
    def most_on_a_new_node(self) -> int | None:
        """How many of its pods one more node takes as long as it is not the last; None: any number."""
        if self.ports or HOST in self.excludes_itself:
            return 1
        return min((rule.max_skew for rule in self.spreads if rule.key == HOST and rule.counts_itself), default=None)
