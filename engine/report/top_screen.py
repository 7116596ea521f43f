"""The live view: what runs and what it costs, what is on its way, and who waits for what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from engine.model import labels as keys
from engine.model.canonical import to_plain
from engine.model.duration import format_duration
from engine.model.money import total
from engine.model.plan import Plan
from engine.model.pod import PodPhase
from engine.model.snapshot import Snapshot
from engine.report.cluster_notes import karpenter_notes, pause_of, paused_notes
from engine.report.going import going_plain, going_section
from engine.report.json_report import standing_of
from engine.report.milestones import expectations, steps
from engine.report.standing import NodePhase, Standing, standings
from engine.report.status_report import node_sets_table
from engine.report.tables import Screen, heading, indented, table
from engine.report.waiting import WaitingPod, waiting_pods
from engine.report.words import a_month, counted

# A field that changes its meaning or goes makes a new version; a new field does not.
TOP_SCHEMA = "nodewright.dev/top/v1"
_BAR_CELLS = 10
_IN_FLIGHT_SHOWN = 10
_WAITING_SHOWN = 12
_GOING_SHOWN = 8
_OFFERING = (NodePhase.READY, NodePhase.UNREADY, NodePhase.LEAVING)


def top_screen(snapshot: Snapshot, plan: Plan, now: datetime) -> RenderableType:
    """Everything on one screen; ``now`` is the reader's clock."""
    every = standings(snapshot, plan.ledger)
    lines: list[RenderableType] = [*_header(snapshot, plan, every, now)]
    lines += [*paused_notes(snapshot, plan), *karpenter_notes(snapshot)]
    if every:
        region = every[0].claim.labels.get(keys.REGION, "zones")
        lines += [Text(""), heading("Node sets"), indented(node_sets_table(every, region, keeps_bars=True))]
    leaving = going_section(plan, snapshot, most=_GOING_SHOWN)
    for section in (_in_flight(every, plan, now), leaving, _waiting(waiting_pods(snapshot, plan), now)):
        rendered = list(section)
        if rendered:
            lines += [Text(""), *rendered]
    return Screen(*lines)


def top_json(snapshot: Snapshot, plan: Plan, now: datetime) -> str:
    """The same for programs; ages and steps in seconds."""
    every = standings(snapshot, plan.ledger)
    expected = expectations(plan.ledger, every)
    used, offered = _gpus(every)
    running, waiting = _running(snapshot), waiting_pods(snapshot, plan)
    return json.dumps(
        {
            "schema": TOP_SCHEMA,
            "environment": snapshot.environment,
            "taken_at": to_plain(snapshot.taken_at),
            "paused": pause_of(snapshot, plan),
            "problems": [str(problem) for problem in snapshot.problems],
            "total_usd_per_hour": to_plain(total(one.claim.usd_per_hour for one in every)),
            "accelerators_used": used,
            "accelerators_allocatable": offered,
            "running_pods": running,
            "nodes": [standing_of(one, expected, now) for one in every],
            "going": going_plain(plan, snapshot),
            "waiting_pods": [
                {
                    "pod": str(each.pod),
                    "age_seconds": max((now - each.since).total_seconds(), 0.0),
                    "code": each.code,
                    "words": each.words,
                }
                for each in waiting
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


def _header(snapshot: Snapshot, plan: Plan, every: Sequence[Standing], now: datetime) -> Iterator[Text]:
    problems = len(snapshot.problems)
    seen = f"seen {format_duration(now - snapshot.taken_at)} ago"
    synced = Text(f"{counted(problems, 'object')} unreadable", "yellow") if problems else Text("synced", "green")
    paused = Text("  paused", "bold yellow") if pause_of(snapshot, plan) else Text()
    version = f"version {plan.base_version}" if plan.base_version else "nothing published yet"
    yield Text.assemble((snapshot.environment, "bold"), f"  {version}, {seen}  ", synced, paused)
    cost = total(one.claim.usd_per_hour for one in every)
    used, offered = _gpus(every)
    waiting = sum(pod.is_waiting for pod in snapshot.pods)
    yield Text.assemble(
        (str(cost), "bold"),
        f", {a_month(cost)} a month  GPUs {used}/{offered} ",
        _bar(used, offered),
        f"  pods {_running(snapshot):,} running, ",
        (f"{waiting:,} waiting", "yellow" if waiting else ""),
    )


def _in_flight(every: Sequence[Standing], plan: Plan, now: datetime) -> Iterator[RenderableType]:
    """Machines on their way, each with how long its stage has taken and usually takes."""
    coming = [one for one in every if one.is_in_flight]
    if not coming:
        return
    yield heading(f"In flight {counted(len(coming), 'node')}")
    expected = expectations(plan.ledger, every)
    rows = table("node", "type", "state", "until", ">elapsed", ">usual", gives_way=("type",))
    for one in coming[:_IN_FLIGHT_SHOWN]:
        step = next((step for step in steps(one, expected, now) if step.elapsed is not None), None)
        rows.add(
            one.claim.name,
            one.claim.inputs.instance_type,
            one.state,
            step.stage.value if step is not None else "–",
            format_duration(step.elapsed) if step is not None and step.elapsed is not None else "–",
            f"~{format_duration(step.expected)}" if step is not None and step.expected is not None else "–",
        )
    yield indented(rows)
    if len(coming) > _IN_FLIGHT_SHOWN:
        yield indented(Text(f"and {len(coming) - _IN_FLIGHT_SHOWN:,} more", style="dim"))


def _waiting(waiting: Sequence[WaitingPod], now: datetime) -> Iterator[RenderableType]:
    """Pods that wait, the one that waits longest first."""
    if not waiting:
        return
    yield heading(f"Waiting {counted(len(waiting), 'pod')}")
    rows = table("pod", ">age", "reason", "~why")
    for each in waiting[:_WAITING_SHOWN]:
        rows.add(str(each.pod), format_duration(now - each.since), each.code, each.words)
    yield indented(rows)
    if len(waiting) > _WAITING_SHOWN:
        yield indented(Text(f"and {len(waiting) - _WAITING_SHOWN:,} more", style="dim"))


def _gpus(every: Sequence[Standing]) -> tuple[int, int]:
    """Used, and offered to pods by nodes that were initialized once."""
    serving = [one for one in every if one.phase in _OFFERING]
    return sum(one.accelerators_used for one in serving), sum(one.advertised for one in serving)


def _running(snapshot: Snapshot) -> int:
    return sum(pod.phase is PodPhase.RUNNING and not pod.is_daemon for pod in snapshot.pods)


def _bar(used: int, whole: int) -> Text:
    if not whole:
        return Text("░" * _BAR_CELLS, style="dim")
    full = min(_BAR_CELLS, round(used * _BAR_CELLS / whole))
    return Text.assemble(("█" * full, "cyan"), ("░" * (_BAR_CELLS - full), "dim"))
