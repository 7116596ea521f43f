"""What autoscalers promise and pools cannot keep, in words: a finding of ``nodewright check`` each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from engine.decide.scale_ceilings import (
    BaseBelowMinReplicas,
    CeilingFinding,
    FakeScaling,
    FakeScalingTogether,
    NoPoolAdmits,
    PoolHold,
)
from engine.model.diagnostic import Diagnostic, Severity
from engine.model.quantity import NODES
from engine.model.refusal import PoolRefusal
from engine.report.words import counted, refusal_words, rounded_words

_CEILING_FIELDS = {"ScaledObject": "maxReplicaCount"}
_FLOOR_FIELDS = {"ScaledObject": "minReplicaCount"}
_SHOWN_REFUSALS = 6
# No refusal of an empty pool speaks of time.
_ANY_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)


def scale_diagnostics(findings: Iterable[CeilingFinding], environment: str = "") -> tuple[Diagnostic, ...]:
    """Warnings all: the cluster may hold nodes of others. The environment is named where one is given."""
    return tuple(_diagnostic(finding, f" (in {environment})" if environment else "") for finding in findings)


def _diagnostic(finding: CeilingFinding, where: str) -> Diagnostic:
    match finding:
        case FakeScaling(workload=workload):
            rule, position, message, hint = "fake-scaling", workload.position, *_fake(finding)
        case FakeScalingTogether(pools=pools):
            rule, position = "fake-scaling-together", pools[0].position_of("limits")
            message, hint = _fake_together(finding)
        case BaseBelowMinReplicas(pool=pool):
            rule, position, message, hint = "base-below-min-replicas", pool.position, *_below_base(finding)
        case NoPoolAdmits(workload=workload):
            rule, position, message, hint = "no-pool-admits", workload.position, *_unadmitted(finding)
    return Diagnostic(Severity.WARNING, rule, message + where, position, hint)


def _fake(finding: FakeScaling) -> tuple[str, str]:
    workload, resources = finding.workload, {hold.resource for hold in finding.pools}
    each = workload.pod.requests.amount(min(resources))
    if len(resources) == 1 and each:
        resource = min(resources)
        asked = rounded_words(resource, each * workload.max_replicas)
        goal = f"{workload.max_replicas:,} replicas x {rounded_words(resource, each)} {resource} = {asked}"
        limits = [f"{hold.node_pool} (limit {rounded_words(resource, hold.limit)})" for hold in finding.pools]
        held = rounded_words(resource, each * finding.held)
    else:
        goal = counted(workload.max_replicas, "replica")
        limits = [_limited(hold) for hold in finding.pools]
        held = f"{finding.held:,}"
    pools = (
        f"reachable pools {_listed(limits)} hold" if len(limits) > 1 else f"the only reachable pool {limits[0]} holds"
    )
    message = (
        f"{workload} may scale to {goal}; {pools} {held}:"
        f" {counted(finding.pending, 'replica')} can only ever be Pending"
    )
    raise_limits = "raise a pool's limits, in its file or in nodewright:limits"
    ceiling = _CEILING_FIELDS.get(workload.scaled_by, "maxReplicas")
    return message, f"{raise_limits}, or lower {ceiling} to {finding.held}" if finding.held else raise_limits


def _limited(hold: PoolHold) -> str:
    limit = rounded_words(hold.resource, hold.limit)
    return f"{hold.node_pool} (limit {limit} {hold.resource}: {counted(hold.replicas or 0, 'replica')})"


def _fake_together(finding: FakeScalingTogether) -> tuple[str, str]:
    ceilings = _listed([f"{each} ({counted(each.max_replicas, 'replica')})" for each in finding.workloads])
    needed, limit = (rounded_words(finding.resource, amount) for amount in (finding.needed, finding.limit))
    least = "at least " if finding.resource == NODES else ""
    pools = f"{'pools' if len(finding.pools) > 1 else 'pool'} but {_listed([pool.name for pool in finding.pools])}"
    message = (
        f"{ceilings} reach no {pools}, and may scale to {least}{needed} {finding.resource} together;"
        f" limits of {limit} hold no more: what is beyond can only ever be Pending"
    )
    return message, "raise the limits, or lower the ceilings until their sum fits"


def _below_base(finding: BaseBelowMinReplicas) -> tuple[str, str]:
    pool, least = finding.pool, "at least " if finding.is_least else ""
    floors = _listed([f"{each} ({each.min_replicas:,})" for each in finding.workloads])
    message = (
        f"{pool.name} always keeps {counted(pool.base_nodes, 'node')}; the fewest replicas of {floors},"
        f" whose pods can go nowhere else, need {least}{counted(finding.needed, 'node')}"
    )
    field = "spec.replicas" if pool.is_static else "nodewright.dev/min-nodes"
    fields = sorted({_FLOOR_FIELDS.get(each.scaled_by, "minReplicas") for each in finding.workloads})
    return message, f"set {field} to {finding.needed}, or lower {' and '.join(fields)}"


def _unadmitted(finding: NoPoolAdmits) -> tuple[str, str]:
    workload = finding.workload
    told = [_refusal(each) for each in finding.refusals[:_SHOWN_REFUSALS]]
    more = len(finding.refusals) - len(told)
    rest = f"; and {counted(more, 'further pool')}" if more else ""
    message = (
        f"{workload} may scale to {counted(workload.max_replicas, 'replica')}, and no pool makes a node for its pods:"
        f" {'; '.join(told)}{rest}"
    )
    return (
        message,
        "change the pods' requests, selectors or tolerations, or a pool; nodes of others may still take them",
    )


def _refusal(refused: PoolRefusal) -> str:
    words = refusal_words(refused.refusal, _ANY_MOMENT)
    return f"{refused.node_pool}: {words}" if refused.node_pool else words


def _listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
