"""The kinds of policy, and what their rules may read, on a screen and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from engine.policy.cel.types import ListOf, Record
from engine.policy.facts.schema import RECORDS, RULE_PARTS, VARIABLE_DOCS, VARIABLE_TYPES
from engine.policy.facts.spelling import spelled
from engine.report.tables import Screen, heading, indented, table

SCHEMA = "nodewright.dev/variables/v1"


def render_kinds(kinds: Iterable[tuple[str, str, str]]) -> RenderableType:
    """``kinds`` are names, API versions and what they say; the variables follow."""
    rows = table("KIND", "API VERSION", "~", gives_way=("API VERSION",))
    for kind in kinds:
        rows.add(*kind)
    hint = Text("nodewright schema KIND prints its JSON Schema; all is one for every kind", style="dim")
    return Screen(rows, hint, Text(), render_variables())


def render_variables() -> RenderableType:
    """Who may read what, and every field of every record."""
    return Screen(heading("Variables"), indented(_readers()), *map(_record, RECORDS))


def _readers() -> RenderableType:
    rows = table("KIND", "FIELD", "COMES TO", "~MAY READ")
    for kind, parts in RULE_PARTS.items():
        for part in parts:
            rows.add(kind.value, part.name, part.result.replace("`", ""), ", ".join(part.variables))
    return rows


def _record(record: Record) -> RenderableType:
    rows = table("FIELD", "TYPE", "~", has_header=False)
    for each in record.fields:
        rows.add(each.name, spelled(each.type), each.doc.replace("`", ""))
    return Group(Text(), heading(record.name, record.doc.replace("`", "")), indented(rows))


def variables_json() -> str:
    """The same for programs: the readers by kind, the variables, and the records with their fields."""
    content = {
        "schema": SCHEMA,
        "parts": {
            kind.value: {part.name: {"result": part.result, "variables": part.variables} for part in parts}
            for kind, parts in RULE_PARTS.items()
        },
        "variables": {
            name: {"type": spelled(VARIABLE_TYPES[name]) if name in VARIABLE_TYPES else name, "doc": doc}
            for name, doc in VARIABLE_DOCS.items()
        },
        "records": {
            record.name: {
                each.name: {
                    "type": spelled(each.type),
                    "doc": each.doc,
                    **({"most": each.type.most} if isinstance(each.type, ListOf) else {}),
                }
                for each in record.fields
            }
            for record in RECORDS
        },
    }
    return json.dumps(content, indent=2, ensure_ascii=False)
