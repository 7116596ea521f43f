"""The document that a plan proposes: what it launches and releases and nothing else, in order, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine.model.environment import Environment
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.machines import nodes_by_claim
from tests.scheduling.checker.violation import Violation


def document(snapshot: Snapshot, plan: Plan) -> Iterator[Violation]:
    """A claim comes by a launch and leaves by a release whose record the document holds."""
    before = {claim.name: claim for claim in snapshot.document.claims} if snapshot.document else {}
    after = {claim.name: claim for claim in plan.document.claims}
    launched = {launch.claim.name: launch.claim for launch in plan.launches}
    released = {each.record.claim for each in plan.removals if each.phase.value == "release"}
    records = {record.claim for record in plan.document.removals}
    for name in sorted(before.keys() | after.keys() | launched.keys()):
        if name in before and name not in after and not (name in released and name in records):
            yield Violation("records", name, "leaves the document without a removal record")
        elif name in after and name in released:
            yield Violation("records", name, "is released, and stays in the document")
        elif name in after and after[name] != before.get(name, launched.get(name)):
            yield Violation("document", name, "comes without a launch, or was changed")
        elif name in launched and name not in after:
            yield Violation("document", name, "is launched, and not in the document")
    for each in plan.removals:
        if each.record.claim not in before:
            yield Violation("records", each.record.claim, "is removed, and was not there")


def money(snapshot: Snapshot, plan: Plan) -> Iterator[Violation]:
    """Before and after are the sums of the claims' prices; a claim's price holds its volumes."""
    before = sum(claim.usd_per_hour.micros for claim in snapshot.document.claims) if snapshot.document else 0
    after = sum(claim.usd_per_hour.micros for claim in plan.document.claims)
    told = (plan.usd_per_hour_before.micros, plan.usd_per_hour_after.micros)
    if told != (before, after):
        yield Violation("money", plan.environment, f"{told} is told, {(before, after)} is paid")


def base_capacity(snapshot: Snapshot, plan: Plan, policy: Policy, environment: Environment) -> Iterator[Violation]:
    """Each pool keeps as many nodes as it promises, or tells that it does not; no choice takes one of them away."""
    nodes = nodes_by_claim(snapshot)
    marked = {claim for claim, node in nodes.items() if node.is_marked}
    failed = {name for name, each in plan.ledger.milestones.items() if each.failed_at is not None}
    standing = Counter(
        claim.node_pool for claim in plan.document.claims if claim.name not in marked and claim.name not in failed
    )
    told = {each.node_pool: each for each in plan.base_shortfalls}
    by_choice = Counter(
        each.record.node_pool for each in plan.removals if each.record.budget is not None and each.phase.value == "mark"
    )
    for pool in policy.node_pools:
        base = pool.replicas if pool.replicas is not None else pool.min_nodes
        have, short = standing[pool.name], told.get(pool.name)
        if have < base and short is None:
            yield Violation("base", pool.name, f"{have} of {base} nodes, and nothing is told")
        if short is not None and (short.have, short.wanted) != (have, base):
            yield Violation("base", pool.name, f"{have} of {base} nodes, and {short.have} of {short.wanted} is told")
        if by_choice[pool.name] and have - by_choice[pool.name] < base:
            yield Violation(
                "base", pool.name, f"{by_choice[pool.name]} of {have} nodes go by choice, {base} are promised"
            )
