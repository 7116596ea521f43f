"""One recorded moment decided by two policies, and all that differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from engine.decide import decide
from engine.decide.offered import Offered, is_placeable
from engine.decide.question import see
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.diagnostic import Diagnostic
from engine.model.document import Foundation
from engine.model.environment import Environment
from engine.model.money import UsdPerHour, total
from engine.model.plan import Kept, Plan, Removal, RemovalPhase, Unplaced, Verdict, VerdictOutcome
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.rule import Enforcement, LimitedResource, RuleKind
from engine.model.snapshot import Snapshot
from engine.model.stay import InUse
from engine.policy.facts.values import gpu_count
from engine.reconcile.diffing_classes import Workloads, class_differences
from engine.report.diff_report import (
    BlockedDifference,
    Both,
    CeilingChange,
    ErrorsDifference,
    HeadroomChange,
    KeptDifference,
    MomentDifference,
    PoolDifference,
    RemovalDifference,
    VerdictDifference,
)
from engine.report.plan_gaps import blocked_groups
from engine.report.snapshot_words import pod_counts
from engine.report.stay_words import stay_words
from engine.report.words import counted

_REASONS_SHOWN = 3
_HOLDS = "holds"


@frozen(eq=False)
class Loaded:
    """One environment as one side has it, with what `check` finds that is no error."""

    environment: Environment
    policy: Policy
    catalog: Catalog
    findings: tuple[Diagnostic, ...] = ()


@frozen
class Recorded:
    """A moment to decide on. ``note`` says what it is where nobody recorded it."""

    label: str
    snapshot: Snapshot
    note: str = ""


def moment_difference(base: Loaded, head: Loaded, recorded: Recorded) -> MomentDifference:
    """Decides twice. Pure, whatever the snapshot says of clusters and accounts."""
    snapshot = recorded.snapshot
    pods = tuple(pod for pod in snapshot.pods if is_placeable(pod))
    plans = Both(_decided(base, snapshot), _decided(head, snapshot))
    offered = Both(_offered(base, snapshot, pods), _offered(head, snapshot, pods))
    after = Both(_after(plans.base), _after(plans.head))
    workloads = Workloads(snapshot)
    return MomentDifference(
        environment=head.environment.name,
        snapshot=recorded.label,
        note="; ".join(filter(None, (recorded.note, _without_images(base, head, snapshot)))),
        taken_at=snapshot.taken_at,
        nodes=len(tuple(snapshot.document.claims)) if snapshot.document is not None else 0,
        pods=pod_counts(snapshot.pods),
        launches=Both(len(plans.base.launches), len(plans.head.launches)),
        removals=Both(len(plans.base.removals), len(plans.head.removals)),
        usd_per_hour=Both(_cost(after.base), _cost(after.head)),
        pools=tuple(_pools(after, base.policy, head.policy)),
        ceilings=tuple(_ceilings(plans)),
        headroom=tuple(_headroom(plans)),
        classes=class_differences(offered.base, offered.head, pods, workloads),
        blocked=(
            *_blocked(plans.head.unplaced, plans.base.unplaced, workloads, snapshot, is_new=True),
            *_blocked(plans.base.unplaced, plans.head.unplaced, workloads, snapshot, is_new=False),
        ),
        removed=tuple(_removed(plans, snapshot)),
        kept=tuple(_kept(plans, snapshot)),
        verdicts=tuple(_verdicts(plans)),
        errors=tuple(_errors(offered, pods)),
        foundation_differs=_foundations_differ(plans.base.document.foundation, plans.head.document.foundation),
    )


def _without_images(base: Loaded, head: Loaded, snapshot: Snapshot) -> str:
    """That pools launch nothing on a side for want of what the moment does not show: images of their node class."""
    found = {name for name, images in snapshot.cloud.images.items() if images}
    lacking: dict[str, set[str]] = {}
    for pool in (*base.policy.node_pools, *head.policy.node_pools):
        if pool.node_class not in found:
            lacking.setdefault(pool.node_class, set()).add(pool.name)
    return "; ".join(
        f"the snapshot has no images of EC2NodeClass {name}, so {', '.join(sorted(pools))} can launch nothing here: "
        "record it anew with the class in the policy"
        for name, pools in sorted(lacking.items())
    )


def _decided(side: Loaded, snapshot: Snapshot) -> Plan:
    return decide(snapshot, side.policy, side.catalog, side.environment)


def _offered(side: Loaded, snapshot: Snapshot, pods: tuple[Pod, ...]) -> Offered:
    return Offered(see(snapshot, side.policy, side.catalog, side.environment), pods)


def _after(plan: Plan) -> tuple[Claim, ...]:
    """The machines once the plan is done to its end: what it only begins to drain has left too."""
    draining = {each.record.claim for each in plan.removals if each.phase is RemovalPhase.MARK}
    return tuple(claim for claim in plan.document.claims if claim.name not in draining)


def _cost(claims: Iterable[Claim]) -> UsdPerHour:
    return total(claim.usd_per_hour for claim in claims)


def _foundations_differ(base: Foundation, head: Foundation) -> bool:
    """Whether network or roles differ, or what a pool boots does: templates that one plan has no need of do not."""
    if evolve(base, launch_templates=()) != evolve(head, launch_templates=()):
        return True
    old, new = _templates(base), _templates(head)
    return any(not (old[pool] <= new[pool] or new[pool] <= old[pool]) for pool in old.keys() & new.keys())


def _templates(foundation: Foundation) -> Mapping[str, set[str]]:
    """Their names, which tell their contents, by pool."""
    found: dict[str, set[str]] = {}
    for template in foundation.launch_templates:
        found.setdefault(template.node_pool, set()).add(template.name)
    return found


def _pools(after: Both[tuple[Claim, ...]], base: Policy, head: Policy) -> Iterable[PoolDifference]:
    """Every pool of either side's files, and those that only machines are of."""
    claims = Both(_by_pool(after.base), _by_pool(after.head))
    declared = Both({pool.name for pool in base.node_pools}, {pool.name for pool in head.node_pools})
    for name in sorted(declared.base | declared.head | claims.base.keys() | claims.head.keys()):
        old, new = claims.base.get(name, []), claims.head.get(name, [])
        yield PoolDifference(
            name=name,
            nodes=Both(len(old), len(new)),
            gpus=Both(_gpus(old), _gpus(new)),
            usd_per_hour=Both(_cost(old), _cost(new)),
            there=Both(name in declared.base, name in declared.head),
        )


def _by_pool(claims: Iterable[Claim]) -> Mapping[str, list[Claim]]:
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        found.setdefault(claim.node_pool, []).append(claim)
    return found


def _gpus(claims: Iterable[Claim]) -> int:
    return sum(gpu_count(claim.capacity) for claim in claims)


def _ceilings(plans: Both[Plan]) -> Iterable[CeilingChange]:
    old, new = (
        {(use.rule, use.group, use.resource): use for use in plan.limits if use.rule}
        for plan in (plans.base, plans.head)
    )
    for rule, group, resource in sorted(old.keys() | new.keys()):
        before, after = old.get((rule, group, resource)), new.get((rule, group, resource))
        limit = Both(before.limit if before else None, after.limit if after else None)
        use = after or before
        if limit.differs and use is not None:
            yield CeilingChange(rule, group, LimitedResource(resource), limit, use.used)


def _headroom(plans: Both[Plan]) -> Iterable[HeadroomChange]:
    old, new = (
        {(use.node_pool, use.zone, use.resource): (use.spare, use.wanted) for use in plan.headroom}
        for plan in (plans.base, plans.head)
    )
    for where in sorted(old.keys() | new.keys()):
        before, after = old.get(where, (0, 0)), new.get(where, (0, 0))
        if before != after:
            yield HeadroomChange(*where, spare=Both(before[0], after[0]), wanted=Both(before[1], after[1]))


def _blocked(
    blocked: Iterable[Unplaced], other: Iterable[Unplaced], workloads: Workloads, snapshot: Snapshot, *, is_new: bool
) -> Iterable[BlockedDifference]:
    """Pods that one side blocks and the other does not."""
    elsewhere = {each.pod for each in other}
    own = tuple(each for each in blocked if each.pod not in elsewhere)
    for reasons, group in blocked_groups(own, snapshot.taken_at):
        told = tuple(f"{', '.join(pools)}: {words}" for pools, words in reasons[:_REASONS_SHOWN])
        yield BlockedDifference(workloads.counted(each.pod for each in group), told, is_new)


def _removed(plans: Both[Plan], snapshot: Snapshot) -> Iterable[RemovalDifference]:
    old, new = ({each.record.claim: each for each in plan.removals} for plan in (plans.base, plans.head))
    claims = snapshot.document.claims if snapshot.document is not None else ()
    types = {claim.name: claim.inputs.instance_type for claim in claims}
    for name in sorted(old.keys() ^ new.keys()):
        yield _removal(new.get(name) or old[name], types.get(name, ""), is_new=name in new)


def _removal(removal: Removal, instance_type: str, *, is_new: bool) -> RemovalDifference:
    record = removal.record
    return RemovalDifference(
        claim=record.claim,
        node_pool=record.node_pool,
        instance_type=instance_type,
        usd_per_hour=record.usd_per_hour,
        reason=record.reason.value,
        rule=record.rule,
        is_new=is_new,
    )


def _kept(plans: Both[Plan], snapshot: Snapshot) -> Iterable[KeptDifference]:
    now = snapshot.taken_at
    old = {each.claim: each for each in plans.base.kept}
    groups: dict[tuple[str, Both[str]], list[str]] = {}
    for each in plans.head.kept:
        before = old.get(each.claim)
        if before is not None and _stays_otherwise(before, each):
            because = Both(stay_words(before.reason, now), stay_words(each.reason, now))
            groups.setdefault((each.node_pool, because), []).append(each.claim)
    for (pool, because), claims in groups.items():
        yield KeptDifference(pool, tuple(sorted(claims)), because)


def _stays_otherwise(before: Kept, after: Kept) -> bool:
    """How many pods a plan has for a machine in use is no other reason for it to stay."""
    if isinstance(before.reason, InUse) and isinstance(after.reason, InUse):
        return False
    return before.reason != after.reason


def _verdicts(plans: Both[Plan]) -> Iterable[VerdictDifference]:
    old, new = ({each.rule: each for each in plan.verdicts} for plan in (plans.base, plans.head))
    for name in sorted(old.keys() | new.keys()):
        said = Both(_said(old.get(name)), _said(new.get(name)))
        verdict = new.get(name) or old[name]
        is_told_as_errors = verdict.kind is RuleKind.REQUIREMENT_RULE and verdict.enforcement is Enforcement.DENY
        # A rule that held and is gone, or is new and holds, changes no plan: the definitions tell of it.
        has_held = {said.base, said.head} <= {"", _HOLDS}
        if said.differs and not (is_told_as_errors or has_held):
            yield VerdictDifference(name, verdict.kind, verdict.enforcement, said)


def _said(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    if verdict.outcome is VerdictOutcome.HOLDS:
        return _HOLDS
    if verdict.outcome is VerdictOutcome.ERROR:
        said = f"cannot be evaluated: {verdict.error}"
    elif verdict.pods:
        said = f"would keep {counted(verdict.pods, 'pod')} from {counted(verdict.types, 'type')}: {verdict.message}"
    else:
        said = verdict.message
    blocked = ", ".join(each.value for each in verdict.blocked)
    return f"blocks {blocked}: {said}" if blocked else said


def _errors(offered: Both[Offered], pods: tuple[Pod, ...]) -> Iterable[ErrorsDifference]:
    """Of requirement rules; other rules' errors are in their verdicts."""
    old, new = (
        {each.rule.name: each for each in side.eligibility.effects(pods) if each.errors}
        for side in (offered.base, offered.head)
    )
    for name in sorted(old.keys() | new.keys()):
        errors = Both(old[name].errors if name in old else 0, new[name].errors if name in new else 0)
        if errors.differs:
            yield ErrorsDifference(name, errors, (new.get(name) or old[name]).sample)
