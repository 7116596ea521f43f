"""Where the characters of an expression stand in its file."""

from __future__ import annotations

import re

from pydantic import ValidationInfo

from engine.model.diagnostic import Position
from engine.model.rule import Expression
from engine.policy.fields import refuse
from engine.policy.findings import ObjectFindings
from engine.policy.located import Place, Scalar, Source, describe
from engine.policy.shapes import shaped

_LONGEST = 10_000
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_LINE_BREAK = re.compile("[\n\u2028\u2029]")
# An anchor, a tag, a quote: no text of YAML's plain style begins like that.
_BEFORE_TEXT = re.compile(r"""(?:[&!]\S*\s+)*['"]?""")
_ESCAPED_DIGITS = {"x": 2, "u": 4, "U": 8}


@shaped({"type": ["string", "number", "boolean"], "maxLength": _LONGEST})
def read_expression(value: object, info: ValidationInfo) -> Expression:
    """A CEL text on one line, or in a literal block; a number or a truth value stands for itself."""
    if not isinstance(value, Scalar) or value.value is None:
        refuse("wrong-type", f"expected an expression, found {describe(value)}")
    if value.is_folded:
        message = "YAML joins the lines of this expression, so no place in it could be told"
        refuse("folded-expression", message, "write it on one line, or as a block that begins with |-")
    text = value.text.rstrip()
    if not text:
        refuse("empty-expression", "the expression is empty", "write one, or remove the field")
    if len(text) > _LONGEST:
        refuse("too-long", f"the expression has {len(text):,} characters; {_LONGEST:,} are the most")
    if isinstance(value.value, int | float) and not isinstance(value.value, bool) and not _NUMBER.fullmatch(text):
        refuse("bad-value", f"{text[:40]} is a number to YAML that CEL would read otherwise", "write decimal digits")
    if not isinstance(info.context, ObjectFindings):
        raise TypeError("an expression is read within an object, which knows its file")
    return _placed(value, text, info.context.source)


def _placed(scalar: Scalar, text: str, source: Source) -> Expression:
    place = scalar.place
    if not scalar.is_block:
        written = source.position(place).source_line[place.column - 1 :]
        before = _BEFORE_TEXT.match(written)
        return Expression(text, source.position(Place(place.line, place.column + (before.end() if before else 0))))
    # A block's lines are indented alike; the first that is not empty shows how far.
    lines = text.split("\n")
    first = next(number for number, line in enumerate(lines) if line.strip())
    at = place.line + 1 + first
    whole = source.lines[at - 1] if at <= len(source.lines) else ""
    unindented = scalar.text.split("\n")[first]
    indent = max(len(whole) - len(unindented), 0)
    return Expression(text, source.position(Place(place.line + 1, indent + 1)), indent + 1)


def position_in(expression: Expression, offset: int) -> Position:
    """Where the character at ``offset``, in code points from 0, stands; its end for one past the text."""
    before = expression.text[: max(offset, 0)]
    lines = _LINE_BREAK.split(before)
    start = expression.position
    if len(lines) > 1 and _is_block(expression):
        whole = " " * (expression.column_step - 1) + _LINE_BREAK.split(expression.text)[len(lines) - 1]
        return Position(start.file, start.line + len(lines) - 1, expression.column_step + len(lines[-1]), whole)
    return Position(start.file, start.line, start.column + _written_width(expression, len(before)), start.source_line)


def _is_block(expression: Expression) -> bool:
    """A block is indented; what else has several lines has them as escapes, on one line of the file."""
    return expression.column_step > 1


def _written_width(expression: Expression, count: int) -> int:
    """How wide the first ``count`` characters are in the file: more than ``count`` where quotes made escapes needed."""
    start = expression.position
    written = start.source_line[start.column - 1 :]
    quote = start.source_line[start.column - 2 : start.column - 1] if start.column > 1 else ""
    if written.startswith(expression.text) or quote not in ("'", '"'):
        return count
    width = 0
    for _ in range(count):
        two = written[width : width + 2]
        if quote == "'" and two == "''":
            width += 2
        elif quote == '"' and two[:1] == "\\":
            width += 2 + _ESCAPED_DIGITS.get(two[1:], 0)
        else:
            width += 1
    return width
