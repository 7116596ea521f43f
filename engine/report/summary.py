"""One pass in one line, for schedulers' logs, and in one JSON object, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum

from attrs import field, frozen

from engine.model.canonical import to_plain
from engine.model.eviction import RefusedEviction
from engine.model.money import FREE, UsdPerHour
from engine.model.plan import Plan, RemovalPhase
from engine.model.snapshot import Snapshot
from engine.report.tables import short_hash
from engine.report.waiting import refused_by_code
from engine.report.words import counted, signed

# A field that changes its meaning or goes makes a new version; a new field does not.
PASS_SCHEMA = "nodewright.dev/pass/v1"
_CODES_SHOWN = 3


class PassPhase(str, Enum):
    """How far a pass has come: the world is seen, the plan decided, its document published, Pulumi started, and
    RunInstances called.
    """

    SEEN = "seen"
    DECIDED = "decided"
    PUBLISHED = "published"
    PULUMI = "pulumi"
    CALLED = "called"


class PassResult(str, Enum):
    """How a pass ended. ``CONVERGED``: the stacks hold what was published, though its machines may still boot;
    ``UNDER_WAY``: published, and a lane still converges; ``STANDBY``: another runner holds the environment;
    ``REFUSED``: AWS refused launches, which the next pass plans around.
    """

    IDLE = "nothing to do"
    CONVERGED = "stacks converged"
    UNDER_WAY = "under way"
    REFUSED = "launches refused"
    PAUSED = "paused"
    STANDBY = "standby"
    NOT_SYNCED = "not synced"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def label(self) -> str:
        """The same in one word, for a metric's label."""
        return self.name.lower().replace("_", "-")


_NOT_ACTING = (PassResult.PAUSED, PassResult.STANDBY)


@frozen
class PassReport:
    """What one pass did. ``seconds`` are by ``PassPhase`` value, from the pass's begin until it had come so far; a
    phase that it did not come to is left out. ``total_seconds`` is the whole pass.

    ``refused`` are pods that got nothing, by refusal code; ``waiting`` all pods without a node. ``words`` say more
    about the result: why it is paused, what failed. ``refused_evictions`` are the pods that hold nodes which
    are to leave.
    """

    pass_id: str
    environment: str
    started_at: datetime
    result: PassResult
    words: str = ""
    plan_hash: str = ""
    seconds: Mapping[str, float] = field(factory=dict)
    total_seconds: float = 0.0
    launches: int = 0
    drains: int = 0
    removals: int = 0
    waiting: int = 0
    refused: Mapping[str, int] = field(factory=dict)
    usd_per_hour_before: UsdPerHour = FREE
    usd_per_hour_after: UsdPerHour = FREE
    refused_evictions: tuple[RefusedEviction, ...] = ()

    @property
    def needs_a_person(self) -> bool:
        """Whether a scheduler should ring: a launch that AWS refused is a result, not an error."""
        return self.result is PassResult.FAILED


def report_of(
    pass_id: str,
    started_at: datetime,
    snapshot: Snapshot,
    plan: Plan,
    result: PassResult,
    *,
    words: str = "",
    seconds: Mapping[str, float] | None = None,
    total_seconds: float = 0.0,
    refused_evictions: tuple[RefusedEviction, ...] = (),
) -> PassReport:
    """The report of a pass that came as far as a plan, its counts taken from the plan."""
    draining = sum(removal.phase is RemovalPhase.MARK for removal in plan.removals)
    return PassReport(
        pass_id=pass_id,
        environment=plan.environment,
        started_at=started_at,
        result=result,
        words=words,
        plan_hash=plan.hash,
        seconds=dict(seconds or {}),
        total_seconds=total_seconds,
        launches=len(plan.launches),
        drains=draining,
        removals=len(plan.removals) - draining,
        waiting=len(snapshot.waiting_pods),
        refused=refused_by_code(plan),
        usd_per_hour_before=plan.usd_per_hour_before,
        usd_per_hour_after=plan.usd_per_hour_after,
        refused_evictions=refused_evictions,
    )


def summary_line(report: PassReport) -> str:
    """``sandbox pass 7: stacks converged, 3 launched, 2 pods waiting, 1.24s, +$3.88/h to $15.88/h, plan 9f8e…``."""
    result = f"{report.result.value}: {report.words}" if report.words else report.result.value
    parts = [
        result,
        *_counts(report),
        *([f"{counted(report.waiting, 'pod')} waiting{_refused(report)}"] if report.waiting else []),
        f"{report.total_seconds:.2f}s{_phases(report)}",
    ]
    if report.plan_hash:
        change = report.usd_per_hour_after - report.usd_per_hour_before
        parts += [f"{signed(change)} to {report.usd_per_hour_after}", f"plan {short_hash(report.plan_hash)}"]
    return f"{report.environment} pass {report.pass_id}: {', '.join(parts)}"


def report_json(report: PassReport) -> str:
    """The whole report on one line; ``…usd_per_hour`` keys hold dollars as text."""
    change = report.usd_per_hour_after - report.usd_per_hour_before
    written = {
        "schema": PASS_SCHEMA,
        **to_plain(report),
        "result": report.result.label,
        "change_usd_per_hour": to_plain(change),
        "needs_a_person": report.needs_a_person,
        "summary": summary_line(report),
    }
    return json.dumps(written, ensure_ascii=False)


def _counts(report: PassReport) -> list[str]:
    """What was done; of a pass that may not, what it would have done."""
    launched, draining, removed = "launched", "draining", "removed"
    if report.result in _NOT_ACTING:
        launched, draining, removed = "to launch", "to drain", "to remove"
    counts = ((report.launches, launched), (report.drains, draining), (report.removals, removed))
    return [f"{count} {word}" for count, word in counts if count]


def _refused(report: PassReport) -> str:
    """`` (limit-reached 2, no-type-fits 1)``, the most frequent first."""
    if not report.refused:
        return ""
    most = sorted(report.refused.items(), key=lambda each: (-each[1], each[0]))
    shown = ", ".join(f"{code} {count}" for code, count in most[:_CODES_SHOWN])
    return f" ({shown}{', …' if len(most) > _CODES_SHOWN else ''})"


def _phases(report: PassReport) -> str:
    reached = [
        f"{phase.value} {report.seconds[phase.value]:.2f}s" for phase in PassPhase if phase.value in report.seconds
    ]
    return f" ({', '.join(reached)})" if reached else ""
