"""``nodewright up``: converge an environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.terminal import (
    EnvironmentArgument,
    ExitCode,
    Output,
    OutputOption,
    YesOption,
    out,
    progress_line,
    show_fault,
    told_of_faults,
)
from engine.model.fault import Fault

if TYPE_CHECKING:
    from engine.reconcile.up import Ending


def up(
    context: typer.Context,
    environment: EnvironmentArgument,
    yes: YesOption = False,
    plan_hash: Annotated[
        str | None,
        typer.Option("--plan", metavar="HASH", help="Apply exactly the plan of that hash, already reviewed."),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the plan, ask, converge through Pulumi, and show what stands. Exit 0 done or nothing to do, 1 otherwise."""
    with told_of_faults():
        from engine.cli.audience import TerminalAudience
        from engine.cli.install import install_with_the_rest
        from engine.cli.screens import show_standing
        from engine.reconcile import passes
        from engine.reconcile.assembly import assemble
        from engine.reconcile.shell import require_aws_plugin
        from engine.reconcile.up import MOST_PASSES
        from engine.reconcile.up import up as converge
        from engine.reconcile.workspace import find_workspace

        workspace = find_workspace(context.obj)
        require_aws_plugin(workspace.environment(environment), os.environ)
        ports = assemble(workspace, environment)
        reviewed = passes.reviewed_plan(ports, plan_hash) if plan_hash is not None else None
        audience = TerminalAudience(ports, is_approved=yes or reviewed is not None, is_quiet=output is Output.JSON)
        ending = converge(ports, audience, reviewed)
        if not ending.was_approved:
            progress_line("nothing more was changed" if ending.changed else "nothing was changed")
            raise typer.Exit(ExitCode.FAILED)
        show_standing(ports, ending, out(), as_json=output is Output.JSON)
        # A reviewed plan is applied and nothing beyond it.
        is_installed = reviewed is not None or install_with_the_rest(
            workspace, ports.environment, is_approved=yes, is_quiet=output is Output.JSON
        )
        if ending.has_failed and ending.passes == MOST_PASSES:
            progress_line(f"stopped after {MOST_PASSES} passes with more to do; run it again to go on")
        elif not ending.has_failed:
            _tell_what_waits(environment, ending)
        if ending.last and ending.last.failures:
            for failure in ending.last.failures:
                show_fault(Fault(failure, "correct the selector, or tag what it is to match"))
            raise typer.Exit(ExitCode.FAILED)
        if ending.has_failed or not is_installed:
            raise typer.Exit(ExitCode.FAILED)


def _tell_what_waits(environment: str, ending: Ending) -> None:
    """All that could be done by now is done, or the passes of one run are."""
    from engine.report.later_words import later_words

    waits = later_words(ending.last.plan) if ending.last is not None and not ending.last.paused else ""
    if ending.goes_on:
        done = f"{ending.passes} passes are made, and the rollout goes on"
    elif waits:
        done = "nothing more can be done now"
    else:
        return
    told = f": {waits}" if waits else ""
    progress_line(f"{done}{told}; `nodewright run {environment}` or the next `nodewright up {environment}` carries on")
