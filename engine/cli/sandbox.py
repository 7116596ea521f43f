"""``nodewright sandbox``: look after the embedded environments' clusters and EC2."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from engine.cli.terminal import out, progress_line, told_of_faults

app = typer.Typer(help="The embedded sandboxes: their EC2 endpoint and their cluster.", invoke_without_command=True)
SandboxArgument = Annotated[str, typer.Argument(metavar="[ENV]", help="A sandbox environment.")]


class ClusterChoice(str, Enum):
    SIMULATED = "simulated"
    REAL = "real"


# Each kind of cluster has an embedded environment.
_EMBEDDED = {ClusterChoice.SIMULATED: "sandbox", ClusterChoice.REAL: "sandbox-real"}
ClusterOption = Annotated[
    ClusterChoice | None, typer.Option("--cluster", help="The embedded environment with such a cluster, without ENV.")
]


@app.callback()
def sandbox(context: typer.Context, cluster: ClusterOption = None) -> None:
    """The embedded sandboxes: their EC2 endpoint and their cluster. `--cluster real` alone is `up --cluster real`."""
    if context.invoked_subcommand is not None:
        if cluster is not None:
            raise typer.BadParameter(f"write it after the word {context.invoked_subcommand}", param_hint="--cluster")
        return
    if cluster is None:
        typer.echo(context.get_help())
        return
    up(context, cluster=cluster)


@app.command("up")
def up(
    context: typer.Context,
    environment: Annotated[str | None, typer.Argument(metavar="[ENV]", help="A sandbox environment.")] = None,
    cluster: ClusterOption = None,
) -> None:
    """Start a sandbox's EC2, and its control plane where its cluster is a real one; nothing is bought yet."""
    with told_of_faults():
        from engine.model.environment import ClusterKind
        from engine.model.fault import Fault
        from engine.reconcile import sandboxed
        from engine.reconcile.workspace import find_workspace

        name = environment or _EMBEDDED[cluster or ClusterChoice.SIMULATED]
        workspace = find_workspace(context.obj)
        declared = workspace.environment(name).sandbox
        if cluster is not None and declared is not None and declared.cluster is not ClusterKind(cluster.value):
            raise Fault(
                f"environment {name} has a {declared.cluster.value} cluster: its stack file says so",
                f"set cluster: {cluster.value} below nodewright:sandbox in stacks/Pulumi.{name}.yaml, then "
                f"`nodewright sandbox reset {name}`",
            )
        running = sandboxed.up(workspace, name, progress_line)
        out().print(f"{name}: EC2 at {running.endpoint_url}")
        if running.cluster.kubeconfig is not None:
            out().print(f"{name}: Kubernetes at {running.cluster.endpoint}")
            out().print(f"export KUBECONFIG={running.cluster.kubeconfig}", soft_wrap=True)


@app.command("down")
def down(context: typer.Context, environment: SandboxArgument = "sandbox") -> None:
    """Stop a sandbox's EC2 and control plane.

    EC2's state is in memory: the next `up` notices that all is lost, and rebuilds. A real cluster's objects stay.
    """
    with told_of_faults():
        from engine.reconcile import sandboxed
        from engine.reconcile.workspace import find_workspace

        stopped = sandboxed.down(find_workspace(context.obj), environment)
        out().print(f"{environment}: {' and '.join(stopped)} stopped" if stopped else f"{environment}: nothing ran")


@app.command("reset")
def reset(context: typer.Context, environment: SandboxArgument = "sandbox") -> None:
    """Stop a sandbox and forget all of it, so that `up` starts anew, with the stack file's pods."""
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
    """Set the number of pods of a sandbox's inference deployment."""
    with told_of_faults():
        from engine.reconcile import sandboxed
        from engine.reconcile.workspace import find_workspace

        before, after = sandboxed.scale(find_workspace(context.obj), environment, replicas)
        out().print(f"{environment}: llm-inference had {before} pods and has {after}")


class InterruptionChoice(str, Enum):
    SPOT = "spot"
    REBALANCE = "rebalance"
    MAINTENANCE = "maintenance"
    RESERVATION = "reservation"
    STOP = "stop"


@app.command("interrupt")
def interrupt(
    context: typer.Context,
    claim: Annotated[str, typer.Argument(help="The claim of the machine, or its instance id.")],
    environment: SandboxArgument = "sandbox",
    kind: Annotated[InterruptionChoice, typer.Option("--kind", help="What happens.")] = InterruptionChoice.SPOT,
) -> None:
    """Have the sandbox's AWS say that it takes a machine away. Only `stop` does something to the instance itself."""
    with told_of_faults():
        from engine.reconcile import sandboxed
        from engine.reconcile.workspace import find_workspace
        from engine.sandbox.interruptions import Kind

        instance = sandboxed.interrupted(find_workspace(context.obj), environment, claim, Kind(kind.value))
        out().print(f"{environment}: {kind.value} interruption of {instance} is in the queue")
