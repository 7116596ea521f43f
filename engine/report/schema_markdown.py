"""The reference of the rule language as Markdown: ``docs/policy-reference.md`` is this, word for word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engine.model.rule import RuleKind
from engine.policy.cel.types import CelType, ListOf, MapOf, Record
from engine.policy.facts.fixtures import DEFAULTS
from engine.policy.facts.functions import OFFERED
from engine.policy.facts.schema import RECORDS, RULE_PARTS, VARIABLE_DOCS, VARIABLE_TYPES
from engine.policy.facts.spelling import spelled

_BEGINNING = """\
# What rules may read

Made by `nodewright schema --markdown`; a test holds this file to it. It lists every part of a rule that holds CEL,
every variable with its fields, and every function. `nodewright schema` shows the same on a screen.

Every field listed here is always there, so nothing needs `has()`. What is open-ended, such as labels and requests, is a
map, and reading a key that a map lacks is an error: write `'tier' in pod.labels && pod.labels['tier'] == 'gold'`. An
error is never taken for a value.

For completion and hover texts in an editor, put the JSON Schema of all kinds into a file with
`nodewright schema all > .nodewright/policy.schema.json`, and begin a policy file with
`# yaml-language-server: $schema=PATH-TO-IT`. The schema knows today's spellings: older ones and fields left empty,
which `nodewright check` reads all the same, are marked. Of what is inside of an expression only `check` knows.
"""
_OF_RECORDS = """\
## Fields

*At most* is how many elements a loop over a list is reckoned to take; a longer list is not cut. In a policy test, a
field that the test does not name is zero, empty or false, or what *in tests* says, or follows from what it names.
"""
_OF_FUNCTIONS = """\
## Functions and operators

A rule with `portable: true`, which is the default, keeps to what both CEL engines know. Each example is true.
"""


def reference_markdown() -> str:
    """The whole page, with a newline at its end."""
    parts = (_BEGINNING, *_parts(), *_variables(), _OF_RECORDS, *_records(), _OF_FUNCTIONS, *_functions())
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _parts() -> Iterator[str]:
    yield "## Parts that hold CEL\n"
    for kind, parts in RULE_PARTS.items():
        yield f"### {kind.value}\n"
        rows = [
            (f"`{part.name}`", part.result, part.doc, ", ".join(f"`{name}`" for name in part.variables))
            for part in parts
        ]
        yield _table(("field", "comes to", "meaning", "may read"), rows)
        if kind is RuleKind.REQUIREMENT_RULE:
            yield "`windows` and `now` only with `timeSensitive: true`.\n"


def _variables() -> Iterator[str]:
    yield "## Variables\n"
    rows = [(f"`{name}`", _linked(VARIABLE_TYPES.get(name)), doc) for name, doc in VARIABLE_DOCS.items()]
    yield _table(("variable", "type", "meaning"), rows)


def _records() -> Iterator[str]:
    for record in RECORDS:
        yield f"### {record.name}\n"
        yield record.doc + "\n"
        preset = DEFAULTS.get(record.name, {})
        rows = [
            (
                f"`{each.name}`",
                _linked(each.type),
                each.doc + (f" At most {each.type.most:,}." if isinstance(each.type, ListOf) else ""),
                f"`{preset[each.name]}`" if each.name in preset else "",
            )
            for each in record.fields
        ]
        yield _table(("field", "type", "meaning", "in tests") if preset else ("field", "type", "meaning"), rows)


def _functions() -> Iterator[str]:
    rows = [
        (f"`{each.written}`", "yes" if each.is_portable else "no", each.doc, f"`{each.example}`") for each in OFFERED
    ]
    yield _table(("", "portable", "meaning", "example"), rows)


def _linked(type_: CelType | None) -> str:
    """A type as text, a record's name leading to its fields."""
    if type_ is None:
        return "one field each"
    inner = type_.element if isinstance(type_, ListOf) else type_.value if isinstance(type_, MapOf) else type_
    if not isinstance(inner, Record):
        return spelled(type_).replace("<", "&lt;")
    link = f"[{inner.name}](#{inner.name.lower()})"
    return f"list&lt;{link}>" if isinstance(type_, ListOf) else link


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows longer than the headings are cut to them."""
    width = len(headings)
    lines = [headings, ["---"] * width, *(row[:width] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
