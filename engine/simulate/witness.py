"""What drawn worlds went through: proof that the rules held where it was hard, and not for want of trouble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine.decide import decide
from engine.disruption.drift import Drift
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import PodKey
from engine.model.policy import Policy
from engine.model.reason import VOLUNTARY_REASONS
from engine.model.refusal import LimitReached
from engine.model.snapshot import Snapshot
from engine.model.stay import BudgetExhausted, RuleKeeps
from engine.simulate.world import Decider, World


class Witness:
    """Counts over all worlds that it looks on. ``passes`` are passes in which something was so, ``times`` are things
    that happened, each by a few words."""

    def __init__(self) -> None:
        self.passes: Counter[str] = Counter()
        self.times: Counter[str] = Counter()

    def of(self, world: World) -> Decider:
        """Decides as `decide` does, and looks on."""
        scene = _Scene(world)

        def decided(snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
            plan = decide(snapshot, policy, catalog, environment)
            self.passes.update(_states(snapshot, plan))
            self.times.update(scene.events(snapshot, plan, policy, Drift(policy, catalog, environment, snapshot)))
            return plan

        return decided

    def close(self, world: World) -> None:
        """A world is over: what struck it."""
        self.times.update({f"fault {kind.value}": count for kind, count in world.struck.items()})


class _Scene:
    """One world from pass to pass."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._digest = ""
        self._drifted: set[str] = set()
        self._placed: set[PodKey] = set()
        self._asked: set[PodKey] = set()

    def events(self, snapshot: Snapshot, plan: Plan, policy: Policy, drift: Drift) -> Iterator[str]:
        if self._digest not in ("", policy.digest):
            yield "policy changed"
        self._digest = policy.digest
        pools = {pool.name: pool for pool in policy.node_pools}
        claims = snapshot.document.claims if snapshot.document is not None else ()
        drifted = {
            each.name for each in claims if each.node_pool in pools and drift.changes(each, pools[each.node_pool])
        }
        yield from ("machine drifted" for _ in drifted - self._drifted)
        self._drifted = drifted
        yield from self._landings(drifted)
        for removal in plan.removals:
            is_by_choice = removal.record.reason in VOLUNTARY_REASONS
            if removal.phase is not RemovalPhase.MARK:
                continue
            if removal.delete_first is not None:
                yield "pods evicted before they have a place, as declared"
            for key in removal.pods:
                pod = self._world.cluster.pod(key)
                if pod is not None and key not in self._asked and is_by_choice:
                    self._asked.add(key)
                    yield "pod evicted by choice" + ("" if pod.owner is not None else ", of no owner")
            yield from ("pod deleted whatever holds it" for _ in removal.forced)

    def _landings(self, drifted: set[str]) -> Iterator[str]:
        """Pods that were stopped elsewhere, and that run on a machine that is to go as well."""
        there = {name: claim for claim, name in self._world.nodes_by_claim().items()}
        for key in self._world.stopped_before - self._placed:
            pod = self._world.cluster.pod(key)
            if pod is not None and pod.node_name is not None:
                self._placed.add(key)
                if there.get(pod.node_name) in drifted:
                    yield "displaced pod landed on a machine that drifted"


def _states(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    if any(isinstance(each.reason, BudgetExhausted | RuleKeeps) and each.reason.error for each in plan.kept):
        yield "a rule gave no answer"
    if snapshot.blocked_evictions:
        yield "a pod is held by its PodDisruptionBudgets"
    if any(isinstance(refused.refusal, LimitReached) for each in plan.unplaced for refused in each.refusals):
        yield "a limit keeps a pod waiting"
    if any(use.limit and use.used >= use.limit for use in plan.limits):
        yield "a limit is used up"
