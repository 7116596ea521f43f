"""``nodewright top``: what runs, what is on its way and who waits, as it changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.terminal import EnvironmentArgument, Output, OutputOption, out, told_of_faults
from engine.model.duration import DurationError, parse_duration
from engine.model.fault import Fault

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from engine.reconcile.passes import Proposal

_SHORTEST_SECONDS = 0.5


def top(
    context: typer.Context,
    environment: EnvironmentArgument,
    once: Annotated[bool, typer.Option("--once", help="Show it once; so it is when piped, and as JSON.")] = False,
    output: OutputOption = Output.TEXT,
    interval: Annotated[str, typer.Option("--interval", help="From one look to the next, such as 2s.")] = "2s",
) -> None:
    """Watch node sets, GPU use, nodes in flight and waiting pods with their reasons. Reads only; Ctrl-C ends it."""
    with told_of_faults():
        from engine.reconcile import passes
        from engine.reconcile.assembly import assemble
        from engine.reconcile.workspace import find_workspace

        seconds = _seconds(interval)
        ports = assemble(find_workspace(context.obj), environment)
        console = out()
        proposal = passes.propose(ports)
        if output is Output.JSON:
            from engine.report.top_screen import top_json

            typer.echo(top_json(proposal.snapshot, proposal.plan, datetime.now(UTC)))
        elif once or not console.is_terminal:
            console.print(_screen(proposal))
        else:
            _watch(console, lambda: passes.propose(ports), proposal, seconds)


def _watch(console: Console, look: Callable[[], Proposal], proposal: Proposal, seconds: float) -> None:
    """Look again and again. A look that fails leaves the last one standing, with what went wrong above it."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            fault: Fault | None = None
            while True:
                told = [Text(f"error: {fault}", style="bold red")] if fault is not None else []
                live.update(Group(*told, _screen(proposal)), refresh=True)
                time.sleep(seconds)
                try:
                    proposal, fault = look(), None
                except Fault as failed:
                    fault = failed
    except KeyboardInterrupt:
        # Watching is ended so; nothing was begun that could be cut short.
        return


def _screen(proposal: Proposal) -> RenderableType:
    from engine.report.top_screen import top_screen

    return top_screen(proposal.snapshot, proposal.plan, datetime.now(UTC))


def _seconds(interval: str) -> float:
    try:
        return max(parse_duration(interval).total_seconds(), _SHORTEST_SECONDS)
    except DurationError as error:
        raise Fault(f"--interval: {error}", "nodewright top ENV --interval 2s") from None
