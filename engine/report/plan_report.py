"""The plan screen: what would happen, why, what it costs, and why the rest would not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.text import Text

from engine.model.catalog import Catalog
from engine.model.duration import format_duration
from engine.model.plan import Plan, RemovalPhase
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.report.affinity_notes import affinity_notes
from engine.report.bound_words import packing_words
from engine.report.cluster_notes import karpenter_notes, paused_notes
from engine.report.idle_reservations import idle_section
from engine.report.plan_changes import kept_section, launches_section, removals_section
from engine.report.plan_gaps import (
    bindings_section,
    blocked_section,
    headroom_section,
    limits_section,
    shortfalls_section,
)
from engine.report.plan_rules import rules_section, verdict_counts
from engine.report.priority_notes import priority_notes
from engine.report.snapshot_words import pod_counts
from engine.report.tables import Screen, short_hash
from engine.report.words import a_month, counted, signed


def render_plan(
    plan: Plan,
    snapshot: Snapshot,
    policy: Policy,
    catalog: Catalog,
    *,
    details: bool = False,
    now: datetime | None = None,
) -> RenderableType:
    """Everything of a plan on one screen; ``details`` names every node and pod. ``now`` is the reader's clock."""
    read_at = now or datetime.now(UTC)
    decided_at = plan.decided_at
    sections = [
        launches_section(plan, catalog.region, details=details),
        removals_section(plan, decided_at, details=details),
        kept_section(plan, decided_at, details=details),
        blocked_section(plan, decided_at, details=details),
        shortfalls_section(plan, decided_at),
        headroom_section(plan, decided_at),
        rules_section(plan),
        bindings_section(plan, details=details),
        limits_section(plan),
        idle_section(plan),
    ]
    lines: list[RenderableType] = [_header(plan, snapshot, policy, catalog, read_at, details=details)]
    lines += [*paused_notes(snapshot, plan), *karpenter_notes(snapshot), *affinity_notes(snapshot)]
    lines += priority_notes(snapshot.workload)
    for section in sections:
        rendered = list(section)
        if rendered:
            lines += [Text(""), *rendered]
    lines += [Text(""), *_ending(plan)]
    return Screen(*lines)


def plan_line(plan: Plan) -> str:
    """The plan in one line: ``Plan: 12 to launch, 1 to remove, 34 kept, +$12.34/h``."""
    draining = sum(removal.phase is RemovalPhase.MARK for removal in plan.removals)
    going = len(plan.removals) - draining
    parts = [
        *([f"{len(plan.launches)} to launch"] if plan.launches else []),
        *([f"{draining} to drain"] if draining else []),
        *([f"{going} to remove"] if going else []),
        *([f"{len(plan.repriced)} to relabel"] if plan.repriced else []),
        *(["foundation to change"] if plan.foundation_changes else []),
    ]
    if plan.is_empty:
        parts = ["nothing to do"]
    parts.append(f"{len(plan.kept)} kept")
    if plan.unplaced:
        parts.append(f"{counted(len(plan.unplaced), 'pod')} blocked")
    parts += verdict_counts(plan)
    parts.append(signed(plan.usd_per_hour_after - plan.usd_per_hour_before))
    return f"Plan: {', '.join(parts)}"


def _header(plan: Plan, snapshot: Snapshot, policy: Policy, catalog: Catalog, now: datetime, *, details: bool) -> Text:
    warnings = f" ({counted(len(policy.warnings), 'warning')})" if policy.warnings else ""
    published = f"version {plan.base_version}" if plan.base_version else "nothing published yet"
    first = Text.assemble(
        (plan.environment, "bold"),
        f"  {published}, {_seen(snapshot.taken_at, now)}: "
        f"{counted(len(snapshot.nodes), 'node')}, {pod_counts(snapshot.pods).words}",
    )
    second = (
        f"plan {short_hash(plan.hash)}  policy {short_hash(plan.policy_digest)}{warnings}  "
        f"prices of {catalog.as_of}, $/h with volumes"
    )
    if details:
        second += f"\nprices from {catalog.source}"
    return first.append("\n").append(second, style="dim")


def _seen(taken_at: datetime, now: datetime) -> str:
    """A time that was supposed may be yet to come."""
    if taken_at > now:
        return f"as of {taken_at:%Y-%m-%d %H:%M} UTC"
    return f"seen {format_duration(now - taken_at)} ago"


def _ending(plan: Plan) -> Iterator[Text]:
    before, after = plan.usd_per_hour_before, plan.usd_per_hour_after
    if plan.placements:
        fit = "fits" if len(plan.placements) == 1 else "fit"
        yield Text(f"{counted(len(plan.placements), 'waiting pod')} {fit} on what is there or coming.")
    if plan.foundation_changes:
        yield Text("The foundation changes: network, roles, queue or launch templates.")
    if plan.repriced:
        yield Text(f"Reservations have ended; on-demand, and billed as such, from now on: {', '.join(plan.repriced)}.")
    if plan.packing is not None:
        yield Text(packing_words(plan))
    if before == after:
        yield Text(f"Cost {after}, about {a_month(after)} a month.")
    else:
        yield Text(f"Cost {before} → {after}, about {a_month(before)} → {a_month(after)} a month.")
    style = "bold" if plan.is_empty else "bold green"
    yield Text(plan_line(plan), style=style)
