"""``nodewright plan``: what a pass would do and what it costs, and why it would not do the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.terminal import EnvironmentArgument, ExitCode, Output, OutputOption, out, told_of_faults
from engine.model.fault import Fault


def plan(
    context: typer.Context,
    environment: EnvironmentArgument,
    output: OutputOption = Output.TEXT,
    details: Annotated[bool, typer.Option("--details", help="Every node and pod by name.")] = False,
    from_snapshot: Annotated[
        Path | None, typer.Option("--snapshot", help="Decide on a recorded snapshot; touches no cluster, pins nothing.")
    ] = None,
    at: Annotated[str, typer.Option("--at", help="With --snapshot: as if it were taken then, 2026-12-01T02:00.")] = "",
) -> None:
    """Show the priced plan and keep it for `up --plan HASH`. Exit 0 nothing to do, 2 changes pending, 1 failed."""
    with told_of_faults():
        from engine.cli.calendar import moment_of
        from engine.reconcile.planning import plan_from_snapshot, plan_now
        from engine.reconcile.workspace import find_workspace

        moment = moment_of(at) if at else None
        if moment is not None and from_snapshot is None:
            raise Fault("--at is for a recorded snapshot", "add --snapshot FILE; a plan of now is for now")
        workspace = find_workspace(context.obj)
        if from_snapshot is not None:
            planned = plan_from_snapshot(workspace, environment, from_snapshot, moment)
        else:
            planned = plan_now(workspace, environment)
        if output is Output.JSON:
            from engine.report.json_report import plan_json

            typer.echo(plan_json(planned.proposal.plan, planned.recorded_at))
        else:
            from engine.cli.screens import render_proposal

            out().print(render_proposal(planned, details=details))
        if planned.proposal.failures:
            raise typer.Exit(ExitCode.FAILED)
        if planned.proposal.needs_converging:
            raise typer.Exit(ExitCode.PENDING)
