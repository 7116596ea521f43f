"""How far workloads may scale, held against how far the pools that can take them may grow.

Whatever cannot be proven counts as room: a finding says what no order of events can change. What runs now, what is
unavailable for the moment, and what pods ask for beyond requests, selectors, affinity and taints are left out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import gcd

from attrs import evolve, field, frozen

from engine.decide.options import Market as Shop
from engine.model.catalog import Catalog
from engine.model.diagnostic import Position
from engine.model.environment import Caps, Environment
from engine.model.ledger import Ledger
from engine.model.money import UsdPerHour
from engine.model.pod import DaemonSet, Placing, Pod, PodKey
from engine.model.policy import NodePool, Policy
from engine.model.quantity import NODES, NOTHING, Resources
from engine.model.refusal import PoolNotReady, PoolRefusal
from engine.model.snapshot import CloudFacts, ResolvedSubnet, Snapshot
from engine.model.workload import ObjectKey
from engine.policy.launch_template import image_variant
from engine.scheduling.groups import PodClass, pod_classes
from engine.scheduling.kinds import Offer
from engine.scheduling.limits import Headroom, resource_order
from engine.scheduling.market import Market
from engine.scheduling.offers import PoolOffers
from engine.scheduling.problem import PoolState, Problem
from engine.scheduling.refusals import refusals
from engine.scheduling.solve import solve

_ANY_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
_NO_CAPS = Caps(launches=10**9, added_usd_per_hour=UsdPerHour(10**18))
# Beyond so many steps a limit is filled in fractions of nodes, which can only find more room.
_MOST_STEPS = 2_000
# So many replicas of one workload are counted onto nodes; of more, "at least" is said.
_MOST_COUNTED = 10_000


@frozen
class ScaledWorkload:
    """A workload with an autoscaler, of kind ``scaled_by``, and what each of its pods asks of a node.

    ``min_replicas`` stand always, idle or not. ``position`` is where a person wrote the ceiling.
    """

    kind: str
    key: ObjectKey
    scaled_by: str
    min_replicas: int
    max_replicas: int
    pod: Placing
    position: Position

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@frozen
class PoolHold:
    """How many replicas a pool can hold at most, and the limit that decides it; None: as many as may come.

    ``limit`` is in the resource's base units.
    """

    node_pool: str
    replicas: int | None = None
    resource: str = ""
    limit: int = 0


@frozen
class FakeScaling:
    """``held`` replicas are all that the reachable pools can hold, and the workload may scale to more."""

    workload: ScaledWorkload
    pools: tuple[PoolHold, ...]
    held: int

    @property
    def pending(self) -> int:
        return self.workload.max_replicas - self.held


@frozen
class FakeScalingTogether:
    """Workloads that reach no other pools than these need ``needed`` of a resource at their ceilings, in base units;
    the pools' limits come to ``limit``. Of ``nodes`` they need no fewer than ``needed``."""

    pools: tuple[NodePool, ...]
    workloads: tuple[ScaledWorkload, ...]
    resource: str
    needed: int
    limit: int


@frozen
class BaseBelowMinReplicas:
    """What is always there of workloads that can go to this pool alone needs more nodes than the pool always keeps.

    ``is_least``: not all replicas were counted, so the pods need even more nodes.
    """

    pool: NodePool
    workloads: tuple[ScaledWorkload, ...]
    needed: int
    is_least: bool = False


@frozen
class NoPoolAdmits:
    """No pool makes a node for the workload's pods; ``refusals`` has one reason for each pool, nearest first."""

    workload: ScaledWorkload
    refusals: tuple[PoolRefusal, ...]


CeilingFinding = FakeScaling | FakeScalingTogether | BaseBelowMinReplicas | NoPoolAdmits


@frozen(eq=False)
class _Reach:
    """A workload with the offers for its pods and what each pool that makes them can hold, in pool order."""

    workload: ScaledWorkload
    pod_class: PodClass
    offers: tuple[Offer, ...]
    holds: tuple[PoolHold, ...]
    pools: frozenset[str] = field(init=False)

    @pools.default
    def _names(self) -> frozenset[str]:
        return frozenset(hold.node_pool for hold in self.holds)


def judge_ceilings(
    workloads: Iterable[ScaledWorkload],
    policy: Policy,
    catalog: Catalog,
    environment: Environment,
    daemon_sets: Iterable[DaemonSet] = (),
) -> tuple[CeilingFinding, ...]:
    """Every workload and every pool whose numbers cannot come true, in a settled order.

    Each workload is judged alone, as if all limits were for it; then together with those that reach the same pools.
    Limits are those in force in the environment. Pods that ask for nodes outside of every pool are not judged.
    """
    daemons = tuple(daemon_sets)
    states = {state.pool.name: state for state in _states(policy, catalog, environment)}
    pools = [PoolOffers(state, daemons) for state in states.values()]
    market = Market(pools)
    judged = sorted(
        (each for each in workloads if not each.pod.refuses_every_pool), key=lambda each: (each.key, each.kind)
    )
    reaches = [_reach(workload, market, states) for workload in judged]
    return (
        *_unadmitted(reaches, pools),
        *_alone(reaches),
        *_together(reaches, states, policy),
        *_below_base(reaches, states, policy, daemons),
    )


def _states(policy: Policy, catalog: Catalog, environment: Environment) -> Iterator[PoolState]:
    """The pools empty, in name order, in an account that has every image and a subnet in each zone.

    A pool of fixed size is one that makes so many nodes at most: its nodes take pods like any others.
    """
    variants = dict.fromkeys(sorted({image_variant(kind) for kind in catalog.instance_types}), "any")
    subnets = tuple(ResolvedSubnet(zone, zone, 1) for zone in sorted(environment.network.zones))
    cloud = CloudFacts(
        subnets={each.name: subnets for each in policy.node_classes},
        security_group_ids={each.name: ("any",) for each in policy.node_classes},
        images={each.name: variants for each in policy.node_classes},
    )
    shop = Shop(catalog, environment, Snapshot(environment.name, _ANY_MOMENT, cloud=cloud), Ledger())
    for pool in sorted(policy.node_pools, key=lambda each: each.name):
        options = shop.options(pool, policy.node_class(pool.node_class))
        limits = environment.pool_limits(pool.name, pool.limits)
        if pool.is_static:
            limits = Resources({**limits, NODES: min(pool.base_nodes, limits.get(NODES, pool.base_nodes))})
        yield PoolState(
            pool=evolve(pool, replicas=None, min_nodes=0),
            limits=limits,
            used=NOTHING,
            options=() if isinstance(options, PoolNotReady) else options,
            not_ready=options if isinstance(options, PoolNotReady) else None,
            unsold=shop.unsold(pool) if options == () else (),
        )


def _reach(workload: ScaledWorkload, market: Market, states: Mapping[str, PoolState]) -> _Reach:
    pod_class = pod_classes(_pods(workload, 1))[0]
    offers = tuple(offer for offer in market.offers(pod_class) if offer.options)
    by_pool: dict[str, list[Offer]] = {}
    for offer in offers:
        by_pool.setdefault(offer.kind.pool, []).append(offer)
    holds = tuple(_hold(states[name], by_pool[name]) for name in sorted(by_pool))
    return _Reach(workload, pod_class, offers, holds)


def _pods(workload: ScaledWorkload, count: int) -> list[Pod]:
    """Replicas that nothing but requests, selectors, affinity and taints keeps from a node."""
    asked = workload.pod
    placing = Placing(asked.requests, asked.node_selector, asked.affinity_terms, asked.tolerations)
    name = f"{workload.kind}-{workload.key.name}"
    return [
        Pod(PodKey(workload.key.namespace, f"{name}-{number:06}"), placing, created_at=_ANY_MOMENT)
        for number in range(count)
    ]


def _hold(state: PoolState, offers: Sequence[Offer]) -> PoolHold:
    tightest = PoolHold(state.pool.name)
    for resource in sorted(state.limits, key=resource_order):
        limit = state.limits[resource]
        sizes = tuple(sorted({(each.kind.capacity.amount(resource), each.pods_per_node) for each in offers}))
        replicas = _most_replicas(limit, sizes)
        if replicas is not None and (tightest.replicas is None or replicas < tightest.replicas):
            tightest = PoolHold(state.pool.name, replicas, resource, limit)
    return tightest


@lru_cache(maxsize=4096)
def _most_replicas(limit: int, sizes: tuple[tuple[int, int], ...]) -> int | None:
    """The most pods that whole nodes within the limit hold; ``sizes`` are (what a node takes of it, pods on it).

    None: a node that takes nothing of it can always be added.
    """
    if any(size <= 0 for size, _ in sizes):
        return None
    within = [(size, pods) for size, pods in sizes if size <= limit]
    if not within:
        return 0
    step = gcd(*(size for size, _ in within))
    steps = limit // step
    if steps > _MOST_STEPS:
        return max(limit * pods // size for size, pods in within)
    most = [0] * (steps + 1)
    for room in range(1, steps + 1):
        filled = (most[room - size // step] + pods for size, pods in within if size // step <= room)
        most[room] = max(most[room - 1], max(filled, default=0))
    return most[steps]


def _unadmitted(reaches: Iterable[_Reach], pools: Sequence[PoolOffers]) -> Iterator[NoPoolAdmits]:
    headroom = Headroom([pool.state for pool in pools], _NO_CAPS)
    for reach in reaches:
        if not reach.holds and reach.workload.max_replicas > 0:
            yield NoPoolAdmits(reach.workload, refusals(reach.pod_class, pools, headroom))


def _alone(reaches: Iterable[_Reach]) -> Iterator[FakeScaling]:
    for reach in reaches:
        replicas = [hold.replicas for hold in reach.holds]
        finite = [each for each in replicas if each is not None]
        if replicas and len(finite) == len(replicas) and sum(finite) < reach.workload.max_replicas:
            yield FakeScaling(reach.workload, reach.holds, held=sum(finite))


def _together(
    reaches: Iterable[_Reach], states: Mapping[str, PoolState], policy: Policy
) -> Iterator[FakeScalingTogether]:
    """Of pool sets within one another the smallest that cannot hold its workloads, each once."""
    reaching = [reach for reach in reaches if reach.pools and reach.workload.max_replicas > 0]
    told: list[frozenset[str]] = []
    for pools in _pool_sets(reaching):
        members = [reach for reach in reaching if reach.pools <= pools]
        if len(members) < 2 or any(smaller <= pools for smaller in told):
            continue
        short = next(_shortages(members, [states[name] for name in sorted(pools)]), None)
        if short is not None:
            told.append(pools)
            resource, needed, limit = short
            yield FakeScalingTogether(
                pools=tuple(pool for name in sorted(pools) if (pool := policy.node_pool(name)) is not None),
                workloads=tuple(reach.workload for reach in members),
                resource=resource,
                needed=needed,
                limit=limit,
            )


def _pool_sets(reaches: Iterable[_Reach]) -> list[frozenset[str]]:
    """The sets of pools that workloads reach, and the unions of those that overlap, the smallest first."""
    own = {reach.pools for reach in reaches}
    unions: list[frozenset[str]] = []
    for pools in own:
        apart = [each for each in unions if not each & pools]
        unions = [*apart, pools.union(*(each for each in unions if each & pools))]
    return sorted({*own, *unions}, key=lambda pools: (len(pools), sorted(pools)))


def _shortages(members: Sequence[_Reach], states: Sequence[PoolState]) -> Iterator[tuple[str, int, int]]:
    """(resource, needed, limit) for each resource that every pool limits and the members' ceilings go beyond."""
    limited = frozenset.intersection(*(frozenset(state.limits) for state in states))
    for resource in sorted(limited, key=resource_order):
        limit = sum(state.limits[resource] for state in states)
        needed = _least_nodes(members) if resource == NODES else _asked(members, resource)
        if needed > limit:
            yield resource, needed, limit


def _asked(members: Iterable[_Reach], resource: str) -> int:
    return sum(each.workload.max_replicas * each.pod_class.requests.amount(resource) for each in members)


def _least_nodes(members: Sequence[_Reach]) -> int:
    """No fewer nodes can do, however the pods are mixed: for each resource, all that is asked over the largest node."""
    rooms = {id(offer.kind.room): offer.kind.room for each in members for offer in each.offers}.values()
    resources = {name for each in members for name, amount in each.pod_class.requests.items() if amount > 0}
    nodes = (-(-_asked(members, name) // max(room.amount(name) for room in rooms)) for name in resources)
    return max(nodes, default=0)


def _below_base(
    reaches: Sequence[_Reach], states: Mapping[str, PoolState], policy: Policy, daemons: tuple[DaemonSet, ...]
) -> Iterator[BaseBelowMinReplicas]:
    """A pool that keeps no base capacity promises none, so it is not judged."""
    for pool in sorted(policy.node_pools, key=lambda each: each.name):
        only_here = [each for each in reaches if each.pools == {pool.name} and each.workload.min_replicas > 0]
        if not pool.base_nodes or not only_here:
            continue
        counts = [min(each.workload.min_replicas, _MOST_COUNTED) for each in only_here]
        pods = [pod for each, count in zip(only_here, counts, strict=True) for pod in _pods(each.workload, count)]
        unlimited = evolve(states[pool.name], limits=NOTHING)
        needed = len(solve(Problem(tuple(pods), (), (unlimited,), daemons, _NO_CAPS)).new_nodes)
        if needed > pool.base_nodes:
            workloads = tuple(each.workload for each in only_here)
            is_least = any(each.min_replicas > _MOST_COUNTED for each in workloads)
            yield BaseBelowMinReplicas(pool, workloads, needed, is_least)
