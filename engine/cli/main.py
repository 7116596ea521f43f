"""The ``nodewright`` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli import (
    calendar,
    check,
    destroy,
    diff,
    doctor,
    env,
    explain,
    install,
    plan,
    replace,
    sandbox,
    schema,
    simulate,
    snapshot,
    status,
    top,
    up,
)
from engine.cli import run as running
from engine.cli import test as testing
from engine.cli.terminal import ExitCode

app = typer.Typer(
    name="nodewright",
    help="Keep the right GPU nodes under a cluster: policy files in, a priced plan out, converged by Pulumi.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def choose_project(
    context: typer.Context,
    project: Annotated[
        Path, typer.Option("--project", "-C", help="A folder inside the project; the current one by default.")
    ] = Path(),
) -> None:
    context.obj = project


app.command("doctor")(doctor.doctor)
app.command("check")(check.check)
app.command("test")(testing.run_tests)
app.command("plan")(plan.plan)
app.command("diff")(diff.diff)
app.command("explain")(explain.explain)
app.command("up")(up.up)
app.command("run")(running.run)
app.command("install")(install.install)
app.command("replace")(replace.replace)
app.command("status")(status.status)
app.command("top")(top.top)
app.command("destroy")(destroy.destroy)
app.command("snapshot")(snapshot.snapshot)
app.command("simulate")(simulate.simulate)
app.command("env")(env.env)
app.command("schema")(schema.schema)
app.command("calendar")(calendar.calendar)
app.add_typer(sandbox.app, name="sandbox")


def run() -> None:
    # A slip of the pen must not look like "changes pending", which is what 2 means here.
    typer.BadParameter.__base__.exit_code = ExitCode.FAILED  # type: ignore[union-attr]
    app()
