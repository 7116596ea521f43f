"""Each pool with its limits, what counts against them, and what it can buy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from engine.catalog.ledger import BRING_UPS_IN_A_ROW
from engine.decide.bring_up import BringUp
from engine.decide.expected_labels import doubted_labels
from engine.decide.fleet import Fleet
from engine.decide.options import Market
from engine.model import labels as keys
from engine.model.environment import Environment
from engine.model.ledger import FailedBringUps, Ledger
from engine.model.node import Node
from engine.model.policy import NodeClass, NodePool, Policy
from engine.model.quantity import NODES, NOTHING, Resources
from engine.model.refusal import BringUpsFailed, GuardrailBlocks, KarpenterOwnsPool, PoolNotReady, PoolPaused
from engine.model.snapshot import KarpenterFacts, Snapshot
from engine.scheduling.problem import PoolState, Replacing


def standing_nodes(fleet: Fleet, lost: Iterable[str], brought: Mapping[str, BringUp]) -> Mapping[str, int]:
    """How many claims each pool keeps; a node that is marked is on its way out and no base capacity any more, nor is a
    machine that failed or has to go."""
    gone = frozenset(lost)
    return Counter(
        sighting.claim.node_pool
        for sighting in fleet.sightings
        if sighting.claim.name not in gone
        and not (brought[sighting.claim.name].is_failed or brought[sighting.claim.name].is_doomed)
        and not (sighting.node is not None and sighting.node.is_marked)
    )


def held(pool: NodePool, karpenter: KarpenterFacts) -> PoolPaused | KarpenterOwnsPool | None:
    """What keeps a pool from any launch and any removal by choice."""
    if karpenter.is_live and pool.name in karpenter.node_pools:
        return KarpenterOwnsPool(node_pool=pool.name)
    return PoolPaused(why=pool.paused) if pool.paused else None


def pool_states(
    fleet: Fleet,
    brought: Mapping[str, BringUp],
    lost: Iterable[str],
    policy: Policy,
    environment: Environment,
    market: Market,
    learned: Ledger,
    snapshot: Snapshot,
    *,
    with_options: bool = True,
    blocked: GuardrailBlocks | None = None,
    replaceable: Mapping[str, Resources] | None = None,
) -> tuple[PoolState, ...]:
    """The pools in name order; without options where nothing can be launched anyway.

    Against a limit count: each claim, until its machine is known to be gone, marked ones included; and the nodes that
    carry the pool's label and are no claim of ours, such as a Karpenter's that still runs. A machine that is both
    counts once, as the claim.

    ``blocked``: nothing is launched but what is ``replaceable``, by pool.
    """
    gone = frozenset(lost)
    used = _used(fleet, gone)
    standing = standing_nodes(fleet, gone, brought)
    coming = {each.sighting.claim.node_pool for each in brought.values() if each.is_coming}
    claimed = {each.instance.id for each in fleet.sightings if each.instance is not None}
    states = []
    for pool in sorted(policy.node_pools, key=lambda each: each.name):
        node_class = policy.node_class(pool.node_class)
        options = market.options(pool, node_class) if with_options else ()
        foreign = (
            _foreign_capacity(node, node_class, market)
            for node in fleet.foreign_nodes
            if node.labels.get(keys.NODE_POOL) == pool.name and node.instance_id not in claimed
        )
        closed, one_by_one = _after_failures(learned.bring_ups.get(pool.name), pool.name in coming, snapshot.taken_at)
        not_ready = options if isinstance(options, PoolNotReady) else None
        states.append(
            PoolState(
                pool=pool,
                limits=environment.pool_limits(pool.name, pool.limits),
                used=sum(foreign, used.get(pool.name, NOTHING)),
                options=() if isinstance(options, PoolNotReady) else options,
                nodes=standing.get(pool.name, 0),
                not_ready=held(pool, snapshot.karpenter) or not_ready or closed,
                one_by_one=one_by_one,
                label_doubts=doubted_labels(pool, learned, snapshot.taken_at),
                replacing=Replacing((replaceable or {}).get(pool.name, NOTHING), blocked) if blocked else None,
                unsold=market.unsold(pool) if with_options and options == () else (),
            )
        )
    return tuple(states)


def _after_failures(
    failed: FailedBringUps | None, is_one_coming: bool, now: datetime
) -> tuple[BringUpsFailed | None, BringUpsFailed | None]:
    """What bars a pool whose machines did not come up: all launches for a while, or all but one at a time."""
    if failed is None or failed.failures < BRING_UPS_IN_A_ROW:
        return None, None
    refusal = BringUpsFailed(failures=failed.failures, until=failed.until)
    return (refusal, None) if now < failed.until or is_one_coming else (None, refusal)


def _used(fleet: Fleet, gone: frozenset[str]) -> Mapping[str, Resources]:
    """What the claims of each pool take of its limits: those that stay, and those that may still run."""
    alike = Counter(
        (sighting.claim.node_pool, sighting.claim.capacity)
        for sighting in fleet.sightings
        if sighting.claim.name not in gone
    )
    alike.update((leaving.record.node_pool, leaving.record.capacity) for leaving in fleet.leaving if leaving.may_run)
    sums: dict[str, dict[str, int]] = {}
    for (pool, capacity), count in alike.items():
        amounts = sums.setdefault(pool, {})
        for resource, amount in {**capacity, NODES: 1}.items():
            amounts[resource] = amounts.get(resource, 0) + amount * count
    return {pool: Resources(amounts) for pool, amounts in sums.items()}


def _foreign_capacity(node: Node, node_class: NodeClass | None, market: Market) -> Resources:
    """A node shows what is allocatable; its type's capacity is more, where the catalog knows the type."""
    kind = node.labels.get(keys.INSTANCE_TYPE, "")
    known = (market.capacity(kind, node_class) if node_class else None) or NOTHING
    amounts = {name: max(known.amount(name), node.allocatable.amount(name)) for name in {*known, *node.allocatable}}
    return Resources({**amounts, NODES: 1})
