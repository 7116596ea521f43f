"""``nodewright status``: what stands now and what it costs."""

from __future__ import annotations

import typer

from engine.cli.terminal import EnvironmentArgument, Output, OutputOption, out, told_of_faults


def status(context: typer.Context, environment: EnvironmentArgument, output: OutputOption = Output.TEXT) -> None:
    """Show node sets, instances, waiting pods and cost. Reads only; exit 0, or 1 when something cannot be read."""
    with told_of_faults():
        from engine.cli.screens import show_standing
        from engine.reconcile import passes
        from engine.reconcile.assembly import assemble
        from engine.reconcile.up import Ending
        from engine.reconcile.workspace import find_workspace

        ports = assemble(find_workspace(context.obj), environment)
        proposal = passes.propose(ports)
        ending = Ending(passes=0, changed=False, is_done=not proposal.needs_converging, last=proposal)
        show_standing(ports, ending, out(), as_json=output is Output.JSON)
