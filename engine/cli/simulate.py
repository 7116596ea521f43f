"""``nodewright simulate``: what policies would cost and do over days to come, or over a trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.terminal import EnvironmentArgument, ExitCode, err, out, told_of_faults

if TYPE_CHECKING:
    from engine.simulate.record import Run

_LONGEST_DAYS = 366


class SimulationOutput(str, Enum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def simulate(
    context: typer.Context,
    environment: EnvironmentArgument,
    snapshot: Annotated[
        Path | None, typer.Option("--snapshot", help="Begin as this recorded moment shows it; with nothing by default.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="A CSV of pods that come: arrival, duration, requests.")
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option("--policies", help="A folder of policies; repeatable, to compare. The environment's by default."),
    ] = None,
    days: Annotated[float, typer.Option("--days", help="How long.", min=0.001, max=_LONGEST_DAYS)] = 1.0,
    at: Annotated[str, typer.Option("--at", help="When it begins, such as 2026-12-01T09:00.")] = "",
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same world.", min=0)] = 1,
    rough: Annotated[
        bool, typer.Option("--rough", help="Let things go wrong: shortages, lost machines, late GPUs, bad reads.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", help="Seconds between two passes, at the least.", min=1, max=3600)
    ] = 2.0,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write Markdown here, and a picture beside it (.svg).")
    ] = None,
    output: Annotated[
        SimulationOutput, typer.Option("--output", "-o", help="text for people, json for programs.")
    ] = SimulationOutput.TEXT,
) -> None:
    """Play the real decisions in a simulated world. Asks no cluster and no account. Exit 0, or 1 where it failed."""
    with told_of_faults():
        from engine.cli.calendar import moment_of
        from engine.reconcile.simulating import Wanted
        from engine.reconcile.simulating import simulate as played
        from engine.reconcile.workspace import find_workspace

        wanted = Wanted(
            environment=environment,
            snapshot=snapshot,
            trace=trace,
            policies=tuple(policies or ()),
            length=timedelta(days=days),
            seed=seed,
            rough=rough,
            every=timedelta(seconds=every),
            at=moment_of(at) if at else None,
        )
        _check_report(report)
        with _progress() as progress:
            done = played(find_workspace(context.obj), wanted, progress)
        from engine.report.simulation_report import render_simulation, simulation_json, simulation_markdown

        if report is not None:
            _write(report, done.runs, done.notes)
        if output is SimulationOutput.JSON:
            typer.echo(simulation_json(done.runs, done.notes))
        elif output is SimulationOutput.MARKDOWN:
            typer.echo(simulation_markdown(done.runs, done.notes), nl=False)
        else:
            out().print(render_simulation(done.runs, done.notes))
        if any(run.violations for run in done.runs):
            raise typer.Exit(ExitCode.FAILED)


@contextmanager
def _progress() -> Iterator[Callable[[float, str], None]]:
    """A bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda share, name: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err(), transient=True) as bar:
        task = bar.add_task("simulating", total=1.0)
        yield lambda share, name: bar.update(task, completed=share, description=name)


def _check_report(file: Path | None) -> None:
    """Raises Fault where no picture could stand beside the page. It is told before anything is played."""
    from engine.model.fault import Fault

    if file is not None and (not file.name or file.suffix == ".svg"):
        raise Fault(f"--report: {file} is no name for a page of Markdown", "name another file, such as report.md")


def _write(file: Path, runs: tuple[Run, ...], notes: tuple[str, ...]) -> None:
    """Raises Fault where the files cannot be written."""
    from engine.model.fault import Fault
    from engine.report.simulation_picture import simulation_svg
    from engine.report.simulation_report import simulation_markdown
    from engine.report.simulation_rows import title_of

    picture = file.with_suffix(".svg")
    try:
        picture.write_text(simulation_svg(runs, f"Simulated {title_of(runs)}"), encoding="utf-8")
        file.write_text(simulation_markdown(runs, notes, picture.name), encoding="utf-8")
    except OSError as error:
        raise Fault(f"--report: {error.filename} cannot be written: {error.strerror}", "name another file") from None
