"""Who counts whom among waiting pods and the pods that nodes hold already: kube-scheduler's rules made countable.

The rules are those of the filters PodTopologySpread, InterPodAffinity and NodePorts, for required constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from attrs import field, frozen

from engine.model import labels as keys
from engine.model.constraint import HostPort, Taint, TopologySpread
from engine.model.pod import Pod, PodKey
from engine.model.workload import Namespace
from engine.scheduling.topology.counter import Counter, Role, Sight
from engine.scheduling.topology.coupling import Coupling, SpreadRule
from engine.scheduling.topology.ties import TieReader, Ties


@frozen(eq=False)
class StandingNode:
    """A real node of the cluster, cordoned or not, with the pods that are bound to it and have not finished."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    pods: Sequence[Pod]


@frozen(eq=False)
class Bound:
    """What a standing node's pods add to counters (by counters, how many pods), and their host ports."""

    node: StandingNode
    adds: Mapping[tuple[int, ...], int]
    ports: frozenset[HostPort]


@frozen(eq=False)
class Neighbourhood:
    """The counters that decide something for a waiting pod, by number; ``topology_keys[HOST]`` is the hostname.

    ``bound`` are the standing nodes in name order; none where no pod is tied to others.
    """

    counters: tuple[Counter, ...] = ()
    topology_keys: tuple[str, ...] = (keys.HOSTNAME,)
    couplings: tuple[Coupling, ...] = ()
    bound: tuple[Bound, ...] = ()
    _of_pod: Mapping[PodKey, Coupling] = field(factory=dict)

    def coupling_of(self, pod: PodKey) -> Coupling | None:
        """None for a pod that is tied to no other: it has no such constraint, and nobody's counters see it."""
        return self._of_pod.get(pod)


# Namespace and labels of a pod.
_Kin = tuple[str, frozenset[tuple[str, str]]]


def couplings(pods: Iterable[Pod], standing: Sequence[StandingNode], namespaces: Sequence[Namespace]) -> Neighbourhood:
    """The neighbourhood of waiting ``pods`` among ``standing`` nodes. Order of arguments changes nothing."""
    waiting = tuple(pods)
    reader = TieReader()
    tied = [(pod, reader.ties_of(pod)) for pod in waiting]
    holders = [pod for node in standing for pod in node.pods if pod.placing.pod_anti_affinity]
    if not holders and not any(ties for _, ties in tied):
        return Neighbourhood()
    held_by_bound = [ties for ties in map(reader.ties_of, holders) if ties is not None]
    counters = _in_order([ties for _, ties in tied if ties is not None], held_by_bound)
    return _Survey(counters, namespaces, reader).neighbourhood(tied, standing)


def _in_order(waiting: Iterable[Ties], bound: Iterable[Ties]) -> tuple[Counter, ...]:
    found: dict[Counter, Counter] = {}
    for ties in dict.fromkeys(waiting):
        for counter in (*(counter for counter, _ in ties.spreads), *ties.affinity, *ties.anti, *ties.held):
            found.setdefault(counter, counter)
    for ties in dict.fromkeys(bound):
        for counter in ties.held:
            found.setdefault(counter, counter)
    return tuple(sorted(found, key=lambda counter: counter.order))


@frozen(eq=False)
class _Kind:
    """Pods of one namespace with equal labels: the counters that count them, and the terms that name them."""

    counted: tuple[int, ...]
    named: tuple[int, ...]


# Adds, spreads (counter, skew, least domains), affinity, bars, ports: equal ones are one coupling.
_Content = tuple[
    tuple[int, ...], tuple[tuple[int, int, int], ...], tuple[int, ...], tuple[int, ...], tuple[HostPort, ...]
]


@frozen(eq=False)
class _Draft:
    """A coupling before it is known which counters anybody reads."""

    adds: tuple[int, ...]
    spreads: tuple[tuple[int, TopologySpread], ...]
    affinity: tuple[int, ...]
    bars: tuple[int, ...]
    ports: tuple[HostPort, ...]

    @property
    def reads(self) -> tuple[int, ...]:
        return (*(counter for counter, _ in self.spreads), *self.affinity, *self.bars)

    @property
    def only_reads(self) -> tuple[int, ...]:
        """The counters that it is spread by and does not add to."""
        return tuple(counter for counter, _ in self.spreads if counter not in self.adds)

    def content(self, read: Set[int]) -> _Content:
        spreads = tuple((counter, spread.max_skew, spread.min_domains or 1) for counter, spread in self.spreads)
        adds = tuple(counter for counter in self.adds if counter in read)
        return adds, spreads, self.affinity, self.bars, self.ports


def _example(drafts: Sequence[_Draft]) -> _Draft:
    """One of drafts of equal content, the same whatever their order: they may word a constraint differently."""
    worded = {draft.spreads: draft for draft in drafts}
    return next(iter(worded.values())) if len(worded) == 1 else worded[min(worded, key=repr)]


class _Survey:
    """All that is asked of one set of pods and nodes."""

    def __init__(self, counters: tuple[Counter, ...], namespaces: Iterable[Namespace], reader: TieReader) -> None:
        self._counters = counters
        self._reader = reader
        self._number = {counter: number for number, counter in enumerate(counters)}
        others = sorted({counter.key for counter in counters} - {keys.HOSTNAME})
        self._keys = (keys.HOSTNAME, *others)
        self._key_at = {key: index for index, key in enumerate(self._keys)}
        self._sight = Sight(counters, namespaces)
        self._kinds: dict[_Kin, _Kind] = {}
        self._numbers_held: dict[Ties | None, tuple[int, ...]] = {None: ()}
        self._balanced: Set[int] = frozenset()

    def neighbourhood(self, tied: Sequence[tuple[Pod, Ties | None]], standing: Sequence[StandingNode]) -> Neighbourhood:
        members: dict[tuple[Ties | None, _Kind], list[PodKey]] = {}
        for pod, ties in tied:
            members.setdefault((ties, self._kind_of(pod)), []).append(pod.key)
        drafts = [(self._draft(ties, kind), pods) for (ties, kind), pods in members.items()]
        read = {counter for draft, _ in drafts for counter in draft.reads}
        one_sided = {counter for draft, _ in drafts for counter in draft.only_reads}
        self._balanced = frozenset(each for each in one_sided if self._counters[each].key != keys.HOSTNAME)
        by_content: dict[_Content, list[tuple[_Draft, list[PodKey]]]] = {}
        for draft, pods in drafts:
            content = draft.content(read)
            if any(content):
                by_content.setdefault(content, []).append((draft, pods))
        made = []
        of_pod = {}
        for number, content in enumerate(sorted(by_content)):
            coupling = self._coupling(number, content, _example([draft for draft, _ in by_content[content]]))
            made.append(coupling)
            for _, pods in by_content[content]:
                of_pod.update(dict.fromkeys(pods, coupling))
        with_ports = any(coupling.ports for coupling in made)
        bound = self._bound(standing, read, with_ports) if made else ()
        return Neighbourhood(self._counters, self._keys, tuple(made), bound, of_pod)

    def _kind_of(self, pod: Pod) -> _Kind:
        kin = (pod.key.namespace, frozenset(pod.labels.items()))
        if kin not in self._kinds:
            seen = self._sight.seen_by(pod.key.namespace, pod.labels)
            named = tuple(number for number in seen if self._counters[number].role is Role.HOLDER)
            counted = tuple(number for number in seen if self._counters[number].role is not Role.HOLDER)
            self._kinds[kin] = _Kind(counted, named)
        return self._kinds[kin]

    def _held(self, ties: Ties | None) -> tuple[int, ...]:
        if ties not in self._numbers_held and ties is not None:
            self._numbers_held[ties] = tuple(self._number[counter] for counter in ties.held)
        return self._numbers_held[ties]

    def _draft(self, ties: Ties | None, kind: _Kind) -> _Draft:
        own = ties or Ties()
        return _Draft(
            adds=tuple(sorted({*kind.counted, *self._held(ties)})),
            spreads=tuple((self._number[counter], spread) for counter, spread in own.spreads),
            affinity=tuple(self._number[counter] for counter in own.affinity),
            bars=tuple(sorted({*kind.named, *(self._number[counter] for counter in own.anti)})),
            ports=own.ports,
        )

    def _coupling(self, number: int, content: _Content, draft: _Draft) -> Coupling:
        adds = content[0]
        rules = tuple(self._rule(counter, draft) for counter in range(len(draft.spreads)))
        balances = tuple(self._at(counter) for counter in adds if counter in self._balanced)
        decisive = {self._counters[counter].key for counter in (*draft.reads, *(each for each, _ in balances))}
        return Coupling(
            number=number,
            order=f"{number:06d}",
            adds=adds,
            spreads=rules,
            affinity=tuple(self._at(counter) for counter in draft.affinity),
            may_begin=all(counter in adds for counter in draft.affinity),
            bars=tuple(self._at(counter) for counter in draft.bars),
            excludes_itself=tuple(sorted({self._at(counter)[1] for counter in draft.bars if counter in adds})),
            ports=draft.ports,
            needed_keys=tuple(sorted({rule.key for rule in rules} | {self._at(each)[1] for each in draft.affinity})),
            pinned_keys=frozenset(decisive - {keys.HOSTNAME}),
            balances=balances,
        )

    def _rule(self, index: int, draft: _Draft) -> SpreadRule:
        counter, spread = draft.spreads[index]
        return SpreadRule(
            counter=counter,
            key=self._at(counter)[1],
            max_skew=spread.max_skew,
            min_domains=spread.min_domains or 1,
            counts_itself=counter in draft.adds,
            constraint=spread,
        )

    def _at(self, counter: int) -> tuple[int, int]:
        return counter, self._key_at[self._counters[counter].key]

    def _bound(self, standing: Sequence[StandingNode], read: Set[int], with_ports: bool) -> tuple[Bound, ...]:
        """What bound pods add; a pod that is being deleted counts for affinity still, but for no spread."""
        adds_of: dict[tuple[_Kind, Ties | None, bool], tuple[int, ...]] = {}
        bound = []
        for node in sorted(standing, key=lambda node: node.name):
            tally: dict[tuple[int, ...], int] = {}
            for pod in node.pods:
                ties = self._reader.ties_of(pod) if pod.placing.pod_anti_affinity else None
                asked = (self._kind_of(pod), ties, pod.deleting)
                if asked not in adds_of:
                    adds_of[asked] = self._adds_of_bound(*asked, read)
                adds = adds_of[asked]
                if adds:
                    tally[adds] = tally.get(adds, 0) + 1
            ports = (
                frozenset(port for pod in node.pods for port in pod.placing.host_ports) if with_ports else frozenset()
            )
            bound.append(Bound(node, tally, ports))
        return tuple(bound)

    def _adds_of_bound(self, kind: _Kind, ties: Ties | None, deleting: bool, read: Set[int]) -> tuple[int, ...]:
        adds = sorted({*kind.counted, *self._held(ties)} & read)
        return tuple(each for each in adds if not (deleting and self._counters[each].role is Role.SPREAD))
