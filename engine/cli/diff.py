"""``nodewright diff``: what a change of policy would do to the cluster and to the bill."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.terminal import ExitCode, out, told_of_faults


class DiffOutput(str, Enum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def diff(
    context: typer.Context,
    base: Annotated[str, typer.Argument(metavar="BASE", help="A Git revision, or a project's folder.")],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="The same; the working tree by default.")] = ".",
    environments: Annotated[
        list[str] | None, typer.Option("--env", help="An environment to compare; repeatable, all by default.")
    ] = None,
    snapshots: Annotated[
        list[Path] | None,
        typer.Option("--snapshot", help="A recorded moment to decide on; repeatable, policies/snapshots by default."),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", help="Decide each moment as if it were this time, such as 2026-12-01T02:00; repeatable."),
    ] = None,
    output: Annotated[
        DiffOutput, typer.Option("--output", "-o", help="markdown is for a pull request's comment.")
    ] = DiffOutput.TEXT,
    fail_on: Annotated[
        list[str] | None, typer.Option("--fail-on", help="more-cost=USD an hour or more-removals=N; repeatable.")
    ] = None,
) -> None:
    """Decide recorded moments by both policies and show what differs. Exit 0 no effect, 2 effects, 1 failed."""
    with told_of_faults():
        from engine.cli.calendar import moment_of
        from engine.reconcile.diffing import Thresholds, difference

        thresholds = Thresholds.parse(fail_on or ())
        moments = tuple(moment_of(each) for each in at or ())
        found = difference(
            context.obj, base, head, tuple(environments or ()), tuple(snapshots or ()), thresholds, moments
        )
        if output is DiffOutput.JSON:
            from engine.report.diff_report_json import diff_json

            typer.echo(diff_json(found))
        elif output is DiffOutput.MARKDOWN:
            from engine.report.diff_report_markdown import diff_markdown

            typer.echo(diff_markdown(found), nl=False)
        else:
            from engine.report.diff_report_text import render_difference

            out().print(render_difference(found))
        if found.is_invalid or found.over:
            raise typer.Exit(ExitCode.FAILED)
        if found.has_effect:
            raise typer.Exit(ExitCode.PENDING)
