"""Explain disruption budgets: each with its state and its arithmetic, for a pool or for a rule."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from engine.decide.budgets_asked import gone_before
from engine.decide.departures import standings_of
from engine.disruption.budget_rules import BudgetRules, Gone
from engine.disruption.budgets import PoolStanding
from engine.disruption.counted import Counted, going_by
from engine.disruption.explained import BudgetExplanation, explained
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.plan import Plan
from engine.model.policy import NodePool, Policy
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.rule import RuleKind
from engine.model.snapshot import Snapshot
from engine.policy.facts.values import cluster_facts
from engine.policy.rules.compiled import bundle_of
from engine.policy.windows import LONGEST_OPENING


def explain_budget(
    policy: Policy,
    environment: Environment,
    name: str,
    reason: DisruptionReason | None,
    snapshot: Snapshot,
    *,
    plan: Plan | None = None,
) -> tuple[BudgetExplanation, ...]:
    """What the budgets of the pool ``name``, or of every pool that the rule ``name`` selects, allow.

    ``reason`` None is each that is by choice. ``plan`` is the pass's that would follow: who goes by it counts. Raises
    Fault where there is no pool and no disruption budget of that name.
    """
    standings = standings_of(snapshot, policy)
    out = {each.claim for standing in standings.values() for each in standing.counted}
    going = going_by(plan, out) if plan is not None else {}
    gone = gone_before(snapshot)
    return _explained(policy, environment, name, reason, snapshot.taken_at, snapshot, gone, standings, going)


def explain_supposed_budget(
    policy: Policy,
    environment: Environment,
    name: str,
    reason: DisruptionReason | None,
    at: datetime,
    base: int,
    out: int,
) -> tuple[BudgetExplanation, ...]:
    """As `explain_budget`, where each pool has ``base`` nodes of which ``out`` are out, and none went in openings."""
    standings = {
        pool.name: PoolStanding(pool=pool, base=base, out=out, serving=base - out, gpus=base)
        for pool in policy.node_pools
    }
    nowhere = Snapshot(environment=environment.name, taken_at=at)
    gone = Gone({}, at - LONGEST_OPENING)
    return _explained(policy, environment, name, reason, at, nowhere, gone, standings, {})


def _explained(
    policy: Policy,
    environment: Environment,
    name: str,
    reason: DisruptionReason | None,
    at: datetime,
    snapshot: Snapshot,
    gone: Gone,
    standings: Mapping[str, PoolStanding],
    going: Mapping[str, tuple[Counted, ...]],
) -> tuple[BudgetExplanation, ...]:
    pools, rule = _asked_about(policy, name)
    facts = cluster_facts(environment, snapshot)
    rules = BudgetRules(bundle_of(policy), policy.windows, facts, gone, lambda machine: (), at)
    reasons = VOLUNTARY_REASONS if reason is None else (reason,)
    return tuple(
        each
        for pool in pools
        for each in explained(
            standings.get(pool.name, PoolStanding(pool, 0, 0, 0)), rules, reasons, rule, going.get(pool.name, ())
        )
    )


def _asked_about(policy: Policy, name: str) -> tuple[tuple[NodePool, ...], str | None]:
    pool = policy.node_pool(name)
    if pool is not None:
        return (pool,), None
    budgets = [rule.name for rule in policy.rules if rule.kind is RuleKind.DISRUPTION_BUDGET]
    if name in budgets:
        return policy.node_pools, name
    pools = ", ".join(each.name for each in policy.node_pools) or "none"
    raise Fault(
        f"there is no node pool and no DisruptionBudget {name}",
        f"pools: {pools}; disruption budgets: {', '.join(budgets) or 'none'}",
    )
