"""Nodes that stand idle longer than their pool's policy lets them, and no reason that would hold them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from engine.model.claim import Claim
from engine.model.plan import Plan
from engine.model.policy import ConsolidationPolicy, NodePool, Policy
from engine.model.stay import BelowConsolidateAfter, InUse, NotInitialized
from engine.simulate.world import World

# Later than a pass may be.
_SLACK = timedelta(minutes=40)
# As long as a node may be kept for pods that are to come to it.
_MOST_PLANNED = timedelta(hours=2)


class Idling:
    """Keeps its own clocks: since when each machine's node is up and has no pod, whatever a pass thinks of it."""

    def __init__(self, world: World, policy: Policy) -> None:
        self._world = world
        self._pools = {pool.name: pool for pool in policy.node_pools}
        self._since: dict[str, datetime] = {}
        self._told: set[str] = set()
        self._misled = 0

    def follow(self, policy: Policy) -> None:
        """From now on another policy holds: nobody could know of its times before, so that each counts from here."""
        self._pools = {pool.name: pool for pool in policy.node_pools}
        self._since.clear()

    def overdue(self, plan: Plan) -> Iterator[str]:
        """Each node that should have been let go by now, told once."""
        idle = dict(self._idle())
        if self._world.bad_reads != self._misled:
            # Whoever was shown something wrong may begin its clocks anew.
            self._misled = self._world.bad_reads
            self._since.clear()
        self._since = {name: self._since.get(name, self._world.now) for name in idle}
        reasons = {kept.claim: kept.reason for kept in plan.kept}
        for name, after in idle.items():
            stood = self._world.now - self._since[name]
            reason = reasons.get(name)
            is_counting = isinstance(reason, BelowConsolidateAfter | NotInitialized)
            is_counting = is_counting or (isinstance(reason, InUse) and not reason.planned)
            is_kept_for_nobody = isinstance(reason, InUse) and stood > after + _MOST_PLANNED
            if not (is_counting or isinstance(reason, InUse)):
                # Something else keeps it, which other rules look at; its time begins anew once that is over.
                self._since[name] = self._world.now
            if name not in self._told and ((is_counting and stood > after + _SLACK) or is_kept_for_nobody):
                self._told.add(name)
                yield f"{name} has stood idle for {stood}, its pool lets it for {after}, and it stays for {reason}"

    def _idle(self) -> Iterator[tuple[str, timedelta]]:
        if self._world.document is None:
            return
        nodes = self._world.nodes_by_claim()
        for claim in self._world.document.claims:
            pool = self._pools.get(claim.node_pool)
            after = _lets_idle(pool) if pool is not None else None
            name = nodes.get(claim.name)
            if after is not None and name is not None and self._is_up(claim, name):
                yield claim.name, after

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
