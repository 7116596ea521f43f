"""``nodewright schema``: what editors and people may know of policy files."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.terminal import Output, OutputOption, out, told_of_faults
from engine.model.fault import Fault

_VARIABLES = "variables"


def schema(
    kind: Annotated[
        str,
        typer.Argument(metavar="[KIND]", help="A kind of policy, all of them in one (all), or variables."),
    ] = "",
    output: OutputOption = Output.TEXT,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The reference of variables and functions, as docs/policy-reference.md.")
    ] = False,
) -> None:
    """Print the JSON Schema of a kind of policy, for editors; without KIND the kinds, and what rules may read."""
    with told_of_faults():
        if markdown:
            from engine.report.schema_markdown import reference_markdown

            typer.echo(reference_markdown(), nl=False)
        elif kind not in ("", _VARIABLES):
            typer.echo(_json_schema(kind))
        else:
            _show(kind, output)


def _json_schema(name: str) -> str:
    import json

    from engine.policy.findings import did_you_mean
    from engine.policy.json_schema import ALL, KINDS, json_schema, json_schema_of_all, kind_named

    kind = kind_named(name)
    if kind is None and name != ALL:
        known = [*(each.name for each in KINDS), ALL, _VARIABLES]
        raise Fault(f"there is no kind {name[:60]!r} of policy", did_you_mean(name, known))
    return json.dumps(json_schema(kind) if kind is not None else json_schema_of_all(), indent=2, ensure_ascii=False)


def _show(kind: str, output: Output) -> None:
    from engine.report.schema_table import render_kinds, render_variables, variables_json

    if output is Output.JSON:
        typer.echo(variables_json())
        return
    if kind == _VARIABLES:
        out().print(render_variables())
        return
    from engine.policy.json_schema import KINDS

    out().print(render_kinds((each.name, each.api_version, each.says) for each in KINDS))
