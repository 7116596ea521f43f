"""``nodewright check``: every fault of the policy and stack files at once."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.terminal import ExitCode, out, told_of_faults
from engine.model.diagnostic import Severity


class CheckOutput(str, Enum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def check(
    context: typer.Context,
    environments: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV]...", help="Environments to check; all by default.")
    ] = None,
    output: Annotated[
        CheckOutput,
        typer.Option("--output", "-o", help="text for people, json for programs, github for a pull request's lines."),
    ] = CheckOutput.TEXT,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
    snapshot: Annotated[
        Path | None, typer.Option("--snapshot", help="Hold this snapshot's autoscalers against the pools' limits.")
    ] = None,
    workloads: Annotated[
        list[Path] | None, typer.Option("--workloads", help="The same of manifests or folders of them; repeatable.")
    ] = None,
) -> None:
    """Check policy and stack files: all findings with file, line and column. Exit 0 valid, 2 invalid, 1 failed."""
    with told_of_faults():
        from engine.reconcile.checking import check_environments
        from engine.reconcile.scale_checking import ScaleSources
        from engine.reconcile.workspace import find_workspace

        scaled = ScaleSources(snapshot, tuple(workloads or ()))
        workspace = find_workspace(context.obj)
        findings, checked = check_environments(workspace, tuple(environments or ()), scaled)
        if output is CheckOutput.JSON:
            from engine.report.json_report import diagnostics_json

            typer.echo(diagnostics_json(findings))
        elif output is CheckOutput.GITHUB:
            from engine.report.github_report import github_commands

            # Where a workflow has checked the repository out: findings name their files from there.
            checkout = os.environ.get("GITHUB_WORKSPACE")
            typer.echo(github_commands(findings, workspace.folder_in(Path(checkout)) if checkout else ""), nl=False)
        else:
            from engine.report.diagnostics_report import render_diagnostics

            out().print(render_diagnostics(findings, checked))
        failing = (Severity.ERROR, Severity.WARNING) if strict else (Severity.ERROR,)
        if any(finding.severity in failing for finding in findings):
            raise typer.Exit(ExitCode.INVALID)
