"""Where a command's words go, and how a fault ends it: a message and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Annotated

import typer

from engine.model.diagnostic import InvalidInput
from engine.model.fault import Fault

if TYPE_CHECKING:
    from rich.console import Console


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    PENDING = 2
    INVALID = 2


class Output(str, Enum):
    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="text for people, json for programs.")]
EnvironmentArgument = Annotated[str, typer.Argument(metavar="ENV", help="An environment: stacks/Pulumi.ENV.yaml.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def out() -> Console:
    """Standard output; plain and 100 columns wide when piped."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 100, highlight=False, soft_wrap=not sys.stdout.isatty())


def err() -> Console:
    """Standard error, for progress, questions and faults."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


@contextmanager
def told_of_faults() -> Iterator[None]:
    """Turn what went wrong into words and an exit code."""
    try:
        yield
    except InvalidInput as invalid:
        from engine.report.diagnostics_report import render_diagnostics

        err().print(render_diagnostics(invalid.diagnostics))
        raise typer.Exit(ExitCode.FAILED) from None
    except Fault as fault:
        show_fault(fault)
        raise typer.Exit(ExitCode.FAILED) from None
    except KeyboardInterrupt:
        err().print("interrupted: what was begun is recorded, and the next run carries on from it", style="yellow")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader has gone (`| head`); Python would complain again while closing standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ExitCode.DONE) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        # A slip of the pen is shown with the command's usage.
        raise
    except Exception as unexpected:
        show_bug(unexpected)
        raise typer.Exit(ExitCode.FAILED) from None


def show_fault(fault: Fault) -> None:
    console = err()
    console.print(f"error: {fault}", style="bold red", markup=False)
    for hint in fault.hints:
        console.print(f"  → {hint}", markup=False)


def show_bug(unexpected: Exception) -> None:
    """A fault of ours. The person gets one line; the traceback only on request, for the report."""
    console = err()
    console.print(f"error: internal: {type(unexpected).__name__}: {unexpected}", style="bold red", markup=False)
    if os.environ.get("NODEWRIGHT_DEBUG"):
        console.print("".join(traceback.format_exception(unexpected)), markup=False)
    else:
        console.print("  → this is a fault in nodewright; NODEWRIGHT_DEBUG=1 shows where")


def progress_line(line: str) -> None:
    """A line about long work; nothing when standard error is no terminal, unless the work takes minutes."""
    err().print(line, style="dim", markup=False)
