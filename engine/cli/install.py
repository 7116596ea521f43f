"""``nodewright install``: put an environment's runner, its access and its pre-pulling into the cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.terminal import (
    EnvironmentArgument,
    ExitCode,
    Output,
    OutputOption,
    YesOption,
    err,
    out,
    progress_line,
    show_fault,
    told_of_faults,
)
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.in_cluster import InstallOutcome

if TYPE_CHECKING:
    from engine.reconcile.installing import Installation, Proposed
    from engine.reconcile.workspace import Workspace


def install(
    context: typer.Context,
    environment: EnvironmentArgument,
    yes: YesOption = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would change.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what would change in the cluster, ask, apply it through Pulumi. Exit 0 done, 1 refused or failed.

    With --preview exit 0 when nothing would change, 2 when something would.
    """
    with told_of_faults():
        from engine.reconcile.installing import installation, propose
        from engine.reconcile.workspace import find_workspace

        parts = installation(find_workspace(context.obj), environment, progress_line)
        proposed = propose(parts)
        as_json = output is Output.JSON
        if preview:
            _show(proposed, None, as_json=as_json)
            raise typer.Exit(ExitCode.PENDING if proposed.changes else ExitCode.DONE)
        outcome = _approved_and_installed(parts, proposed, is_approved=yes, is_quiet=as_json)
        if as_json:
            _show(proposed, outcome, as_json=True)
        if outcome is not None and outcome.was_interrupted:
            raise KeyboardInterrupt
        if outcome is not None and not outcome.is_settled:
            raise typer.Exit(ExitCode.FAILED)


def install_with_the_rest(workspace: Workspace, environment: Environment, *, is_approved: bool, is_quiet: bool) -> bool:
    """The part of ``up``: whether all is installed, or nothing is to be. Its faults are told and end nothing else."""
    from engine.reconcile.installing import installation, is_simulated, propose_if_new

    if environment.in_cluster is None:
        return True
    if is_simulated(environment):
        progress_line("a simulated cluster has no API server: nothing of nodewright:inCluster is installed")
        return True
    try:
        parts = installation(workspace, environment.name, progress_line)
        outcome = _approved_and_installed(parts, propose_if_new(parts), is_approved=is_approved, is_quiet=is_quiet)
    except Fault as fault:
        show_fault(Fault(f"in the cluster: {fault}", fault.hints))
        return False
    return outcome is None or outcome.is_settled


def remove_before_the_rest(workspace: Workspace, environment: Environment) -> bool:
    """The part of ``destroy``: whether nothing is left in the cluster. A cluster that is gone holds up nothing else."""
    from engine.reconcile.installing import installation, is_simulated, remove
    from engine.report.install_report import render_install_outcome

    if environment.in_cluster is None or is_simulated(environment):
        return True
    try:
        outcome = remove(installation(workspace, environment.name, progress_line), _unseen)
    except Fault as fault:
        show_fault(Fault(f"in the cluster: {fault}", fault.hints))
        return False
    if outcome.was_interrupted:
        raise KeyboardInterrupt
    out().print(render_install_outcome(outcome))
    return outcome.is_settled


def _approved_and_installed(
    parts: Installation, proposed: Proposed, *, is_approved: bool, is_quiet: bool
) -> InstallOutcome | None:
    """None when there was nothing to change. Raises Exit when a person says no."""
    from engine.reconcile.installing import install as apply
    from engine.report.install_report import render_install_outcome

    if not is_quiet:
        _show(proposed, None, as_json=False)
    if not proposed.changes:
        return None
    name = parts.environment.name
    if not is_approved and not _says_yes(name):
        progress_line("nothing was changed in the cluster")
        raise typer.Exit(ExitCode.FAILED)
    with err().status(f"installing into namespace {proposed.add_ons.namespace}"):
        outcome = apply(parts, proposed, _unseen)
    if not is_quiet:
        out().print(render_install_outcome(outcome))
    return outcome


def _says_yes(environment: str) -> bool:
    if not sys.stdin.isatty():
        raise Fault(
            f"environment {environment}: changing its cluster needs a yes, and there is nobody to ask",
            f"nodewright install {environment} --yes",
        )
    return typer.confirm(f"Install into the cluster of {environment}?", err=True)


def _show(proposed: Proposed, outcome: InstallOutcome | None, *, as_json: bool) -> None:
    from engine.report.install_report import install_json, render_install

    if as_json:
        sys.stdout.write(install_json(proposed.add_ons, proposed.changes, outcome) + "\n")
    else:
        out().print(render_install(proposed.add_ons, proposed.changes))


def _unseen(_: object) -> None:
    return None
