"""cel-python's interpreter, held to the letter of CEL where it departs from it on the portable subset.

It keeps errors as values inside of an evaluation; so does all of this. What is mended here: errors in loops end up
outside of the ``||`` that should absorb them, an error inside ``has`` reads as false, NaN equals itself, lists answer
to negative indexes, texts are turned to numbers and spans of time leniently, and loops go on for ever.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, ClassVar

import celpy
import lark
import re2  # type: ignore[import-untyped]
from celpy import celtypes
from celpy.celparser import CELParser
from celpy.evaluation import CELEvalError, Evaluator, base_functions, eval_error

from engine.policy.cel.outcomes import LOOP_STEPS
from engine.policy.cel.regular_expressions import compiled_pattern
from engine.policy.cel.text_literals import read_text

_WHOLE = re.compile(r"\s*[-+]?\d+\s*", re.ASCII)
_SPAN = re.compile(r"[-+]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|s|us|ns))+)", re.ASCII)
_SPAN_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|ns)", re.ASCII)
_MICROS = {
    "h": Fraction(3_600_000_000),
    "m": Fraction(60_000_000),
    "s": Fraction(1_000_000),
    "ms": Fraction(1000),
    "us": Fraction(1),
    "ns": Fraction(1, 1000),
}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
# `cel-expr` counts the time between two moments in 64 bits of nanoseconds.
_LONGEST_APART = timedelta(microseconds=2**63 // 1000)
_SLASHES = re.compile(r"(?<=[^/])//+")
_PARTS_OF_MOMENTS = (
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
)
_TEXT_TOKENS = frozenset({"STRING_LIT", "MLSTRING_LIT"})


class TooManyTurns(Exception):
    """Loops took more than `LOOP_STEPS`: nothing absorbs it."""


class PlacedParser(CELParser):
    """The library's parser, in which ``true`` and ``false`` too know their place in the source.

    The library keeps one parser for the whole process, whoever made it first; it is dear to make.
    """

    made: ClassVar[Any] = None

    @staticmethod
    def ambiguous_literals(t: Any) -> Any:
        return lark.Token.new_borrow_pos("BOOL_LIT", t.value, t) if t.value in {"true", "false"} else t

    @classmethod
    def become_the_parser(cls) -> None:
        if cls.made is None:
            CELParser.CEL_PARSER = None
            cls()
            cls.made = CELParser.CEL_PARSER
        CELParser.CEL_PARSER = cls.made


def new_environment(package: str | None = None) -> celpy.Environment:
    """An environment for one thread. The library sets how deep Python may recurse: it may raise that, not lower it."""
    PlacedParser.become_the_parser()
    before = sys.getrecursionlimit()
    made = celpy.Environment(package=package, runner_class=Interpreter)
    sys.setrecursionlimit(max(before, sys.getrecursionlimit()))
    return made


class Interpreter(celpy.InterpretedRunner):
    """Runs a tree, or any part of one."""

    def evaluate(self, context: Mapping[str, Any]) -> Any:
        return StrictEvaluator(self.ast, self.new_activation()).evaluate(dict(context))


class StrictEvaluator(Evaluator):
    """See the module."""

    def __init__(self, ast: Any, activation: Any, turns: Iterator[int] | None = None) -> None:
        super().__init__(ast, activation)
        self._turns = iter(range(LOOP_STEPS)) if turns is None else turns

    def conditionalor(self, tree: Any) -> Any:
        return self._chain(tree, celtypes.logical_or, decisive=True)

    def conditionaland(self, tree: Any) -> Any:
        return self._chain(tree, celtypes.logical_and, decisive=False)

    def _chain(self, tree: Any, together: Callable[[Any, Any], Any], *, decisive: bool) -> Any:
        left = self.visit(tree.children[0])
        if len(tree.children) == 1 or _is_exactly(left, decisive):
            return left
        return _joined(together, left, self.visit(tree.children[1]), decisive=decisive)

    def expr(self, tree: Any) -> Any:
        condition = self.visit(tree.children[0])
        if len(tree.children) == 1 or isinstance(condition, CELEvalError):
            return condition
        return self.visit(tree.children[1 if condition else 2])

    def macro_has_eval(self, exprlist: Any) -> Any:
        selected = exprlist.children[0]
        while selected.data != "member_dot":
            selected = selected.children[0]
        owner = self.visit(selected.children[0])
        return owner if isinstance(owner, CELEvalError) else celtypes.BoolType(str(selected.children[1]) in owner)

    def member_dot_arg(self, tree: Any) -> Any:
        loop = _LOOPS.get(str(tree.children[1]))
        if loop is None:
            return super().member_dot_arg(tree)
        over = self.visit(tree.children[0])
        if isinstance(over, CELEvalError):
            return over
        name_tree, body = tree.children[2].children
        name = str(next(name_tree.find_data("ident")).children[0])
        return loop(self._each(name, body, over))

    def _each(self, name: str, body: Any, over: Any) -> Iterator[tuple[Any, Any]]:
        for value in over:
            if next(self._turns, None) is None:
                raise TooManyTurns
            inner = StrictEvaluator(body, self.activation, self._turns)
            yield value, inner.set_activation({name: value}).visit(body)

    def literal(self, tree: Any) -> Any:
        token = tree.children[0]
        if token.type in _TEXT_TOKENS:
            return celtypes.StringType(read_text(str(token)))
        return super().literal(tree)


def _is_exactly(value: Any, truth: bool) -> bool:
    return isinstance(value, celtypes.BoolType) and bool(value) is truth


def _joined(together: Callable[[Any, Any], Any], left: Any, right: Any, *, decisive: bool) -> Any:
    """Of two errors the first: the library would write both into a third, and grow with every further one."""
    errors = [each for each in (left, right) if isinstance(each, CELEvalError)]
    if errors:
        return right if _is_exactly(right, decisive) else errors[0]
    return eval_error("no such overload", TypeError)(together)(left, right)


def _all(turns: Iterator[tuple[Any, Any]]) -> Any:
    return _until(turns, celtypes.logical_and, decisive=False)


def _exists(turns: Iterator[tuple[Any, Any]]) -> Any:
    return _until(turns, celtypes.logical_or, decisive=True)


def _until(turns: Iterator[tuple[Any, Any]], together: Callable[[Any, Any], Any], *, decisive: bool) -> Any:
    result: Any = celtypes.BoolType(not decisive)
    for _, answer in turns:
        result = _joined(together, result, answer, decisive=decisive)
        if _is_exactly(result, decisive):
            break
    return result


def _exists_one(turns: Iterator[tuple[Any, Any]]) -> Any:
    kept = _filter(turns)
    return kept if isinstance(kept, CELEvalError) else celtypes.BoolType(len(kept) == 1)


def _filter(turns: Iterator[tuple[Any, Any]]) -> Any:
    kept = celtypes.ListType()
    for value, answer in turns:
        if isinstance(answer, CELEvalError):
            return answer
        if answer:
            kept.append(value)
    return kept


def _map(turns: Iterator[tuple[Any, Any]]) -> Any:
    made = celtypes.ListType()
    for _, answer in turns:
        if isinstance(answer, CELEvalError):
            return answer
        made.append(answer)
    return made


_LOOPS: dict[str, Callable[[Iterator[tuple[Any, Any]]], Any]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
}


def _are_equal(left: Any, right: Any) -> bool:
    """Equality of values that the checker found alike; NaN equals nothing."""
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_are_equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_are_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, float):
        return float(left) == float(right)
    return bool(left == right)


def _equal(left: Any, right: Any) -> Any:
    for each in (left, right):
        if isinstance(each, CELEvalError):
            return each
    return celtypes.BoolType(_are_equal(left, right))


def _unequal(left: Any, right: Any) -> Any:
    found = _equal(left, right)
    return found if isinstance(found, CELEvalError) else celtypes.BoolType(not found)


def _in(item: Any, container: Any) -> Any:
    for each in (item, container):
        if isinstance(each, CELEvalError):
            return each
    if isinstance(container, dict):
        return celtypes.BoolType(item in container)
    return celtypes.BoolType(any(_are_equal(item, each) for each in container))


def _at(container: Any, index: Any) -> Any:
    for each in (container, index):
        if isinstance(each, CELEvalError):
            return each
    if isinstance(container, list) and not 0 <= index < len(container):
        raise IndexError(f"there is no element {index} of {len(container)}")
    return container[index]


def _divided(left: Any, right: Any) -> Any:
    if isinstance(left, float) and isinstance(right, float) and float(right) == 0.0:
        top = float(left)
        sign = math.copysign(1.0, top) * math.copysign(1.0, float(right))
        return celtypes.DoubleType(math.nan if top == 0.0 or math.isnan(top) else sign * math.inf)
    return base_functions["_/_"](left, right)


def _sum(left: Any, right: Any) -> Any:
    return _as_cel(left + right)


def _difference(left: Any, right: Any) -> Any:
    apart = left - right
    if isinstance(left, datetime) and isinstance(apart, timedelta) and abs(apart) > _LONGEST_APART:
        raise ValueError("integer overflow")
    return _as_cel(apart)


def _as_cel(value: Any) -> Any:
    """Python's own texts and spans of time, which the library's sums leave behind, have none of CEL's methods."""
    if type(value) is str:
        return celtypes.StringType(value)
    return celtypes.DurationType(value) if type(value) is timedelta else value


def _rest(left: Any, right: Any) -> Any:
    if isinstance(left, int) and left == -(2**63) and right == -1:
        raise ValueError("integer overflow")
    return base_functions["_%_"](left, right)


def _int(value: Any) -> Any:
    if isinstance(value, str) and not _WHOLE.fullmatch(value):
        raise ValueError(f'"{value}" is no whole number')
    if isinstance(value, float) and not -(2.0**63) < value < 2.0**63:
        raise ValueError(f"{value} is out of an int's range")
    return celtypes.IntType(int(value))


def _matches(text: Any, pattern: Any) -> Any:
    try:
        return celtypes.BoolType(compiled_pattern(str(pattern)).search(str(text)) is not None)
    except re2.error as error:
        raise ValueError(f"{pattern} is no regular expression: {error}") from None


def _duration(value: Any) -> Any:
    text = str(value)
    if not _SPAN.fullmatch(text):
        raise ValueError(f"{text} is no duration")
    total = sum(Fraction(number) * _MICROS[unit] for number, unit in _SPAN_PART.findall(text))
    if total.denominator != 1:
        raise ValueError(f"{text} is finer than a microsecond")
    return celtypes.DurationType(timedelta(microseconds=int(-total if text.startswith("-") else total)))


def _timestamp(value: Any) -> Any:
    if not _MOMENT.fullmatch(value):
        raise ValueError(f"{value} is no timestamp to the microsecond")
    return celtypes.TimestampType(value)


def _in_zone(name: str) -> Callable[..., Any]:
    """A part of a moment as its zone's clock shows it. `cel-expr` finds a zone by its path: slashes may repeat."""

    def part(moment: Any, *zone: Any) -> Any:
        return base_functions[name](moment, *(celtypes.StringType(_SLASHES.sub("/", each)) for each in zone))

    return part


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _in_zone(name) for name in _PARTS_OF_MOMENTS},
    "_==_": _equal,
    "_!=_": _unequal,
    "_in_": _in,
    "_[_]": _at,
    "_+_": _sum,
    "_-_": _difference,
    "_/_": _divided,
    "_%_": _rest,
    "int": _int,
    "duration": _duration,
    "timestamp": _timestamp,
    "matches": _matches,
}
