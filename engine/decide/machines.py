"""The machines of known pools as disruption sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from engine.decide.bring_up import BringUp
from engine.decide.fleet import Sighting
from engine.decide.pools import held
from engine.decide.unseen import pods_unseen
from engine.disruption.drift import Drift
from engine.disruption.machine import Machine
from engine.disruption.moved import may_move_at
from engine.model.plan import Placement
from engine.model.policy import NodePool, Policy
from engine.model.reason import DisruptionReason
from engine.model.refusal import KarpenterOwnsPool, PoolPaused
from engine.model.snapshot import Snapshot
from engine.model.stay import PodsUnseen, SeveralNodes

NO_SPARES: Mapping[str, int] = {}


def machines(
    brought: Mapping[str, BringUp],
    lost: Iterable[str],
    placements: Iterable[Placement],
    policy: Policy,
    snapshot: Snapshot,
    spares: Mapping[str, int] = NO_SPARES,
    drift: Drift | None = None,
) -> tuple[Machine, ...]:
    """In claim order; those that are lost are no machines. ``spares`` are the devices that machines keep free, by
    claim. Without ``drift`` nothing is known to have drifted."""
    gone = frozenset(lost)
    pools = {pool.name: pool for pool in policy.node_pools}
    planned: dict[str, int] = {}
    for placement in placements:
        if placement.claim is not None:
            planned[placement.claim] = planned.get(placement.claim, 0) + 1
    holds = {pool.name: held(pool, snapshot.karpenter) for pool in policy.node_pools}
    successors, unseen = _successors(brought, gone), pods_unseen(snapshot)
    return tuple(
        _machine(
            each,
            pools[pool],
            holds[pool],
            snapshot,
            drift,
            unseen,
            planned=planned.get(name, 0),
            spare=spares.get(name, 0),
            successors=successors.get(name, ()),
        )
        for name, each in brought.items()
        if name not in gone and (pool := each.sighting.claim.node_pool) in pools
    )


def _machine(
    brought: BringUp,
    pool: NodePool,
    holds: PoolPaused | KarpenterOwnsPool | None,
    snapshot: Snapshot,
    drift: Drift | None,
    unseen: PodsUnseen | None,
    *,
    planned: int,
    spare: int,
    successors: tuple[str, ...],
) -> Machine:
    sighting = brought.sighting
    claim, node = sighting.claim, sighting.node
    return Machine(
        claim=claim,
        pool=pool,
        node=node,
        is_initialized=brought.is_initialized,
        workload=len(sighting.workload),
        guarded_by=sighting.guarded_by,
        pods=sighting.workload,
        planned=planned,
        spare=spare,
        empty_since=_past(snapshot.ledger.empty_since.get(claim.name), snapshot.taken_at),
        held=KarpenterOwnsPool(node_pool=pool.name)
        if sighting.is_karpenters
        else holds or _known_twice(sighting) or unseen,
        trouble=brought.trouble,
        is_coming=brought.is_coming,
        initialized_at=brought.milestones.initialized_at,
        quiet_since=_quiet_since(brought, snapshot),
        may_move_at=may_move_at(sighting.workload, snapshot.ledger.moved, pool.upkeep.node_life)
        if snapshot.ledger.moved
        else None,
        successors=successors,
        going_for=_going_for(sighting, snapshot),
        changes=drift.changes(claim, pool) if drift is not None else (),
        drifted_since=snapshot.ledger.drifted_since.get(claim.name),
        template_today=drift.template(claim, pool) if drift is not None else "",
    )


def _quiet_since(brought: BringUp, snapshot: Snapshot) -> datetime | None:
    """When a pod last came to the node or left it, as far as can be told; else when the node came up. A pod counts from
    the start of its first container; until then it is just coming."""
    sighting, now = brought.sighting, snapshot.taken_at
    times = [brought.milestones.initialized_at] if brought.milestones.initialized_at is not None else []
    before = snapshot.ledger.pods_seen.get(sighting.claim.name)
    if before is not None:
        times.append(before.since if before.pods == len(sighting.workload) else now)
    times += [now if pod.deleting else pod.started_at or pod.created_at for pod in sighting.workload]
    return _past(max(times, default=None), now)


def _past(remembered: datetime | None, now: datetime) -> datetime | None:
    """A clock that was ahead when it was looked at lets nothing begin later than now."""
    return min(remembered, now) if remembered is not None else None


def _going_for(sighting: Sighting, snapshot: Snapshot) -> DisruptionReason | None:
    """What a marked node says itself, else what is remembered."""
    if sighting.node is None or not sighting.node.is_marked:
        return None
    known = snapshot.ledger.disruptions.get(sighting.claim.name)
    return sighting.node.marked_for or (known.reason if known is not None else None)


def _successors(brought: Mapping[str, BringUp], gone: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """The claims that were launched to take a machine's place, by its claim. Those that failed take none."""
    found: dict[str, list[str]] = {}
    for name, each in brought.items():
        if name not in gone and not each.is_failed:
            for replaced in each.sighting.claim.replaces:
                found.setdefault(replaced, []).append(name)
    return {name: tuple(sorted(names)) for name, names in found.items()}


def _known_twice(sighting: Sighting) -> SeveralNodes | None:
    if sighting.node is None or not sighting.other_nodes:
        return None
    return SeveralNodes(nodes=tuple(sorted(node.name for node in (sighting.node, *sighting.other_nodes))))
