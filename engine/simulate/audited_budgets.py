"""NodePool budgets, counted anew from the world: by nobody's books but the policy's own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine.disruption.budgets import describe, is_active
from engine.model.node import READY, Node
from engine.model.plan import Plan, RemovalPhase
from engine.model.policy import Policy
from engine.model.reason import VOLUNTARY_REASONS
from engine.simulate.world import World


def budgets_exceeded(world: World, plan: Plan, policy: Policy) -> Iterator[str]:
    """Each budget by which this plan marks a node although too many are out.

    The base is all that the document names: at the most. What is out is counted at the least (`out_by_pool`). So what
    is found here is wrong by any way of counting.
    """
    nodes = world.nodes_by_claim()
    marking = [
        each.record
        for each in plan.removals
        if each.phase is RemovalPhase.MARK
        and each.record.reason in VOLUNTARY_REASONS
        and (node := world.cluster.node(nodes.get(each.record.claim, ""))) is not None
        and not node.is_marked
    ]
    out = out_by_pool(world, plan)
    bases = Counter(claim.node_pool for claim in world.document.claims) if world.document is not None else Counter()
    for name, reason in sorted({(each.node_pool, each.reason) for each in marking}):
        pool = policy.node_pool(name)
        if pool is None:
            yield f"pool {name} is in no file, and a node of it is marked for {reason.value}"
            continue
        for budget in pool.disruption.budgets:
            if reason not in (budget.reasons or VOLUNTARY_REASONS) or not is_active(budget, plan.decided_at):
                continue
            allowed = -(-bases[name] * budget.percent // 100) if budget.percent is not None else budget.nodes or 0
            if out[name] > allowed:
                of_all = f"{out[name]} nodes are out of {bases[name]}"
                yield f"pool {name}: {of_all}, and {describe(budget)} lets {allowed} be"


def out_by_pool(world: World, plan: Plan) -> Counter[str]:
    """How many nodes of each pool serve nobody once this plan is begun, whatever the cause: those that are marked, that
    it marks, and that were ready and are not."""
    pools = {claim.name: claim.node_pool for claim in world.document.claims} if world.document is not None else {}
    nodes = world.nodes_by_claim()
    out = {claim for claim, name in nodes.items() if (node := world.cluster.node(name)) is not None and _is_out(node)}
    out |= {each.record.claim for each in plan.removals if each.phase is RemovalPhase.MARK}
    return Counter(pools[claim] for claim in sorted(out) if claim in pools)


def _is_out(node: Node) -> bool:
    return node.is_marked or any(each.type == READY and each.status != "True" for each in node.conditions)
