"""``nodewright doctor``: what is here, what is missing and what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.terminal import ExitCode, Output, OutputOption, out, progress_line, told_of_faults


def doctor(
    context: typer.Context,
    output: OutputOption = Output.TEXT,
    install: Annotated[bool, typer.Option("--install", help="Fetch or build the Pulumi CLI if it is missing.")] = False,
    every: Annotated[
        bool, typer.Option("--all", help="With --install: also build the control plane and the Kubernetes provider.")
    ] = False,
) -> None:
    """Say which Pulumi, plugins and sandbox were found. Exit 0 when an environment can converge, else 1."""
    with told_of_faults():
        from engine.reconcile.diagnosis import Install, diagnose
        from engine.reconcile.workspace import find_workspace

        if every and not install:
            raise typer.BadParameter("--all goes with --install")
        wanted = Install.ALL if every else Install.PULUMI if install else Install.NOTHING
        findings, is_healthy = diagnose(find_workspace(context.obj), progress_line, wanted)
        if output is Output.JSON:
            from engine.report.json_report import doctor_json

            typer.echo(doctor_json(findings))
        else:
            from engine.report.doctor_report import render_doctor

            out().print(render_doctor(findings))
        if not is_healthy:
            raise typer.Exit(ExitCode.FAILED)
