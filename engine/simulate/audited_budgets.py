"""NodePool budgets, counted anew from the world: by nobody's books but the policy's own words."""

from __future__ import annotations

from collections.abc import Iterator

from engine.disruption.budgets import describe, is_active
from engine.model.plan import Plan, RemovalPhase
from engine.model.policy import Policy
from engine.model.reason import VOLUNTARY_REASONS
from engine.simulate.world import World


def budgets_exceeded(world: World, plan: Plan, policy: Policy) -> Iterator[str]:
    """Each budget by which this plan marks a node although too many are out.

    Out are the marked nodes of the pool, these included: at the least. The base is all that the document names: at the
    most. So what is found here is wrong by any way of counting.
    """
    nodes = world.nodes_by_claim()
    pool_of = {claim.name: claim.node_pool for claim in world.document.claims} if world.document is not None else {}
    marked = {claim for claim, name in nodes.items() if (node := world.cluster.node(name)) and node.is_marked}
    marking = [
        each.record
        for each in plan.removals
        if each.phase is RemovalPhase.MARK
        and each.record.reason in VOLUNTARY_REASONS
        and each.record.claim in nodes
        and each.record.claim not in marked
    ]
    out = marked | {each.record.claim for each in plan.removals if each.phase is RemovalPhase.MARK}
    for name, reason in sorted({(each.node_pool, each.reason) for each in marking}):
        pool = policy.node_pool(name)
        if pool is None:
            yield f"pool {name} is in no file, and a node of it is marked for {reason.value}"
            continue
        base = sum(each == name for each in pool_of.values())
        gone = sum(pool_of.get(claim) == name for claim in out)
        for budget in pool.disruption.budgets:
            if reason not in (budget.reasons or VOLUNTARY_REASONS) or not is_active(budget, plan.decided_at):
                continue
            allowed = -(-base * budget.percent // 100) if budget.percent is not None else budget.nodes or 0
            if gone > allowed:
                yield f"pool {name}: {gone} nodes are out of {base}, and {describe(budget)} lets {allowed} be"
