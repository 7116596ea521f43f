"""Nodes that stand idle longer than their pool's policy lets them, and no reason that would hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from engine.model.claim import Claim
from engine.model.plan import Plan
from engine.model.policy import ConsolidationPolicy, NodePool, Policy
from engine.model.refusal import GuardrailBlocks, KarpenterOwnsPool, PoolPaused
from engine.model.replacement import AwaitsReplacement, NoPlace, RolloutWaits, StandsIn
from engine.model.stay import (
    BaseCapacity,
    BelowConsolidateAfter,
    BudgetExhausted,
    ConsolidationOff,
    DoNotDisrupt,
    InUse,
    KeepsHeadroom,
    NotInitialized,
    OutsideWindow,
    PoolUnknown,
    RuleKeeps,
    SeveralNodes,
    StayReason,
)
from engine.simulate.audited_budgets import out_by_pool
from engine.simulate.world import World

# Later than a pass may be.
_SLACK = timedelta(minutes=40)
# As long as a node may be kept for pods that are to come to it, once nobody holds them where they are.
_MOST_PLANNED = timedelta(hours=2)
# As long as something may hold an idle node that passes, such as others that go before it.
_MOST_HELD = timedelta(hours=4)
# What may hold it for good: policy, a person, or another's word.
_FOR_GOOD = (
    BaseCapacity,
    KeepsHeadroom,
    DoNotDisrupt,
    ConsolidationOff,
    PoolUnknown,
    RuleKeeps,
    OutsideWindow,
    GuardrailBlocks,
    PoolPaused,
    KarpenterOwnsPool,
    SeveralNodes,
)


class Idling:
    """Keeps its own clocks: since when each machine's node is up and has no pod, whatever a pass thinks of it."""

    def __init__(self, world: World, policy: Policy) -> None:
        self._world = world
        self._pools = {pool.name: pool for pool in policy.node_pools}
        self._since: dict[str, datetime] = {}
        self._held_since: dict[str, datetime] = {}
        self._told: set[str] = set()
        self._misled = 0

    def follow(self, policy: Policy) -> None:
        """From now on another policy holds: nobody could know of its times before, so that each counts from here."""
        self._pools = {pool.name: pool for pool in policy.node_pools}
        self._since.clear()
        self._held_since.clear()

    def overdue(self, plan: Plan) -> Iterator[str]:
        """Each node that should have been let go by now, told once."""
        now, idle = self._world.now, dict(self._idle())
        if self._world.bad_reads != self._misled:
            # Whoever was shown something wrong may begin its clocks anew.
            self._misled = self._world.bad_reads
            self._since.clear()
        self._since = {name: self._since.get(name, now) for name in idle}
        self._held_since = {name: self._held_since.get(name, now) for name in idle}
        reasons = {kept.claim: kept.reason for kept in plan.kept}
        is_busy = self._busy_pools(plan)
        for name, (pool, after) in idle.items():
            reason = reasons.get(name)
            is_counting = isinstance(reason, BelowConsolidateAfter | NotInitialized)
            is_counting = is_counting or (isinstance(reason, InUse) and not reason.planned)
            if not (is_counting or isinstance(reason, InUse | StandsIn)) or (self._world.refused and not is_counting):
                # Something else keeps it; its time begins anew once that is over.
                self._since[name] = now
            if self._may_hold_for_good(reason, pool, is_busy=pool in is_busy):
                self._held_since[name] = now
            stood, held = now - self._since[name], now - self._held_since[name]
            is_overdue = is_counting and stood > after + _SLACK
            is_kept_for_nobody = isinstance(reason, InUse | StandsIn) and stood > after + _MOST_PLANNED
            is_held_too_long = held > after + _SLACK + _MOST_HELD
            if name not in self._told and (is_overdue or is_kept_for_nobody or is_held_too_long):
                self._told.add(name)
                for_how_long = f"{max(stood, held)}, its pool lets it for {after}"
                yield f"{name} has stood idle for {for_how_long}, and it stays for {reason}"

    def _busy_pools(self, plan: Plan) -> set[str]:
        """Where some machine is out, or about to be: there budgets may well be used up."""
        out = out_by_pool(self._world, plan)
        waiting = Counter(kept.node_pool for kept in plan.kept if isinstance(kept.reason, AwaitsReplacement))
        return {name for name, count in (out + waiting).items() if count}

    def _may_hold_for_good(self, reason: StayReason | None, name: str, *, is_busy: bool) -> bool:
        """A node that has drifted tells what it waits for on that account, even where it would not go for standing idle
        either: for what its pool keeps spare, or for a pod that some budget holds on another node.

        One that is base capacity, and for which limits admit no other, goes first; not where its pool's surge is 1,
        which is a person's word that it waits. A node that stands in for others is as one that pods are planned for.
        """
        pool = self._pools[name]
        if isinstance(reason, BudgetExhausted):
            return is_busy or not reason.allowed
        if isinstance(reason, RolloutWaits):
            return bool(pool.headroom or pool.base_nodes)
        if isinstance(reason, NoPlace):
            return not reason.pod and pool.upkeep.surge == 1
        return isinstance(reason, _FOR_GOOD) or (isinstance(reason, InUse | StandsIn) and bool(self._world.refused))

    def _idle(self) -> Iterator[tuple[str, tuple[str, timedelta]]]:
        """Each machine that stands idle and is not to do so for good: its pool's name, and for how long it may."""
        if self._world.document is None:
            return
        nodes = self._world.nodes_by_claim()
        for claim in self._world.document.claims:
            pool = self._pools.get(claim.node_pool)
            after = _lets_idle(pool) if pool is not None else None
            name = nodes.get(claim.name)
            if after is not None and name is not None and self._is_up(claim, name):
                yield claim.name, (claim.node_pool, after)

    def _is_up(self, claim: Claim, name: str) -> bool:
        node = self._world.cluster.node(name)
        if node is None or not node.ready or self._world.cluster.workload_on(name):
            return False
        promised = claim.allocatable.accelerators()
        has_all = all(node.allocatable.amount(each) >= claim.allocatable.amount(each) for each in promised)
        return has_all and not any(taint in claim.startup_taints for taint in node.taints)


def _lets_idle(pool: NodePool) -> timedelta | None:
    """How long an idle node may stand; None is for good."""
    if pool.is_static or pool.disruption.consolidation_policy is ConsolidationPolicy.NEVER:
        return None
    return pool.disruption.consolidate_after
