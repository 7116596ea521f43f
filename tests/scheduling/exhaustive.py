"""The best that can be done with a few pods, found by trying everything: the most pods placed, for the least money.

Its bricks are the checker's. It knows no base capacity, no pool under probation and no reservations, and takes pools
of equal weight: clusters of the ``TINY`` knobs. Ties between pods are ``exhaustive_ties``'s.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import product

from attrs import evolve, frozen

from engine.model import labels as keys
from engine.model.catalog import InstanceType, Offering
from engine.model.constraint import Taint
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import NodeClass, NodePool
from tests.scheduling.checker.amounts import daemons_to_come, overdrawn
from tests.scheduling.checker.launches import barred_offerings, closed_pool, forbids, zones_of
from tests.scheduling.checker.limits import limits_of, used_by_pool
from tests.scheduling.checker.machines import Machine, machines
from tests.scheduling.checker.node_labels import value_of
from tests.scheduling.checker.placing import accepts, asks_for_accelerators, overfilled
from tests.scheduling.checker.pods import wants_a_node
from tests.scheduling.checker.shapes import allocatable_of, capacity_of, usd_micros_of
from tests.scheduling.random_clusters import Cluster

# A label that a pool leaves open may have any value that a pod names, or one that none names.
_NAMED_BY_NOBODY = "any"


@frozen
class Best:
    """How many pods can be placed at all, and the least that this costs in new nodes, in millionths of a dollar."""

    placed: int
    usd_micros: int


@frozen(eq=False)
class Kind:
    """A node that could be bought. ``loads`` are the sets of pods that it takes, as bits."""

    pool: str
    instance_type: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    usd_micros: int
    loads: frozenset[int]


def best(cluster: Cluster, plan: Plan, *, others_ride: bool) -> Best:
    """The optimum for the pods that wait. ``plan`` says what this pass knows of machines and offerings, no more.

    ``others_ride``: a new accelerated node of a closed pool may hold pods that ask for no accelerator beside one that
    does. Nobody owes them that place, so a pod that needs it may be refused; but for one that must be on the host of
    another, and goes with that one in any case.
    """
    return Search(cluster, plan, others_ride).best()


class Search:
    """What one cluster's pods can be put on."""

    def __init__(self, cluster: Cluster, plan: Plan, others_ride: bool) -> None:
        self._others_ride = others_ride
        self._cluster, self._plan = cluster, evolve(plan, removals=(), launches=())
        self._pods = [pod for pod in cluster.snapshot.pods if wants_a_node(pod)]
        self._sets = range(1, 1 << len(self._pods))
        standing = machines(cluster.snapshot, self._plan, cluster.policy)
        self._open = [each for each in standing if not each.closed]
        self._machines = [self._loads_of_machine(each) for each in self._open]
        self._kinds = list(self._every_kind())
        seen, rules = cluster.snapshot, cluster.policy
        self._used = used_by_pool(seen, self._plan, rules, cluster.environment, cluster.catalog)
        self._limits = {pool.name: limits_of(pool.name, pool.limits, cluster.environment) for pool in rules.node_pools}

    def best(self) -> Best:
        found = max(self._answers((1 << len(self._pods)) - 1, 0, ()))
        return Best(found[0], -found[1])

    def _answers(self, waiting: int, first: int, bought: tuple[Kind, ...]) -> Iterator[tuple[int, int]]:
        """(Pods placed, less money) of each way: machine by machine, then node by node for the lowest pod left."""
        if first < len(self._machines):
            for load in (0, *self._machines[first]):
                if load & waiting == load:
                    for placed, money in self._answers(waiting & ~load, first + 1, bought):
                        yield placed + load.bit_count(), money
            return
        if not waiting:
            yield 0, -sum(kind.usd_micros for kind in bought)
            return
        lowest = waiting & -waiting
        yield from self._answers(waiting & ~lowest, first, bought)
        for kind in self._kinds:
            for load in kind.loads:
                if load & lowest and load & waiting == load and self._may_buy((*bought, kind)):
                    for placed, money in self._answers(waiting & ~load, first, (*bought, kind)):
                        yield placed + load.bit_count(), money

    def _may_buy(self, bought: tuple[Kind, ...]) -> bool:
        caps = self._cluster.environment.caps
        if len(bought) > caps.launches or sum(each.usd_micros for each in bought) > caps.added_usd_per_hour.micros:
            return False
        for pool, limits in self._limits.items():
            of_pool = [{**kind.capacity, "nodes": 1} for kind in bought if kind.pool == pool]
            for resource, limit in limits.items():
                planned = sum(each.get(resource, 0) for each in of_pool)
                if planned and self._used[pool][resource] + planned > limit:
                    return False
        return True

    def _loads_of_machine(self, machine: Machine) -> tuple[int, ...]:
        takes = [not any(accepts(pod, machine.labels, machine.taints)) for pod in self._pods]
        return tuple(
            load
            for load in self._sets
            if all(takes[index] for index in bits(load))
            and not overfilled(machine, self._of(load), self._cluster.snapshot)
        )

    def _every_kind(self) -> Iterator[Kind]:
        """The cheapest of those that are alike."""
        cheapest: dict[Hashable, Kind] = {}
        catalog, seen = self._cluster.catalog, self._cluster.snapshot
        kinds = {kind.name: kind for kind in catalog.instance_types}
        barred = barred_offerings(seen, self._plan)
        for pool, offering in product(self._cluster.policy.node_pools, catalog.offerings):
            node_class = self._cluster.policy.node_class(pool.node_class)
            if node_class is None or closed_pool(pool, seen) or offering.key in barred or not offering.usd_per_hour:
                continue
            if offering.zone not in zones_of(node_class, seen, self._cluster.environment):
                continue
            for made in self._kinds_of(pool, node_class, kinds[offering.instance_type], offering):
                name = self._likeness(made)
                if made.loads and (name not in cheapest or made.usd_micros < cheapest[name].usd_micros):
                    cheapest[name] = made
        yield from cheapest.values()

    def _likeness(self, kind: Kind) -> Hashable:
        return kind.pool, kind.instance_type, kind.loads

    def _kinds_of(
        self, pool: NodePool, node_class: NodeClass, kind: InstanceType, offering: Offering
    ) -> Iterator[Kind]:
        capacity = capacity_of(kind, node_class, self._cluster.environment)
        allocatable = allocatable_of(capacity)
        for labels in self._labels_of(pool, kind, offering):
            if forbids(pool, labels) is None:
                yield Kind(
                    pool=pool.name,
                    instance_type=kind.name,
                    labels=labels,
                    taints=pool.taints,
                    capacity=capacity,
                    allocatable=allocatable,
                    usd_micros=usd_micros_of(offering, node_class, self._cluster.catalog),
                    loads=self._loads(pool, kind, labels, allocatable),
                )

    def _labels_of(self, pool: NodePool, kind: InstanceType, offering: Offering) -> Iterator[Mapping[str, str]]:
        """The node's labels; one for each choice of what the pool leaves open."""
        told = {
            **kind.labels,
            **pool.labels,
            keys.ZONE: offering.zone,
            keys.REGION: self._cluster.catalog.region,
            keys.CAPACITY_TYPE: offering.capacity_type,
            keys.NODE_POOL: pool.name,
        }
        left = {each.key for each in pool.requirements if value_of(told, each.key) is None}
        left = {key for key in left if key not in keys.WELL_KNOWN and key not in keys.ALIASES}
        choices = [
            [(key, value) for value in (None, _NAMED_BY_NOBODY, *self._named(key, pool))] for key in sorted(left)
        ]
        for chosen in product(*choices):
            yield {**told, **{key: value for key, value in chosen if value is not None}}

    def _named(self, key: str, pool: NodePool) -> set[str]:
        terms = [each for pod in self._pods for term in pod.placing.affinity_terms for each in term]
        named = {value for each in (*terms, *pool.requirements) if each.key == key for value in each.values}
        return named | {pod.placing.node_selector[key] for pod in self._pods if key in pod.placing.node_selector}

    def _loads(
        self, pool: NodePool, kind: InstanceType, labels: Mapping[str, str], allocatable: Mapping[str, int]
    ) -> frozenset[int]:
        takes = [not any(accepts(pod, labels, pool.taints)) for pod in self._pods]
        if not any(takes):
            return frozenset()
        daemons = daemons_to_come(self._cluster.snapshot.daemon_sets, labels, pool.taints, ())
        is_closed = kind.is_accelerated and not pool.open_to_all_pods
        return frozenset(
            load
            for load in self._sets
            if all(takes[index] for index in bits(load))
            and not (is_closed and not self._makes_an_accelerated_node(self._of(load)))
            and not any(overdrawn(allocatable, daemons, self._of(load)))
        )

    def _makes_an_accelerated_node(self, pods: list[Pod]) -> bool:
        asking = [pod for pod in pods if asks_for_accelerators(pod)]
        return bool(asking) and (self._others_ride or all(pod in asking or _follows(pod) for pod in pods))

    def _of(self, load: int) -> list[Pod]:
        return [self._pods[index] for index in bits(load)]


def _follows(pod: Pod) -> bool:
    return any(term.key == keys.HOSTNAME for term in pod.placing.pod_affinity)


def bits(load: int) -> list[int]:
    """The numbers of the pods in a set of them."""
    return [index for index in range(load.bit_length()) if load >> index & 1]
