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
    redact: Annotated[bool, typer.Option("--redact", help="Hide names of pods, namespaces and owners.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Keep user data, tags, uids and account numbers, which nothing decides by.")
    ] = False,
) -> None:
    """Write pods, nodes, instances and the desired document as JSON: for `plan`, `diff`, `explain` and bug reports."""
    with told_of_faults():
        from engine.model.canonical import canonical_json
        from engine.model.fault import Fault
        from engine.reconcile import passes
        from engine.reconcile.assembly import assemble
        from engine.reconcile.redaction import recorded, redacted
        from engine.reconcile.workspace import find_workspace

        if whole and redact:
            raise Fault("--whole and --redact contradict each other", "leave one of them out")
        seen, _ = passes.observe(assemble(find_workspace(context.obj), environment))
        seen = seen if whole else recorded(seen)
        content = canonical_json(redacted(seen) if redact else seen)
        if file is None:
            typer.echo(content.decode())
        else:
            try:
                file.write_bytes(content + b"\n")
            except OSError as error:
                raise Fault(f"--file: {file} cannot be written: {error.strerror}", "name another file") from None
