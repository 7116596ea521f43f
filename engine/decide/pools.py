"""Each pool with its limits, what counts against them, and what it can buy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from engine.decide.fleet import Fleet
from engine.decide.options import Market
from engine.model import labels as keys
from engine.model.environment import Environment
from engine.model.node import Node
from engine.model.policy import NodeClass, Policy
from engine.model.quantity import NODES, NOTHING, Resources
from engine.model.refusal import PoolNotReady
from engine.scheduling.problem import PoolState


def standing_nodes(fleet: Fleet, lost: Iterable[str]) -> Mapping[str, int]:
    """How many claims each pool keeps; a node that is marked is on its way out and no base capacity any more."""
    gone = frozenset(lost)
    return Counter(
        sighting.claim.node_pool
        for sighting in fleet.sightings
        if sighting.claim.name not in gone and not (sighting.node is not None and sighting.node.is_marked)
    )


def pool_states(
    fleet: Fleet,
    lost: Iterable[str],
    policy: Policy,
    environment: Environment,
    market: Market,
    *,
    with_options: bool = True,
) -> tuple[PoolState, ...]:
    """The pools in name order; without options where nothing can be launched anyway.

    Against a limit count: each claim, until its machine is known to be gone, marked ones included; and the nodes that
    carry the pool's label and are no claim of ours, such as a Karpenter's that still runs.
    """
    gone = frozenset(lost)
    used = _used(fleet, gone)
    standing = standing_nodes(fleet, gone)
    states = []
    for pool in sorted(policy.node_pools, key=lambda each: each.name):
        node_class = policy.node_class(pool.node_class)
        options = market.options(pool, node_class) if with_options else ()
        foreign = (
            _foreign_capacity(node, node_class, market)
            for node in fleet.foreign_nodes
            if node.labels.get(keys.NODE_POOL) == pool.name
        )
        states.append(
            PoolState(
                pool=pool,
                limits=environment.pool_limits(pool.name, pool.limits),
                used=sum(foreign, used.get(pool.name, NOTHING)),
                options=() if isinstance(options, PoolNotReady) else options,
                nodes=standing.get(pool.name, 0),
                not_ready=options if isinstance(options, PoolNotReady) else None,
                unsold=market.unsold(pool) if with_options and options == () else (),
            )
        )
    return tuple(states)


def _used(fleet: Fleet, gone: frozenset[str]) -> Mapping[str, Resources]:
    """What the claims of each pool take of its limits: those that stay, and those that may still run."""
    machines = [
        (sighting.claim.node_pool, sighting.claim.capacity)
        for sighting in fleet.sightings
        if sighting.claim.name not in gone
    ]
    machines += [(leaving.record.node_pool, leaving.record.capacity) for leaving in fleet.leaving if leaving.may_run]
    sums: dict[str, dict[str, int]] = {}
    for pool, capacity in machines:
        amounts = sums.setdefault(pool, {})
        for resource, amount in {**capacity, NODES: 1}.items():
            amounts[resource] = amounts.get(resource, 0) + amount
    return {pool: Resources(amounts) for pool, amounts in sums.items()}


def _foreign_capacity(node: Node, node_class: NodeClass | None, market: Market) -> Resources:
    """A node shows what is allocatable; its type's capacity is more, where the catalog knows the type."""
    kind = node.labels.get(keys.INSTANCE_TYPE, "")
    known = (market.capacity(kind, node_class) if node_class else None) or NOTHING
    amounts = {name: max(known.amount(name), node.allocatable.amount(name)) for name in {*known, *node.allocatable}}
    return Resources({**amounts, NODES: 1})
