"""Whether pods that are tied to others can be bound at all: some order in which the scheduler accepts each of them.

kube-scheduler judges a pod by what is bound at that moment. For room, host ports, volumes and anti-affinity that makes
no difference: what is bound later never makes them hold, so they hold in each order or in none, and the final state is
judged. Topology spread and pod affinity are not like that. A pod that is bound raises the least of the domains, or
starts the group that another seeks, and so lets others in; or it fills a domain, or takes the right of the first of a
group, and so keeps others out. The final state decides only the plainest case, where all pods that a constraint counts
have that very constraint: then an order exists exactly if no domain is over the least by more than maxSkew.

So the orders are searched, with every node there: a pod at a time, on the node that the plan says. An order that is
found is proof. The search goes first where it seldom must turn back: pods that ask for something are bound when they
can, and those that only count for others wait until they are needed. It gives up after ``_STEPS`` states, and then the
plan is at fault, for nobody knows how it could be carried out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from attrs import define, field

from engine.model.pod import Pod
from tests.scheduling.checker.places import Place, World
from tests.scheduling.checker.pod_affinity import AffinityCount
from tests.scheduling.checker.selectors import Namespaces
from tests.scheduling.checker.topology_spread import SpreadCount, required_spreads
from tests.scheduling.checker.violation import Violation

_STEPS = 2000

_Count = SpreadCount | AffinityCount


def never_bound(world: World) -> tuple[Violation, ...]:
    """The pods that are left when no order binds all, of the attempt that went furthest; empty where one does."""
    return _Orders(_groups(world)).left_over()


@define(eq=False)
class _Group:
    """Planned pods of one place that nothing tells apart. ``asks`` are the rules that may keep them out."""

    pod: Pod
    place: Place
    asks: list[tuple[str, _Count]]
    waiting: int = 0
    counted_by: list[_Count] = field(factory=list)

    def refused(self) -> Iterator[tuple[str, _Count, str]]:
        """Each rule that keeps the pod out now, and why."""
        for rule, count in self.asks:
            why = count.refuses(self.place)
            if why:
                yield rule, count, why

    def bind(self, pods: int) -> None:
        """With -1 it is taken back."""
        self.waiting -= pods
        for count in self.counted_by:
            count.add(self.place, pods)


class _Orders:
    """The search through the orders, in depth."""

    def __init__(self, groups: list[_Group]) -> None:
        self._groups = groups
        self._seen: set[tuple[int, ...]] = set()
        self._fewest = sum(group.waiting for group in groups) + 1
        self._left: tuple[Violation, ...] = ()

    def left_over(self) -> tuple[Violation, ...]:
        return () if self._binds_all() else self._left

    def _binds_all(self) -> bool:
        if not any(group.waiting for group in self._groups if group.asks):
            return True
        self._remember_what_is_left()
        for group in self._next():
            group.bind(1)
            state = tuple(each.waiting for each in self._groups)
            if state not in self._seen and len(self._seen) < _STEPS:
                self._seen.add(state)
                if self._binds_all():
                    return True
            group.bind(-1)
        return False

    def _next(self) -> Iterator[_Group]:
        """Who may be bound now: those that ask for something, then those whose being there is waited for."""
        waiting = [group for group in self._groups if group.waiting]
        shut = [count for group in waiting for _, count, _ in group.refused()]
        yield from (group for group in waiting if group.asks and not any(group.refused()))
        free = [group for group in waiting if not group.asks]
        yield from sorted(free, key=lambda group: not _helps(group, shut))

    def _remember_what_is_left(self) -> None:
        left = sum(group.waiting for group in self._groups if group.asks)
        if left < self._fewest:
            self._fewest = left
            self._left = tuple(
                Violation(rule, str(group.pod.key), why)
                for group in self._groups
                if group.waiting
                for rule, _, why in group.refused()
            )


def _helps(group: _Group, shut: list[_Count]) -> bool:
    """Whether one more of these pods may let others in."""
    return any(
        count.is_least(group.place) if isinstance(count, SpreadCount) else True
        for count in group.counted_by
        if any(count is each for each in shut)
    )


def _groups(world: World) -> list[_Group]:
    """The planned pods that ask for something of others, or that others count."""
    namespaces = Namespaces(world.workload.namespaces)
    asks: dict[Hashable, list[tuple[str, _Count]]] = {}
    groups: dict[Hashable, _Group] = {}
    for place in world.places:
        for pod in place.planned:
            kind = _kind(pod)
            if kind not in asks:
                asks[kind] = [
                    ("topology-spread", SpreadCount(pod, each, world.places)) for each in required_spreads(pod)
                ]
                if pod.placing.pod_affinity:
                    asks[kind].append(("pod-affinity", AffinityCount(pod, world.places, namespaces)))
            groups.setdefault((kind, place.name), _Group(pod, place, asks[kind])).waiting += 1
    counts = [count for asked in asks.values() for _, count in asked]
    for group in groups.values():
        group.counted_by = [count for count in counts if count.counts(group.pod, group.place)]
    return [group for group in groups.values() if group.asks or group.counted_by]


def _kind(pod: Pod) -> Hashable:
    """All of a pod that the counts look at."""
    placing = pod.placing
    return (
        pod.key.namespace,
        tuple(sorted(pod.labels.items())),
        tuple(sorted(placing.node_selector.items())),
        placing.affinity_terms,
        placing.tolerations,
        placing.spreads,
        placing.pod_affinity,
    )
