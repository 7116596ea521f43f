"""``nodewright destroy``: take down all of an environment."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from engine.cli.terminal import EnvironmentArgument, ExitCode, err, out, progress_line, told_of_faults
from engine.model.fault import Fault


def destroy(
    context: typer.Context,
    environment: EnvironmentArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for the environment's name.")] = False,
) -> None:
    """Unprotect and delete everything that the environment's stack holds: instances, templates, roles, network."""
    with told_of_faults():
        from engine.cli.install import remove_before_the_rest
        from engine.reconcile.assembly import assemble
        from engine.reconcile.destroying import destroy as destroy_all
        from engine.reconcile.destroying import what_stands
        from engine.reconcile.installing import is_simulated
        from engine.reconcile.workspace import find_workspace
        from engine.report.outcome_report import render_destruction
        from engine.report.progress import ConvergeProgress

        workspace = find_workspace(context.obj)
        ports = assemble(workspace, environment)
        document, instances = what_stands(ports)
        out().print(render_destruction(environment, document, instances))
        in_cluster = ports.environment.in_cluster
        if in_cluster is not None and not is_simulated(ports.environment):
            out().print(f"What it installed in the cluster, in namespace {in_cluster.namespace}, goes first.")
        if not yes:
            _ask(environment)
        is_out_of_cluster = remove_before_the_rest(workspace, ports.environment)
        progress = ConvergeProgress(None, err())
        progress.start()
        try:
            outcome = destroy_all(ports, progress_line, progress.on_event)
        finally:
            progress.stop()
        if not outcome.is_settled:
            raise Fault(
                f"environment {environment}: not everything is gone: {'; '.join(outcome.foundation_failures)}",
                f"run nodewright destroy {environment} again; it goes on where it stopped",
            )
        if not is_out_of_cluster:
            raise Fault(
                f"environment {environment}: machines and network are gone; what it installed in the cluster is not",
                (
                    f"when the cluster answers again: nodewright destroy {environment}",
                    f"when the cluster is gone: pulumi stack rm --force {environment}.cluster",
                ),
            )
        out().print(f"{environment}: everything is gone")


def _ask(environment: str) -> None:
    if not sys.stdin.isatty():
        raise Fault(f"destroying {environment} needs a yes, and there is nobody to ask", "add --yes")
    if typer.prompt(f"Type the environment's name to destroy it ({environment})", err=True) != environment:
        progress_line("nothing was changed")
        raise typer.Exit(ExitCode.FAILED)
