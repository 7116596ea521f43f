"""``nodewright snapshot``: record what a pass would see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.terminal import EnvironmentArgument, told_of_faults


def snapshot(
    context: typer.Context,
    environment: EnvironmentArgument,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Write here; standard output by default.")] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Replace names of pods, namespaces and owners.")] = False,
) -> None:
    """Write pods, nodes, instances and the desired document as JSON, for `plan --snapshot` and bug reports."""
    with told_of_faults():
        from engine.model.canonical import canonical_json
        from engine.reconcile import passes
        from engine.reconcile.assembly import assemble
        from engine.reconcile.redaction import redacted
        from engine.reconcile.workspace import find_workspace

        seen, _ = passes.observe(assemble(find_workspace(context.obj), environment))
        content = canonical_json(redacted(seen) if redact else seen)
        if file is None:
            typer.echo(content.decode())
        else:
            file.write_bytes(content + b"\n")
