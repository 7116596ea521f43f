"""``nodewright calendar``: how many nodes may be disrupted when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from engine.cli.terminal import Output, OutputOption, out, told_of_faults
from engine.model.fault import Fault

_LONGEST_DAYS = 60
# What is counted from a moment stays among the dates that there are.
_FIRST_YEAR, _LAST_YEAR = 2000, 2999


def calendar(
    context: typer.Context,
    environments: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV]...", help="Environments to show; all by default.")
    ] = None,
    at: Annotated[str, typer.Option("--at", help="From when, such as 2026-12-01T09:00; UTC unless it says.")] = "",
    days: Annotated[int, typer.Option("--days", help="For how many days.", min=1, max=_LONGEST_DAYS)] = 7,
    pool: Annotated[str | None, typer.Option("--pool", help="This node pool only.")] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", help="How many nodes each pool is supposed to have.", min=0)
    ] = None,
    output: OutputOption = Output.TEXT,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
) -> None:
    """Show what disruption budgets allow over days to come, and where nothing limits them. Reads files only."""
    with told_of_faults():
        from engine.reconcile.calendar import calendars
        from engine.reconcile.workspace import find_workspace
        from engine.report.calendar_report import calendar_json, calendar_markdown, render_calendars

        found = calendars(
            find_workspace(context.obj),
            tuple(environments or ()),
            at=moment_of(at),
            length=timedelta(days=days),
            pool=pool,
            nodes=nodes,
        )
        if output is Output.JSON:
            typer.echo(calendar_json(found))
        elif markdown:
            typer.echo(calendar_markdown(found), nl=False)
        else:
            out().print(render_calendars(found))


def moment_of(text: str) -> datetime:
    """A time that a person wrote, in UTC unless it says otherwise; this minute where it is empty. Raises Fault."""
    if not text:
        return datetime.now(UTC).replace(second=0, microsecond=0)
    hint = "write it as 2026-12-01T09:00, or 2026-12-01T09:00+01:00"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Fault(f"--at: {text[:60]!r} is no time", hint) from None
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise Fault(f"--at: the year of {text[:60]!r} is not in {_FIRST_YEAR} to {_LAST_YEAR}", hint)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
