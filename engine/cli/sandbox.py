"""``nodewright sandbox``: look after the embedded environment's simulated cluster and EC2."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.terminal import out, told_of_faults

app = typer.Typer(help="The embedded sandbox: its EC2 endpoint and its simulated cluster.", no_args_is_help=True)
SandboxArgument = Annotated[str, typer.Argument(metavar="[ENV]", help="A sandbox environment.")]


@app.command("down")
def down(context: typer.Context, environment: SandboxArgument = "sandbox") -> None:
    """Stop the sandbox's EC2. Its state is in memory: the next `up` notices that all is lost, and rebuilds."""
    with told_of_faults():
        from engine.reconcile import sandboxed
        from engine.reconcile.workspace import find_workspace

        was_running = sandboxed.down(find_workspace(context.obj), environment)
        out().print(f"{environment}: EC2 stopped" if was_running else f"{environment}: EC2 was not running")


@app.command("reset")
def reset(context: typer.Context, environment: SandboxArgument = "sandbox") -> None:
    """Stop the sandbox's EC2 and forget all of it, so that `up` starts anew, with the stack file's pods."""
    with told_of_faults():
        from engine.reconcile import sandboxed
        from engine.reconcile.workspace import find_workspace

        sandboxed.reset(find_workspace(context.obj), environment)
        out().print(f"{environment}: forgotten")


@app.command("scale")
def scale(
    context: typer.Context,
    replicas: Annotated[int, typer.Argument(min=0, max=100_000, help="Pods of the inference deployment.")],
    environment: SandboxArgument = "sandbox",
) -> None:
    """Set the number of pods of the simulated cluster's inference deployment."""
    with told_of_faults():
        from engine.reconcile import sandboxed
        from engine.reconcile.workspace import find_workspace

        before, after = sandboxed.scale(find_workspace(context.obj), environment, replicas)
        out().print(f"{environment}: llm-inference had {before} pods and has {after}")
