"""What stands at one moment, as numbers by label: from a snapshot, its plan and the policy alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from engine.disruption.budget_rules import BudgetRules
from engine.disruption.budgets import PoolStanding, said_by_pool
from engine.disruption.counted import going_by
from engine.disruption.said import bounds, tightest
from engine.model.document import RemovalRecord
from engine.model.packing_bound import PackingBound
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.quantity import CPU
from engine.model.reason import VOLUNTARY_REASONS
from engine.model.snapshot import Snapshot
from engine.policy.facts.values import gpu_count
from engine.report import metric_table as table
from engine.report.metric_table import Metric
from engine.report.standing import NodePhase, Standing, standings
from engine.report.waiting import waiting_by_code

# Label values in the order of Metric.labels.
Samples = Mapping[Metric, Mapping[tuple[str, ...], float]]
# A removal record and its machine's capacity type.
LetGo = tuple[RemovalRecord, str]

_SERVING = (NodePhase.READY, NodePhase.UNREADY, NodePhase.LEAVING)
_MILLICORES = 1000
_MICROS = 1_000_000


def gauges_of(
    snapshot: Snapshot, plan: Plan, policy: Policy | None = None, rules: BudgetRules | None = None
) -> Samples:
    """Every gauge but ``cluster_state_synced``. Without a policy: nothing of budgets, and no pool's pause.

    ``rules`` are the policy's disruption budgets at the snapshot's time.
    """
    every = standings(snapshot, plan.ledger)
    let_go = _let_go(snapshot)
    pools = _pools(every, let_go, policy)
    own_limits = [use for use in plan.limits if not use.rule]
    return {
        table.PODS_WAITING: {(code,): count for code, count in waiting_by_code(snapshot, plan).items()},
        table.NODES: _nodes(every, let_go, pools),
        table.GPUS: _gpus(every, pools),
        table.COST: _cost(every, let_go),
        table.PLANNED_COST: _planned_cost(plan.packing),
        table.LIMIT: {(use.node_pool, use.resource): _natural(use.resource, use.limit) for use in own_limits},
        table.USAGE: {(use.node_pool, use.resource): _natural(use.resource, use.used) for use in own_limits},
        table.ALLOWED: _allowed(every, let_go, policy, rules, plan),
        table.UNAVAILABLE: _unavailable(plan),
        table.UNAVAILABLE_GROUPS: {
            (name,): 1.0 for name, each in plan.ledger.unavailable_groups.items() if each.until > plan.decided_at
        },
        table.PAUSED: _paused(snapshot, plan, policy),
    }


def idle_gpus(samples: Samples) -> dict[str, float]:
    """GPUs by pool that are paid for and that nobody has asked for."""
    return {pool: count for (pool, state), count in samples[table.GPUS].items() if state == "idle"}


def _let_go(snapshot: Snapshot) -> list[LetGo]:
    """Machines that no claim desires any more and that still run."""
    running = {each.claim: each for each in snapshot.cloud.instances if each.is_alive}
    records = snapshot.document.removals if snapshot.document is not None else ()
    return [(record, running[record.claim].capacity_type) for record in records if record.claim in running]


def _pools(every: Sequence[Standing], let_go: Sequence[LetGo], policy: Policy | None) -> list[str]:
    declared = {pool.name for pool in policy.node_pools} if policy is not None else set()
    return sorted(declared | {one.claim.node_pool for one in every} | {record.node_pool for record, _ in let_go})


def _nodes(every: Sequence[Standing], let_go: Sequence[LetGo], pools: Sequence[str]) -> dict[tuple[str, ...], float]:
    counts: dict[tuple[str, ...], float] = {(pool, phase.value): 0 for pool in pools for phase in NodePhase}
    for one in every:
        counts[one.claim.node_pool, one.phase.value] += 1
    for record, _ in let_go:
        counts[record.node_pool, NodePhase.LEAVING.value] += 1
    return counts


def _gpus(every: Sequence[Standing], pools: Sequence[str]) -> dict[tuple[str, ...], float]:
    counts: dict[tuple[str, ...], float] = {
        (pool, state): 0 for pool in pools for state in ("used", "idle", "starting")
    }
    for one in every:
        pool = one.claim.node_pool
        if one.phase in _SERVING:
            counts[pool, "used"] += one.accelerators_used
            counts[pool, "idle"] += max(one.advertised - one.accelerators_used, 0)
        elif one.is_in_flight:
            counts[pool, "starting"] += one.accelerators
    return counts


def _cost(every: Sequence[Standing], let_go: Sequence[LetGo]) -> dict[tuple[str, ...], float]:
    micros: dict[tuple[str, ...], int] = defaultdict(int)
    for one in every:
        micros[one.claim.node_pool, one.claim.inputs.capacity_type] += one.claim.usd_per_hour.micros
    for record, capacity_type in let_go:
        micros[record.node_pool, capacity_type] += record.usd_per_hour.micros
    return {of: amount / _MICROS for of, amount in micros.items()}


def _planned_cost(packing: PackingBound | None) -> dict[tuple[str, ...], float]:
    if packing is None:
        return {}
    amounts = {"planned": packing.cost, **({"least": packing.lower_bound} if packing.gap is not None else {})}
    return {(amount,): cost.micros / _MICROS for amount, cost in amounts.items()}


def _natural(resource: str, amount: int) -> float:
    return amount / _MILLICORES if resource == CPU else float(amount)


def _allowed(
    every: Sequence[Standing],
    let_go: Sequence[LetGo],
    policy: Policy | None,
    rules: BudgetRules | None,
    plan: Plan,
) -> dict[tuple[str, ...], float]:
    allowed: dict[tuple[str, ...], float] = {}
    now = plan.decided_at
    going = going_by(plan, {one.claim.name for one in every if one.phase is not NodePhase.READY})
    for pool in policy.node_pools if policy is not None else ():
        own = [one for one in every if one.claim.node_pool == pool.name and one.node is not None]
        gone = sum(record.node_pool == pool.name for record, _ in let_go)
        serving = sum(one.phase is NodePhase.READY for one in own)
        base = len(own) + gone
        gpus = sum(one.accelerators for one in own) + sum(
            gpu_count(record.capacity) for record, _ in let_go if record.node_pool == pool.name
        )
        standing = PoolStanding(pool=pool, base=base, out=base - serving, serving=serving, gpus=gpus)
        asked = rules.on(standing) if rules is not None else ()
        for reason in VOLUNTARY_REASONS:
            about = (rule.said for rule in asked if rule.is_about(reason))
            acting = [said for said in (*said_by_pool(pool, reason, base, now), *about) if said.holds]
            out = standing.out + len(going.get(pool.name, ()))
            least = tightest(bound for said in acting for bound in bounds(said, out))
            left = base - out
            allowed[pool.name, reason.value] = left if least is None else min(least.left, left)
    return allowed


def _unavailable(plan: Plan) -> dict[tuple[str, ...], float]:
    counts: dict[tuple[str, ...], float] = defaultdict(int)
    for offering, unavailable in plan.ledger.unavailable.items():
        if unavailable.until > plan.decided_at:
            counts[(offering.split("/")[2],)] += 1
    return dict(counts)


def _paused(snapshot: Snapshot, plan: Plan, policy: Policy | None) -> dict[tuple[str, ...], float]:
    whole: dict[tuple[str, ...], float] = {("",): float(bool(plan.paused or snapshot.paused))}
    pools = policy.node_pools if policy is not None else ()
    return {**whole, **{(pool.name,): float(bool(pool.paused)) for pool in pools}}
