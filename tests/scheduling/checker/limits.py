"""Pool limits, stack overrides laid over them, and the caps of one pass.

Karpenter's rule (reference, 4.1): a limit is of the capacity of all of a pool's nodes, not of requests, and ``nodes``
counts them. Nothing in a plan may bring a pool over one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.amounts import sum_of
from tests.scheduling.checker.machines import lost_claims, machines
from tests.scheduling.checker.shapes import capacity_of, is_plain
from tests.scheduling.checker.violation import Violation

# A removal for one of these reasons says itself that there is no machine.
_NO_MACHINE = ("Lost", "LaunchRefused")


def within_limits(
    snapshot: Snapshot, plan: Plan, policy: Policy, environment: Environment, catalog: Catalog
) -> Iterator[Violation]:
    """What runs, what may still run, and what is launched, against each pool's limits; and what the plan tells."""
    used = used_by_pool(snapshot, plan, policy, environment, catalog)
    told = {(use.node_pool, use.resource): use for use in plan.limits if not use.rule}
    for pool in policy.node_pools:
        planned = sum_of(
            {**launch.claim.capacity, "nodes": 1} for launch in plan.launches if launch.claim.node_pool == pool.name
        )
        limits = limits_of(pool.name, dict(pool.limits), environment)
        for resource, limit in limits.items():
            before = used[pool.name][resource]
            if planned[resource] and before + planned[resource] > limit:
                yield Violation("limits", pool.name, f"{before} + {planned[resource]} of {limit} {resource}")
            use = told.pop((pool.name, resource), None)
            if use is None or (use.limit, use.used, use.planned) != (limit, before, planned[resource]):
                facts = f"{before} + {planned[resource]} of {limit} {resource}"
                yield Violation("limits-told", pool.name, f"{facts} is told as {use}")
    for name, resource in told:
        yield Violation("limits-told", name, f"{resource} is no limit")


def limits_of(pool: str, declared: Mapping[str, int], environment: Environment) -> Mapping[str, int]:
    return {**declared, **environment.limits.get(pool, {})}


def used_by_pool(
    snapshot: Snapshot, plan: Plan, policy: Policy, environment: Environment, catalog: Catalog
) -> Mapping[str, Counter[str]]:
    """The capacity of all that runs, is on its way or may not be gone, by pool; nodes of others with its label too."""
    document = snapshot.document
    used: dict[str, Counter[str]] = {pool.name: Counter() for pool in policy.node_pools}
    lost = lost_claims(snapshot)
    for claim in document.claims if document else ():
        if claim.name not in lost:
            used.setdefault(claim.node_pool, Counter()).update({**claim.capacity, "nodes": 1})
    for record in document.removals if document else ():
        states = [each.is_alive for each in snapshot.cloud.instances if each.claim == record.claim]
        settled = document is not None and document.version <= snapshot.ledger.settled_version
        is_gone = states or settled or record.reason.value in _NO_MACHINE
        if any(states) or not (is_gone or record.claim in snapshot.cloud.absent_claims):
            used.setdefault(record.node_pool, Counter()).update({**record.capacity, "nodes": 1})
    kinds = {kind.name: kind for kind in catalog.instance_types}
    for machine in machines(snapshot, plan, policy):
        pool = policy.node_pool(machine.labels.get("karpenter.sh/nodepool", ""))
        if machine.claim is not None or pool is None:
            continue
        node_class, kind = policy.node_class(pool.node_class), kinds.get(machine.instance_type)
        sold = capacity_of(kind, node_class, environment) if kind and node_class and is_plain(node_class) else {}
        amounts = {key: max(sold.get(key, 0), machine.allocatable.get(key, 0)) for key in {*sold, *machine.allocatable}}
        used[pool.name].update({**amounts, "nodes": 1})
    return used


def within_caps(plan: Plan, environment: Environment) -> Iterator[Violation]:
    """What one pass may do at most, whatever the policy says."""
    caps = environment.caps
    if len(plan.launches) > caps.launches:
        yield Violation("cap-launches", environment.name, f"{len(plan.launches)} launches of {caps.launches}")
    added = sum(launch.claim.usd_per_hour.micros for launch in plan.launches)
    if added > caps.added_usd_per_hour.micros:
        yield Violation("cap-dollars", environment.name, f"{added} added of {caps.added_usd_per_hour.micros}")
    for phase in ("mark", "release"):
        by_choice = [each for each in plan.removals if each.phase.value == phase]
        by_choice = [each for each in by_choice if each.record.reason.value not in _NO_MACHINE]
        if len(by_choice) > caps.removals:
            yield Violation("cap-removals", environment.name, f"{len(by_choice)} to {phase} of {caps.removals}")
