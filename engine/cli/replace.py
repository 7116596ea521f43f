"""``nodewright replace``: ask for another node in one's stead."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.terminal import Output, OutputOption, out, told_of_faults


def replace(
    context: typer.Context,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node's name, or its claim's.")],
    environment: Annotated[
        str | None, typer.Argument(metavar="[ENV]", help="stacks/Pulumi.ENV.yaml; may be left out where it is clear.")
    ] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Ask for it no more, as long as it is not marked.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask for another node in place of NODE, under the same budgets and rules as any. The next passes see to it."""
    with told_of_faults():
        from engine.reconcile import requesting
        from engine.reconcile.assembly import assemble
        from engine.reconcile.explaining import only_environment
        from engine.reconcile.workspace import find_workspace

        workspace = find_workspace(context.obj)
        name = environment or only_environment(workspace)
        ports = assemble(workspace, name)
        request = requesting.withdraw(ports, node) if cancel else requesting.ask(ports, node)
        if output is Output.JSON:
            from engine.report.replace_report import replace_json

            told = replace_json(
                name,
                request.node,
                request.claim,
                asked_at=request.asked_at,
                was_asked=request.was_asked,
                explained=request.explained,
            )
            typer.echo(told)
            return
        if cancel:
            words = "no replacement is asked for any more" if request.was_asked else "no replacement was asked for"
            out().print(f"{request.node}: {words}", markup=False)
            return
        words = "its replacement was asked for already" if request.was_asked else "its replacement is asked for"
        out().print(f"{request.node} ({request.claim}): {words}", markup=False)
        out().print(request.outcome, markup=False)
        back = f"nodewright replace {request.node} {name} --cancel"
        out().print(f"A runner sees to it, or nodewright up {name}; {back} takes it back.", markup=False)
