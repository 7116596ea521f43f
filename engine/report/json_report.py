"""The same reports for programs: JSON with a schema version; ``…usd_per_hour`` keys hold dollars as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from engine.model.canonical import to_plain
from engine.model.diagnostic import Diagnostic, Severity
from engine.model.money import UsdPerHour, total
from engine.model.outcome import Outcome
from engine.model.packing_bound import PackingBound
from engine.model.plan import Launch, Plan, Removal, RemovalPhase
from engine.model.policy import Policy
from engine.model.refusal import Refusal
from engine.model.snapshot import Snapshot
from engine.model.stay import StayReason
from engine.report.cluster_notes import pause_of
from engine.report.doctor_report import Finding
from engine.report.going import going_plain
from engine.report.idle_reservations import idle_words
from engine.report.milestones import Expected, expectations, steps
from engine.report.pending_words import kept_words
from engine.report.plan_report import plan_line
from engine.report.plan_rules import verdict_words
from engine.report.removal_words import Targets, delete_first_words, removal_lines, targets_of
from engine.report.standing import Standing, standings
from engine.report.stay_words import stay_words
from engine.report.words import limit_unit, refusal_words

# A field that changes its meaning or goes makes a new version; a new field does not.
PLAN_SCHEMA = "nodewright.dev/plan/v1"
STANDING_SCHEMA = "nodewright.dev/status/v1"
DIAGNOSTICS_SCHEMA = "nodewright.dev/diagnostics/v1"
DOCTOR_SCHEMA = "nodewright.dev/doctor/v1"


def plan_json(plan: Plan, recorded_at: datetime | None = None) -> str:
    """A plan with every machine and pod by name, each reason as its code, its numbers and its words.

    ``recorded_at``: when its snapshot was taken, where the plan is of another time.
    """
    now, targets = plan.decided_at, targets_of(plan)
    draining = sum(removal.phase is RemovalPhase.MARK for removal in plan.removals)
    return _written(
        {
            "schema": PLAN_SCHEMA,
            "environment": plan.environment,
            "hash": plan.hash,
            "decided_at": to_plain(now),
            **({"recorded_at": to_plain(recorded_at)} if recorded_at is not None else {}),
            "base_version": plan.base_version,
            "policy_digest": plan.policy_digest,
            "catalog_digest": plan.catalog_digest,
            "is_empty": plan.is_empty,
            "summary": plan_line(plan),
            "totals": {
                "launches": len(plan.launches),
                "drains": draining,
                "removals": len(plan.removals) - draining,
                "kept": len(plan.kept),
                "placed_pods": len(plan.placements) + sum(len(launch.pods) for launch in plan.launches),
                "blocked_pods": len(plan.unplaced),
            },
            "before_usd_per_hour": _dollars(plan.usd_per_hour_before),
            "after_usd_per_hour": _dollars(plan.usd_per_hour_after),
            "change_usd_per_hour": _dollars(plan.usd_per_hour_after - plan.usd_per_hour_before),
            "packing": _packing(plan.packing) if plan.packing is not None else None,
            "foundation_changes": plan.foundation_changes,
            "repriced": list(plan.repriced),
            "launches": [_launch(launch) for launch in plan.launches],
            "removals": [_removal(removal, targets, now) for removal in plan.removals],
            "kept": [
                {**to_plain(kept), "reason": _reason(kept.reason, now), "words": kept_words(kept, now)}
                for kept in plan.kept
            ],
            "placements": [{"pod": str(each.pod), "node": each.node, "claim": each.claim} for each in plan.placements],
            "unplaced": [
                {
                    "pod": str(each.pod),
                    "refusals": [
                        {"node_pool": refused.node_pool, **_reason(refused.refusal, now)} for refused in each.refusals
                    ],
                }
                for each in plan.unplaced
            ],
            "base_shortfalls": [
                {**to_plain(short), "refusal": _reason(short.refusal, now)} for short in plan.base_shortfalls
            ],
            "headroom": [
                {**to_plain(use), "refusals": [_reason(refusal, now) for refusal in use.refusals]}
                for use in plan.headroom
            ],
            "limits": [{**to_plain(use), "unit": limit_unit(use)} for use in plan.limits],
            "verdicts": [{**to_plain(each), "words": verdict_words(each)} for each in plan.verdicts],
            "idle_reservations": [{**to_plain(each), "words": idle_words(each)} for each in plan.idle_reservations],
            "paused": plan.paused,
            "nominations": [{"pod": str(each.pod), "node": each.node} for each in plan.nominations],
            "binding_differences": [
                {"pod": str(each.pod), "planned": each.planned, "node": each.node} for each in plan.binding_differences
            ],
        }
    )


def _packing(packing: PackingBound) -> dict[str, Any]:
    is_proven = packing.gap is not None
    return {
        "cost_usd_per_hour": _dollars(packing.cost),
        "lower_bound_usd_per_hour": _dollars(packing.lower_bound) if is_proven else None,
        "apart_usd_per_hour": _dollars(packing.apart),
        "gap": round(packing.gap, 6) if packing.gap is not None else None,
    }


def standing_json(snapshot: Snapshot, policy: Policy, outcome: Outcome | None, plan: Plan | None = None) -> str:
    """What stands: each claim of the published document, the pods that wait, the last outcome."""
    ledger = plan.ledger if plan is not None else snapshot.ledger
    every = standings(snapshot, ledger)
    expected = expectations(ledger, every)
    document = snapshot.document
    return _written(
        {
            "schema": STANDING_SCHEMA,
            "environment": snapshot.environment,
            "taken_at": to_plain(snapshot.taken_at),
            "version": document.version if document is not None else 0,
            "policy_digest": policy.digest,
            "total_usd_per_hour": _dollars(total(one.claim.usd_per_hour for one in every)),
            "paused": pause_of(snapshot, plan),
            "paused_pools": {pool.name: pool.paused for pool in policy.node_pools if pool.paused},
            "karpenter": to_plain(snapshot.karpenter),
            "nodes": [standing_of(one, expected, snapshot.taken_at) for one in every],
            "going": going_plain(plan, snapshot) if plan is not None else None,
            "waiting_pods": sorted(str(pod.key) for pod in snapshot.pods if pod.is_waiting),
            "problems": [str(problem) for problem in snapshot.problems],
            "last_outcome": to_plain(outcome) if outcome is not None else None,
        }
    )


def diagnostics_json(findings: Iterable[Diagnostic]) -> str:
    """Findings in files, each with its place."""
    every = tuple(findings)
    return _written(
        {
            "schema": DIAGNOSTICS_SCHEMA,
            "errors": sum(finding.severity is Severity.ERROR for finding in every),
            "warnings": sum(finding.severity is Severity.WARNING for finding in every),
            "findings": [
                {
                    "severity": finding.severity.value,
                    "rule": finding.rule,
                    "message": finding.message,
                    "hint": finding.hint,
                    "file": finding.position.file,
                    "line": finding.position.line,
                    "column": finding.position.column,
                }
                for finding in every
            ],
        }
    )


def doctor_json(findings: Iterable[Finding]) -> str:
    """What was found, and what to do about it."""
    return _written(
        {
            "schema": DOCTOR_SCHEMA,
            "findings": [
                {
                    "name": finding.name,
                    "state": finding.state.value,
                    "detail": finding.detail,
                    "hint": finding.hint,
                }
                for finding in findings
            ],
        }
    )


def _written(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=2, ensure_ascii=False)


def _dollars(price: UsdPerHour) -> str:
    text: str = to_plain(price)
    return text


def _reason(reason: Refusal | StayReason, now: datetime) -> dict[str, Any]:
    words = stay_words(reason, now) if isinstance(reason, StayReason) else refusal_words(reason, now)
    return {"code": reason.code, "words": words, **to_plain(reason)}


def _launch(launch: Launch) -> dict[str, Any]:
    claim = launch.claim
    return {
        "claim": claim.name,
        "node_pool": claim.node_pool,
        "node_class": claim.node_class,
        "instance_type": claim.inputs.instance_type,
        "zone": claim.inputs.zone,
        "capacity_type": claim.inputs.capacity_type,
        "capacity_reservation": claim.inputs.capacity_reservation_id,
        "usd_per_hour": _dollars(claim.usd_per_hour),
        "reason": launch.reason.value,
        "pods": [str(pod) for pod in launch.pods],
        "replaces": list(claim.replaces),
        "displaced_pods": [str(pod) for pod in launch.displaced],
        "runners_up": [to_plain(lost) for lost in launch.lost],
        "gpus_wasted": launch.gpus_wasted,
        "relaxed_min_values": [to_plain(each) for each in launch.relaxed],
    }


def _removal(removal: Removal, targets: Targets, now: datetime) -> dict[str, Any]:
    """``pods`` are asked to leave now; ``moves`` all that leave by this removal, with where they go as far as that is
    known. ``words`` are the lines that the plan's screen has."""
    moving = dict.fromkeys((*removal.pods, *(each.pod for each in removal.forced), *(at.pod for at in removal.places)))
    first = removal.delete_first
    return {
        **to_plain(removal.record),
        "phase": removal.phase.value,
        "pods": [str(pod) for pod in removal.pods],
        "forced": [{**to_plain(each), "pod": str(each.pod)} for each in removal.forced],
        "places": [{"pod": str(each.pod), "node": each.node, "claim": each.claim} for each in removal.places],
        "saving_usd_per_hour": _dollars(removal.saving) if removal.saving is not None else None,
        "moves": [{"pod": str(pod), "to": targets.get(pod) or None} for pod in moving],
        "delete_first": {**to_plain(first), "words": delete_first_words(removal, now)} if first is not None else None,
        "words": removal_lines(removal, targets, now, every=True),
        "drained_by": to_plain(removal.drained_by),
    }


def standing_of(one: Standing, expected: Expected, now: datetime) -> dict[str, Any]:
    """One machine: ``milestones`` are moments; ``steps`` the seconds that each took, takes and usually takes."""
    claim = one.claim
    return {
        "claim": claim.name,
        "node_pool": claim.node_pool,
        "instance_type": claim.inputs.instance_type,
        "zone": claim.inputs.zone,
        "capacity_type": claim.inputs.capacity_type,
        "stack": claim.stack,
        "usd_per_hour": _dollars(claim.usd_per_hour),
        "state": one.state,
        "phase": one.phase.value,
        "instance_id": one.instance_id or None,
        "node": one.node,
        "accelerators": one.accelerators,
        "accelerators_used": one.accelerators_used,
        "pods": one.pods,
        "milestones": to_plain(one.milestones),
        "steps": {
            step.stage.value: {
                "took_seconds": _seconds(step.took),
                "elapsed_seconds": _seconds(step.elapsed),
                "expected_seconds": _seconds(step.expected),
            }
            for step in steps(one, expected, now)
        },
    }


def _seconds(duration: timedelta | None) -> float | None:
    return duration.total_seconds() if duration is not None else None
