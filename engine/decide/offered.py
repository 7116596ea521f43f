"""What pods could be given a node of, whether they wait or run: instance types by pool, and what bars the others.

Limits, refusals of launches and pauses are left out: they pass, and what is left is what the policy says. It is for
people, who ask what a policy means for the pods that there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property

from attrs import frozen

from engine.decide.beyond_pools import BeyondPools
from engine.decide.options import admitted
from engine.decide.pools import pool_states
from engine.decide.question import Seen, market_of
from engine.decide.requirement_rules import eligibility
from engine.model import labels as keys
from engine.model.constraint import Requirement
from engine.model.pod import Pod, PodKey
from engine.model.policy import NodePool
from engine.model.refusal import Refusal
from engine.policy.rules.ruling import TypeAt
from engine.scheduling.groups import PodClass, pod_classes
from engine.scheduling.kinds import Kind
from engine.scheduling.limits import Headroom, resource_order
from engine.scheduling.market import Market as Offering
from engine.scheduling.offers import PoolOffers
from engine.scheduling.refusals import refusals


class BarrierKind(str, Enum):
    """What keeps a pool from making a node of a type for pods, in the order of asking."""

    NO_POOL = "no-pool"
    STATIC_POOL = "static-pool"
    TAINT = "taint"
    POOL_NOT_READY = "pool-not-ready"
    POOL_REQUIREMENT = "pool-requirement"
    NOT_SOLD = "not-sold"
    POD_REQUIREMENT = "pod-requirement"
    KEPT_FOR_ACCELERATORS = "kept-for-accelerators"
    TOO_SMALL = "too-small"
    RULE = "rule"
    MIN_VALUES = "min-values"
    UNSUPPORTED = "unsupported"


@frozen
class Barrier:
    """``detail`` is the taint, requirement, resource or rule; ``message`` what a rule says, ``error`` what it came to
    where it gave no answer."""

    kind: BarrierKind
    node_pool: str
    detail: str = ""
    message: str = ""
    error: str = ""


def is_placeable(pod: Pod) -> bool:
    """Whether the pod is one that nodes are made for: no daemon, not finished, not going, and it takes a pool's."""
    return not (pod.is_daemon or pod.is_finished or pod.deleting or pod.placing.refuses_every_pool)


class Offered:
    """Of one snapshot by one policy. Pods that the scheduler and the rules cannot tell apart are one class."""

    def __init__(self, seen: Seen, pods: Sequence[Pod]) -> None:
        self._seen = seen
        self._market = market_of(seen)
        self.states = pool_states(
            seen.fleet,
            seen.brought,
            seen.gone,
            seen.policy,
            seen.environment,
            self._market,
            seen.learned,
            seen.snapshot,
        )
        self.eligibility = eligibility(seen.policy, seen.catalog, seen.environment, seen.snapshot, self.states)
        self._pools = {state.pool.name: PoolOffers(state, seen.snapshot.daemon_sets) for state in self.states}
        self._offering = Offering([self._pools[name] for name in sorted(self._pools)])
        self.classes = pod_classes(pods, self.eligibility.rulings(pods))
        self._types: dict[int, Mapping[TypeAt, tuple[str, ...]]] = {}

    @cached_property
    def class_of(self) -> Mapping[PodKey, PodClass]:
        return {pod: each for each in self.classes for pod in each.pods}

    def types(self, pod_class: PodClass) -> Mapping[TypeAt, tuple[str, ...]]:
        """The types that some pool may make for the class, each with the pools, in name order."""
        if id(pod_class) not in self._types:
            found: dict[TypeAt, set[str]] = {}
            for offer in () if pod_class.unsupported else self._offering.offers(pod_class):
                found.setdefault(offer.kind.type_at, set()).add(offer.kind.pool)
            self._types[id(pod_class)] = {each: tuple(sorted(found[each])) for each in sorted(found)}
        return self._types[id(pod_class)]

    def holding(self, pod_class: PodClass, pool: str) -> tuple[Kind, ...]:
        """The kinds of a pool's nodes that would hold a pod of the class, whatever rules say; the cheapest first."""
        kinds = (kind for kind, _ in self._pools[pool].holding(pod_class) if kind.usd_per_hour is not None)
        return tuple(sorted(kinds, key=lambda kind: (kind.usd_per_hour, kind.order)))

    def refusal(self, pod_class: PodClass, pool: str) -> Refusal | None:
        """The first thing for which the pool has no node at all for the class, with its numbers; None: it has some."""
        if any(pool in pools for pools in self.types(pod_class).values()):
            return None
        headroom = Headroom(self.states, self._seen.environment.caps)
        [told] = refusals(pod_class, [self._pools[pool]], headroom)
        return BeyondPools(self._seen).completed(told.refusal, pool, pod_class.requests, pod_class.demand)

    def barrier(self, pod_class: PodClass, pool: str, type_at: TypeAt) -> Barrier | None:
        """Why the pool makes no node of the type for the class; None: it may make one."""
        offers = self._pools.get(pool)
        if pod_class.unsupported:
            return Barrier(BarrierKind.UNSUPPORTED, pool, ", ".join(pod_class.unsupported))
        if offers is None:
            return Barrier(BarrierKind.NO_POOL, pool)
        if offers.state.pool.is_static:
            return Barrier(BarrierKind.STATIC_POOL, pool)
        taint = pod_class.demand.barring_taint(offers.state.pool.taints)
        if taint is not None:
            return Barrier(BarrierKind.TAINT, pool, str(taint))
        return (
            self._not_made(offers, type_at)
            or _not_permitted(offers, pod_class, type_at)
            or _ruled_out(offers, pod_class, type_at)
        )

    def _not_made(self, offers: PoolOffers, type_at: TypeAt) -> Barrier | None:
        """Why the pool makes no such node for anybody."""
        if any(kind.type_at == type_at for kind in offers.kinds_without_pods()):
            return None
        decisive = self._pool_requirement(offers.state.pool, type_at)
        if decisive is not None:
            return Barrier(BarrierKind.POOL_REQUIREMENT, offers.name, str(decisive))
        if not offers.options and offers.state.not_ready is not None:
            return Barrier(BarrierKind.POOL_NOT_READY, offers.name, getattr(offers.state.not_ready, "why", ""))
        return Barrier(BarrierKind.NOT_SOLD, offers.name)

    def _pool_requirement(self, pool: NodePool, type_at: TypeAt) -> Requirement | None:
        name, capacity_type = type_at
        kind = self._seen.catalog.instance_type(name)
        if kind is None:
            return None
        labels = {keys.OS: "linux", **kind.labels, **pool.labels, keys.CAPACITY_TYPE: capacity_type}
        labels[keys.REGION] = self._seen.catalog.region
        about_zones = (keys.ZONE, keys.ZONE_ID)
        asked = (each for each in pool.requirements if keys.ALIASES.get(each.key, each.key) not in about_zones)
        return next((each for each in asked if not admitted((each,), labels)), None)


def _not_permitted(offers: PoolOffers, pod_class: PodClass, type_at: TypeAt) -> Barrier | None:
    """What of the pods' own demands the node would not meet."""
    permitted = _of_type(offers.permitted(pod_class.demand), type_at)
    if not permitted:
        wanted = " or ".join("; ".join(map(str, term)) for term in pod_class.demand.terms)
        return Barrier(BarrierKind.POD_REQUIREMENT, offers.name, wanted)
    if not any(offers.open_to(pod_class, kind) for kind in permitted):
        return Barrier(BarrierKind.KEPT_FOR_ACCELERATORS, offers.name)
    if any(pod_class.requests.times_in(kind.room) for kind in permitted):
        return None
    short = (
        resource
        for resource in sorted(pod_class.requests, key=resource_order)
        if all(pod_class.requests[resource] > max(0, kind.room.amount(resource)) for kind in permitted)
    )
    return Barrier(BarrierKind.TOO_SMALL, offers.name, next(short, "room"))


def _ruled_out(offers: PoolOffers, pod_class: PodClass, type_at: TypeAt) -> Barrier | None:
    bar = pod_class.rulings.bar(offers.name, type_at)
    if bar is not None:
        return Barrier(BarrierKind.RULE, offers.name, bar.rule, bar.message, bar.error)
    fitting = offers.fitting(pod_class)
    if offers.too_few_values(kind for kind, _ in fitting) is not None:
        return Barrier(BarrierKind.MIN_VALUES, offers.name)
    priced = [kind for kind in _of_type((kind for kind, _ in fitting), type_at) if kind.usd_per_hour is not None]
    return None if priced else Barrier(BarrierKind.NOT_SOLD, offers.name)


def _of_type(kinds: Iterable[Kind], type_at: TypeAt) -> list[Kind]:
    return [kind for kind in kinds if kind.type_at == type_at]
