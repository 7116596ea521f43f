"""What commands put on the screen, from the values of a pass."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.model.snapshot import Snapshot
from engine.reconcile import passes
from engine.reconcile.planning import Planned
from engine.reconcile.ports import Ports
from engine.reconcile.up import Ending
from engine.report.snapshot_words import moved_words

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def render_proposal(planned: Planned, *, details: bool = False) -> RenderableType:
    """The plan screen, with the objects that could not be read above it."""
    from rich.console import Group
    from rich.text import Text

    from engine.report.plan_report import render_plan

    proposal = planned.proposal
    problems = [Text(f"skipped {problem}", style="yellow") for problem in proposal.problems]
    failures = [Text(f"error: {failure}", style="bold red") for failure in proposal.failures]
    notes = [Text(note, style="yellow") for note in _notes(planned)]
    plan = render_plan(proposal.plan, proposal.snapshot, planned.policy, planned.catalog, details=details)
    return Group(*failures, *problems, *notes, plan)


def show_standing(ports: Ports, ending: Ending, console: Console, *, as_json: bool) -> None:
    """The node sets, instances and cost that stand at the end of ``up``, or now."""
    snapshot = ending.last.snapshot if ending.last and not ending.changed else passes.observe(ports)[0]
    plan = ending.last.plan if ending.last else None
    if as_json:
        from engine.report.json_report import standing_json

        sys.stdout.write(standing_json(snapshot, ports.policy, ports.store.outcome(), plan) + "\n")
        return
    from engine.report.status_report import render_status

    console.print(render_status(snapshot, ports.policy, ports.catalog, plan))


def _notes(planned: Planned) -> list[str]:
    proposal = planned.proposal
    notes = list(planned.catalog.notes)
    if planned.recorded_at is not None:
        notes.append(moved_words(planned.recorded_at, proposal.snapshot.taken_at))
    if proposal.network_lost:
        notes.append("the environment's own network does not stand in EC2; it will be made")
    elif not proposal.is_settled:
        notes.append(_unsettled(proposal.snapshot))
    return notes


def _unsettled(snapshot: Snapshot) -> str:
    """What a run that was cut short has left to do, which the plan itself does not show: it is decided already."""
    claims = tuple(snapshot.document.claims) if snapshot.document else ()
    version = snapshot.document.version if snapshot.document else 0
    running = {instance.claim for instance in snapshot.cloud.instances if instance.is_alive}
    missing = sum(claim.name not in running for claim in claims)
    left = [f"{missing} of its {len(claims)} machines are still to be launched"] if missing else []
    records = snapshot.document.removals if snapshot.document else ()
    going = sorted(record.claim for record in records if record.claim in running)
    if going:
        left.append(f"{len(going)} that it has let go still run and will be terminated ({', '.join(going[:3])}, …)")
    rest = " and ".join(left) or "all its machines run"
    return f"version {version} of the desired document was not converged to its end: {rest}; this run carries on"
