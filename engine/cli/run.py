"""``nodewright run``: keep an environment converged, or converge it once for a scheduler."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.terminal import EnvironmentArgument, Output, OutputOption, told_of_faults
from engine.model.duration import DurationError, parse_duration
from engine.reconcile.log_options import LogFormat, LogLevel

if TYPE_CHECKING:
    from types import FrameType

    from engine.model.environment import Running
    from engine.reconcile.stopping import Stop

EveryOption = Annotated[
    str | None, typer.Option("--every", metavar="60s", help="The longest time without a pass; else the stack file's.")
]
IdleOption = Annotated[
    str | None, typer.Option("--batch-idle", metavar="0.05s", help="A pass begins once it was quiet for this long.")
]
MaxOption = Annotated[
    str | None, typer.Option("--batch-max", metavar="1s", help="… and at the latest this long after the first change.")
]


def run(
    context: typer.Context,
    environment: EnvironmentArgument,
    once: Annotated[
        bool, typer.Option("--once", help="Until the world is at rest or only waits, then end: for a CronJob.")
    ] = False,
    every: EveryOption = None,
    jitter: Annotated[str, typer.Option("--jitter", metavar="10%", help="By how much heartbeats vary.")] = "10%",
    batch_idle: IdleOption = None,
    batch_max: MaxOption = None,
    metrics_address: Annotated[
        str | None, typer.Option("--metrics-address", metavar="HOST:PORT", help="Serve Prometheus metrics there.")
    ] = None,
    metrics_file: Annotated[
        Path | None, typer.Option("--metrics-file", help="Write the metrics there after each pass.")
    ] = None,
    output: OutputOption = Output.TEXT,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every decision: --log-level debug.")] = False,
    log_level: Annotated[LogLevel | None, typer.Option("--log-level", help="Log to standard error from it on.")] = None,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="auto: for people on a terminal, else JSON lines.")
    ] = LogFormat.AUTO,
) -> None:
    """Keep the environment converged: pass after pass, each a line. Exit 0 stopped or at rest, 1 a person is needed."""
    with told_of_faults():
        from engine.cli.run_audience import JsonAudience, LineAudience
        from engine.reconcile.logging import LoggingObserver, configure_logging
        from engine.reconcile.loop import Options
        from engine.reconcile.running import Asked, run_environment
        from engine.reconcile.stopping import Stop
        from engine.reconcile.workspace import find_workspace

        asked = Asked(
            options=Options(once=once, jitter=_fraction(jitter)),
            every=_duration(every, "--every"),
            batch_idle=_duration(batch_idle, "--batch-idle"),
            batch_max=_duration(batch_max, "--batch-max"),
            metrics_address=_address(metrics_address),
            metrics_file=metrics_file,
        )
        workspace = find_workspace(context.obj)
        _refuse_idle_beyond_longest(asked.over(workspace.environment(environment)).run)
        audience = JsonAudience() if output is Output.JSON else LineAudience()
        level = log_level or (LogLevel.DEBUG if verbose else None)
        logged = [LoggingObserver(configure_logging(environment, log_format=log_format, level=level))] if level else []
        stop = Stop()
        _end_on_signals(stop)
        code = run_environment(workspace, environment, asked, audience, stop, logged)
        raise typer.Exit(code)


def _end_on_signals(stop: Stop) -> None:
    """The first signal lets the loop finish what is under way, the second breaks that off, a third ends it at once."""

    def ask(number: int, frame: FrameType | None) -> None:
        stop.request()
        if stop.is_abort:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)


def _duration(text: str | None, option: str) -> timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except DurationError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _refuse_idle_beyond_longest(running: Running) -> None:
    if running.batch_idle > running.batch_max:
        idle, longest = running.batch_idle.total_seconds(), running.batch_max.total_seconds()
        raise typer.BadParameter(
            f"{idle:g}s is longer than --batch-max, {longest:g}s; a batch would never end by it",
            param_hint="--batch-idle",
        )


def _fraction(text: str) -> float:
    written = text.strip().removesuffix("%")
    try:
        fraction = float(written) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        fraction = -1.0
    if not 0 <= fraction < 1:
        raise typer.BadParameter(f"{text!r} is no part below 1; write 10% or 0.1", param_hint="--jitter")
    return fraction


def _address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter(f"{text!r} is no HOST:PORT such as 127.0.0.1:9090", param_hint="--metrics-address")
    return host or "127.0.0.1", int(port)
