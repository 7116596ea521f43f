"""What cel-expr's checker says, as problems with stable ids, offsets that point at the culprit, and hints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from engine.policy.cel.port import Problem
from engine.policy.cel.types import CelType, Record
from engine.policy.findings import did_you_mean

LONGEST = 100_000
DEEPEST = 32

_LINE = re.compile(r"^(?:[A-Z_]+: )?ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?: \[[A-Z_]+\])?$")
_FOLLOWS = re.compile(r"<<nil>> parsetree|\*error\*")
_FIELD = re.compile(r"undefined field '(.+)' not found in struct '(.+)'")
_NAME = re.compile(r"undeclared reference to '(.+)' \(in container ''\)")
_OVERLOAD = re.compile(r"found no matching overload for '(.+)' applied to '\((.*)\)'")
_OPERATOR = re.compile(r"^@?_?([^_@]+?)_?$")
_SYNTAX = re.compile(r"Syntax error: (.*)")
_COMPARISONS = frozenset({"_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"})
_ARITHMETIC = frozenset({"_+_", "_-_", "_*_", "_/_"})
_WORDS = {"and": "&&", "or": "||", "not": "!", "if": "CONDITION ? THIS : THAT", "None": "null"}


class CheckerMessages:
    """Reads one source's errors. ``records`` tells a message's full name its Record."""

    def __init__(self, source: str, variables: Mapping[str, CelType], records: Mapping[str, Record]) -> None:
        self._source = source
        self._variables = variables
        self._records = records
        self._line_starts = [0, *(at + 1 for at, char in enumerate(source) if char == "\n")]

    def problems(self, text: str) -> tuple[Problem, ...]:
        """All of them in the order of the source, but of syntax errors only the first: the rest follow from it."""
        found = sorted(set(self._read(text)), key=lambda each: each.offset)
        syntax = [each for each in found if each.rule == "cel-syntax"]
        if syntax:
            return (syntax[0],)
        return tuple(found) or (Problem(0, "cel-invalid", self._worded(text.removesuffix("]").split(" [")[0])),)

    def _read(self, text: str) -> Iterable[Problem]:
        if "recursion" in text:
            yield Problem(
                0,
                "cel-too-deep",
                f"the expression is nested more than {DEEPEST} deep, which a sum of as many terms is too",
                "split it with spec.variables, or write a long || or && without inner parentheses",
            )
            return
        if "exceeds codepoint limit" in text:
            yield Problem(0, "cel-too-long", f"an expression may have {LONGEST:,} characters")
            return
        for line in text.split("\n"):
            if (found := _LINE.match(line)) and not _FOLLOWS.search(found[3]):
                yield self._problem(self._offset(int(found[1]), int(found[2])), found[3])

    def _offset(self, line: int, column: int) -> int:
        if not 1 <= line <= len(self._line_starts):
            return 0
        return min(self._line_starts[line - 1] + max(column - 1, 0), len(self._source))

    def _problem(self, offset: int, message: str) -> Problem:
        if found := _SYNTAX.match(message):
            return self._syntax(offset, found[1])
        if found := _FIELD.match(message):
            return self._unknown_field(offset, found[1], found[2])
        if found := _NAME.match(message):
            return self._unknown_name(offset, found[1])
        if found := _OVERLOAD.match(message):
            return self._no_overload(offset, found[1], _split_types(self._worded(found[2])))
        return Problem(offset, "cel-invalid", self._worded(message))

    def _syntax(self, offset: int, message: str) -> Problem:
        rest = self._source[offset:]
        if not self._source.strip():
            return Problem(0, "cel-syntax", "the expression is empty")
        if not rest.strip():
            return Problem(len(self._source.rstrip()), "cel-syntax", "the expression ends too early")
        word = re.match(r"\w+", rest)
        if word and word[0] in _WORDS:
            return Problem(offset, "cel-syntax", f"{word[0]} is no CEL operator", f"write {_WORDS[word[0]]}")
        if rest.startswith("=") and not rest.startswith("=="):
            return Problem(offset, "cel-syntax", "a single = means nothing in CEL", "write == to compare")
        if rest[0] in "'\"":
            return Problem(offset, "cel-syntax", "this text is not closed, or has an escape that CEL does not know")
        if "missing" in message and (wanted := re.search(r"missing '(.+?)'", message)):
            return Problem(offset, "cel-syntax", f"expected {wanted[1]} here")
        return Problem(offset, "cel-syntax", f"did not expect {_first_token(rest)} here")

    def _unknown_field(self, offset: int, name: str, message: str) -> Problem:
        at = self._source.find(name, offset)
        record = self._records.get(message)
        names = [each.name for each in record.fields] if record else []
        shown = record.name if record else message
        return Problem(
            at if at >= 0 else offset,
            "cel-unknown-name",
            f"{shown} has no field {name}",
            did_you_mean(name, names),
        )

    def _unknown_name(self, offset: int, dotted: str) -> Problem:
        root = dotted.lstrip(".").split(".")[0]
        at = self._source.rfind(root, 0, offset + len(root))
        at = at if at >= 0 else offset
        rest = self._source[at + len(dotted) :].lstrip()
        if self._source[offset : offset + 1] == "(" or rest.startswith("("):
            return Problem(at, "cel-unknown-name", f"there is no function {dotted}", _function_hint(dotted))
        if root in _WORDS or root in {"True", "False"}:
            return Problem(
                at, "cel-unknown-name", f"{root} means nothing in CEL", f"write {_WORDS.get(root, root.lower())}"
            )
        return Problem(
            at,
            "cel-unknown-name",
            f"there is no variable {root} here",
            did_you_mean(root, self._variables),
        )

    def _no_overload(self, offset: int, function: str, types: Sequence[str]) -> Problem:
        operator = _OPERATOR.match(function)
        is_operator = not function[0].isalpha()
        shown = "?:" if function == "_?_:_" else "[ ]" if function == "_[_]" else operator[1] if operator else function
        joined = " and ".join(types) if len(types) == 2 else ", ".join(types)
        text = f"{shown} does not work on {joined}" if is_operator else f"{function}() does not take ({joined})"
        return Problem(offset, "cel-no-overload", text, self._overload_hint(offset, function, types))

    def _overload_hint(self, offset: int, function: str, types: Sequence[str]) -> str:
        kinds = set(types)
        if function in _COMPARISONS | _ARITHMETIC and kinds == {"int", "double"}:
            literal = self._int_beside(offset, function, is_right=types[-1] == "int")
            return f"write {literal}.0" if literal else "make both a double: double(COUNT)"
        if function in _COMPARISONS | _ARITHMETIC and kinds == {"int", "string"}:
            return "make both an int, int(TEXT), or both a text, string(NUMBER)"
        if function == "_?_:_":
            return "both branches have to be of one type, and what stands before ? a bool"
        if function in {"_&&_", "_||_", "!_"}:
            return "compare it with something: only a bool is true or false"
        return ""

    def _int_beside(self, offset: int, function: str, *, is_right: bool) -> str:
        symbol = function.strip("_")
        if is_right:
            found = re.match(r"\s*(-?\d+)(?![\w.])", self._source[offset + len(symbol) :])
        else:
            found = re.search(r"(?<![\w.])(\d+)\s*$", self._source[:offset])
        return found[1] if found else ""

    def _worded(self, text: str) -> str:
        return worded(text, self._records)


def worded(text: str, records: Mapping[str, Record]) -> str:
    """Messages' full names become the Records' own."""
    for full_name, record in sorted(records.items(), key=lambda each: -len(each[0])):
        text = text.replace(full_name, record.name)
    return text.replace("google.protobuf.Duration", "duration").replace("google.protobuf.Timestamp", "timestamp")


def _split_types(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _first_token(rest: str) -> str:
    found = re.match(r"\w+|\S", rest.lstrip())
    return found[0] if found else "the end"


def _function_hint(name: str) -> str:
    if name in {"len", "length", "count"}:
        return "size(X) counts what is in X"
    if name in {"sum", "any", "min", "max"}:
        return "loops are all, exists, exists_one, map and filter"
    return ""
