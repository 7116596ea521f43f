"""``nodewright env``: prepare a shell for plain ``pulumi`` commands."""

from __future__ import annotations

import typer

from engine.cli.terminal import EnvironmentArgument, progress_line, told_of_faults


def env(context: typer.Context, environment: EnvironmentArgument) -> None:
    """Print exports for `eval "$(nodewright env ENV)"`; then `pulumi up -s ENV` works. Creates the stack if need be."""
    with told_of_faults():
        from engine.reconcile.assembly import prepared_shell
        from engine.reconcile.workspace import find_workspace

        shell = prepared_shell(find_workspace(context.obj), environment, progress_line)
        typer.echo(shell.export_lines())
