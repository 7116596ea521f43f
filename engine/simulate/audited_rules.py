"""Rules whose bound is a plain number, counted anew from the world: what they say needs nobody to work it out."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model.claim import Claim
from engine.model.plan import Plan, RemovalPhase
from engine.model.policy import Policy
from engine.model.reason import VOLUNTARY_REASONS
from engine.model.rule import DisruptionBudget, Enforcement, Expression, LimitedResource, LimitRule
from engine.simulate.audited_budgets import out_by_pool
from engine.simulate.world import World


def rules_exceeded(world: World, plan: Plan, policy: Policy) -> Iterator[str]:
    """Each such rule by which this plan launches or marks too much. Rules with conditions, windows or groups of their
    own are not looked at."""
    for rule in policy.rules:
        is_plain = not (rule.match_conditions or rule.match.node_pools or rule.match.node_pool_labels)
        if not is_plain or rule.enforcement is not Enforcement.DENY:
            continue
        if isinstance(rule, LimitRule) and rule.group_by is None:
            yield from _over_ceiling(world, plan, rule)
        elif isinstance(rule, DisruptionBudget) and not rule.windows:
            yield from _over_budget(world, plan, rule)


def _over_ceiling(world: World, plan: Plan, rule: LimitRule) -> Iterator[str]:
    most = _number(rule.ceiling)
    if most is None:
        return
    for pool in sorted({launch.claim.node_pool for launch in plan.launches}):
        used = sum(_amount(claim, rule.resource) for claim in wanted_or_running(world, plan, pool))
        if used > most:
            yield f"pool {pool}: {used:g} {rule.resource.value} of the {most:g} that rule {rule.name} lets it have"


def _over_budget(world: World, plan: Plan, rule: DisruptionBudget) -> Iterator[str]:
    most = _number(rule.budget)
    if most is None:
        return
    marked = {
        each.record.node_pool
        for each in plan.removals
        if each.phase is RemovalPhase.MARK
        and each.record.reason in (rule.reasons or VOLUNTARY_REASONS)
        and not _is_marked(world, each.record.node)
    }
    out = out_by_pool(world, plan)
    for pool in sorted(marked):
        if out[pool] > most:
            yield f"pool {pool}: {out[pool]} nodes are out of the {most:g} that rule {rule.name} lets be"


def wanted_or_running(world: World, plan: Plan, pool: str) -> list[Claim]:
    """What the document wants of a pool once the plan is done, and what runs beside it."""
    found = {claim.name: claim for claim in plan.document.claims if claim.node_pool == pool}
    for instance in world.ec2.alive():
        claim = world.ec2.claim_of(instance.id)
        if claim is not None and claim.node_pool == pool:
            found.setdefault(claim.name, claim)
    return [found[name] for name in sorted(found)]


def _amount(claim: Claim, resource: LimitedResource) -> float:
    """In the rule's own units; what the auditor knows no count of is nothing."""
    if resource is LimitedResource.USD_PER_HOUR:
        return claim.usd_per_hour.micros / 1e6
    if resource is LimitedResource.GPUS:
        return sum(claim.capacity.amount(name) for name in claim.capacity.accelerators())
    return 1.0 if resource is LimitedResource.NODES else 0.0


def _number(expression: Expression | None) -> float | None:
    try:
        return float(expression.text) if expression is not None else None
    except ValueError:
        return None


def _is_marked(world: World, name: str | None) -> bool:
    node = world.cluster.node(name or "")
    return node is not None and node.is_marked
