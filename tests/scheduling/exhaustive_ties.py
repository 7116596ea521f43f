"""The best that can be done with a few pods that are tied to others, to ports and to volumes.

Every assignment of pods to machines and new nodes is gone through, but for those that place fewer pods, or as many for
more money, than the best so far; and the checker says which of them the scheduler could carry out. Nodes for nobody,
which could be domains of a spread, are not bought. Pools have no limits: clusters without ``bounds``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from attrs import evolve

from engine.model.plan import Plan
from tests.scheduling.checker.host_ports import port_conflicts
from tests.scheduling.checker.node_labels import unmet, value_of
from tests.scheduling.checker.places import HOSTNAME, Place, World, world_of
from tests.scheduling.checker.pod_affinity import kept_apart
from tests.scheduling.checker.selectors import Namespaces
from tests.scheduling.checker.taints import untolerated
from tests.scheduling.checker.ties import torn_ties
from tests.scheduling.checker.volumes import volumes_in_place
from tests.scheduling.exhaustive import Best, Kind, Search
from tests.scheduling.random_clusters import Cluster

_MOST_TRIED = 4000


def best_of_tied(cluster: Cluster, plan: Plan, *, others_ride: bool, known: Best) -> Best | None:
    """The optimum for the pods that wait; ``known`` itself where nothing better is found, None where there are too many
    assignments to try.

    ``plan`` says what this pass knows of machines and offerings, and ``others_ride`` is as of ``exhaustive.best``.
    """
    return _TiedSearch(cluster, plan, others_ride).best_beyond(known)


class _TiedSearch(Search):
    def __init__(self, cluster: Cluster, plan: Plan, others_ride: bool) -> None:
        self._keys = sorted(_topology_keys(cluster))
        super().__init__(cluster, plan, others_ride)
        self._world = world_of(cluster.snapshot, self._plan, cluster.policy)
        number = {place.name: index for index, place in enumerate(self._world.places)}
        self._places = [number[each.name] for each in self._open]
        alone = [
            self._alone(self._world.places[index], loads)
            for index, loads in zip(self._places, self._machines, strict=True)
        ]
        self._machines = [tuple(sorted(loads, key=int.bit_count, reverse=True)) for loads in alone]
        self._kinds = self._worth_buying()

        alike: dict[Hashable, int] = {}
        for index, pod in enumerate(self._pods):
            kind = (pod.key.namespace, tuple(sorted(pod.labels.items())), pod.placing.content, pod.nominated_node_name)
            alike[kind] = alike.get(kind, 0) | 1 << index
        self._twins = list(alike.values())
        self._tried = 0

    def best_beyond(self, known: Best) -> Best | None:
        self._best = known
        self._go((1 << len(self._pods)) - 1, 0, (), ())
        return self._best if self._tried < _MOST_TRIED else None

    def _go(self, waiting: int, skipped: int, loads: tuple[int, ...], bought: tuple[tuple[Kind, int], ...]) -> None:
        """Machine by machine, then node by node for the lowest pod left, or without it."""
        kinds = tuple(kind for kind, _ in bought)
        reached = Best(len(self._pods) - skipped.bit_count(), sum(kind.usd_micros for kind in kinds))
        if not self._may_buy(kinds) or not _is_better(reached, self._best) or self._tried >= _MOST_TRIED:
            return
        if len(loads) < len(self._machines):
            for load in (*self._machines[len(loads)], 0):
                if self._may_take(load, waiting):
                    self._go(waiting & ~load, skipped, (*loads, load), bought)
        elif waiting:
            lowest = waiting & -waiting
            for kind in self._kinds:
                for load in kind.loads:
                    if load & lowest and self._may_take(load, waiting):
                        self._go(waiting & ~load, skipped, loads, (*bought, (kind, load)))
            # Without one of several that are alike, without all of them.
            left = next(twins for twins in self._twins if twins & lowest) & waiting
            self._go(waiting & ~left, skipped | left, loads, bought)
        else:
            self._tried += 1
            if not torn_ties(self._carried_out(loads, bought)):
                self._best = reached

    def _may_take(self, load: int, waiting: int) -> bool:
        """Of pods that are alike the first that wait go first, for which one goes makes no difference."""
        if load & waiting != load:
            return False
        for twins in self._twins:
            taken, left = load & twins, waiting & twins & ~load
            if taken and left and left & -left < taken:
                return False
        return True

    def _carried_out(self, loads: tuple[int, ...], bought: tuple[tuple[Kind, int], ...]) -> World:
        places = list(self._world.places)
        for index, load in zip(self._places, loads, strict=True):
            places[index] = evolve(places[index], planned=tuple(self._of(load)))
        for number, (kind, load) in enumerate(bought):
            places.append(evolve(_place_of(kind, f"new-{number}"), planned=tuple(self._of(load))))
        return evolve(self._world, places=tuple(places))

    def _worth_buying(self) -> list[Kind]:
        """The nodes without those that another is like, at most as dear, and takes all that they take."""
        kept: dict[Hashable, list[Kind]] = {}
        for kind in sorted(self._kinds, key=lambda each: (each.usd_micros, -len(each.loads))):
            kind = evolve(kind, loads=frozenset(self._alone(_place_of(kind, "new"), kind.loads)))
            alike = kept.setdefault(self._seen_of(kind), [])
            if kind.loads and not any(each.loads >= kind.loads for each in alike):
                alike.append(kind)
        return sorted((kind for alike in kept.values() for kind in alike), key=lambda each: each.usd_micros)

    def _likeness(self, kind: Kind) -> Hashable:
        return kind.instance_type, kind.loads, self._seen_of(kind)

    def _seen_of(self, kind: Kind) -> Hashable:
        """All that ties see of a node: the domains that it is in, and for which pods' constraints it is one."""
        met = tuple(not any(unmet(pod.placing, kind.labels)) for pod in self._pods)
        borne = tuple(not any(untolerated(pod.placing.tolerations, kind.taints)) for pod in self._pods)
        return kind.pool, tuple(value_of(kind.labels, key) for key in self._keys), met, borne

    def _alone(self, place: Place, loads: Iterable[int]) -> list[int]:
        """The loads that a node could take if it were the only one."""
        namespaces = Namespaces(self._cluster.snapshot.workload.namespaces)
        return [
            load
            for load in loads
            for only in [evolve(place, planned=tuple(self._of(load)))]
            if not any(port_conflicts(only, self._cluster.snapshot.daemon_sets))
            and not any(volumes_in_place(evolve(self._world, places=(only,))))
            and not any(kept_apart((only,), namespaces))
        ]


def _is_better(one: Best, other: Best) -> bool:
    return (one.placed, -one.usd_micros) > (other.placed, -other.usd_micros)


def _place_of(kind: Kind, name: str) -> Place:
    return Place(name, {HOSTNAME: name, **kind.labels}, kind.taints, kind.allocatable, (), ())


def _topology_keys(cluster: Cluster) -> set[str]:
    """The zone, where volumes are made, and whatever a constraint names."""
    keys = {"topology.kubernetes.io/zone"}
    for pod in cluster.snapshot.pods:
        asked = pod.placing
        keys |= {each.key for each in (*asked.spreads, *asked.pod_affinity, *asked.pod_anti_affinity)}
    return keys
