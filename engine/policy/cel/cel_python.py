"""The second engine: cel-python's interpreter, for the portable subset. It checks on its own, by our own types."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

import celpy
from attrs import evolve
from celpy import celtypes
from celpy.evaluation import CELEvalError

from engine.policy.cel.answers import result_problem, result_types
from engine.policy.cel.intake import Intakes
from engine.policy.cel.interpreter import FUNCTIONS, Interpreter, TooManyTurns, new_environment
from engine.policy.cel.outcomes import NO_LOOPS, STOPPED, Outcome, Scope, innermost_error, observed_parts
from engine.policy.cel.port import Answer, Bound, DoesNotCompile, Observed, Plain, Problem, Value
from engine.policy.cel.portable_functions import shown
from engine.policy.cel.portable_tree import NOT_PORTABLE, PortableReader, Refused, parsed
from engine.policy.cel.reads import reads_of
from engine.policy.cel.source_tree import Node
from engine.policy.cel.types import CelType, Scalar
from engine.policy.cel.written import written_problems

# The library is not made for one environment in several threads; a context variable has none but the thread's own.
_ENVIRONMENT: ContextVar[celpy.Environment] = ContextVar("cel-python environment")


def _environment() -> celpy.Environment:
    found = _ENVIRONMENT.get(None)
    if found is None:
        found = new_environment()
        _ENVIRONMENT.set(found)
    return found


class CelPythonEngine:
    """Slower than cel-expr by two orders: made for a second opinion."""

    name = "cel-python"

    def __init__(self) -> None:
        _environment()
        self._intakes = Intakes(
            scalars={
                Scalar.BOOL: celtypes.BoolType,
                Scalar.INT: celtypes.IntType,
                Scalar.DOUBLE: celtypes.DoubleType,
                Scalar.STRING: celtypes.StringType,
                Scalar.DURATION: celtypes.DurationType,
                Scalar.TIMESTAMP: celtypes.TimestampType,
            },
            records=lambda record: _record,
            lists=celtypes.ListType,
            maps=_map,
        )

    def compile(
        self, source: str, variables: Mapping[str, CelType], result: CelType | tuple[CelType, ...]
    ) -> CelPythonProgram:
        """Raises DoesNotCompile, with ``cel-not-portable`` for what only cel-expr takes."""
        wanted = result_types(result)
        tree, type_ = _checked(source, variables)
        if type_ not in wanted:
            raise DoesNotCompile((result_problem(shown(type_), wanted),))
        return CelPythonProgram(source, Scalar(type_), variables, tree)

    def bind(self, type_: CelType, plain: Plain) -> Bound:
        """The library's own maps, lists and scalars."""
        bound: Bound = self._intakes.take(type_, plain)
        return bound


def portable_problems(source: str, variables: Mapping[str, CelType]) -> tuple[Problem, ...]:
    """Why an expression that cel-expr takes is outside of the portable subset; () when it is inside."""
    try:
        _checked(source, variables)
    except DoesNotCompile as refused:
        return tuple(evolve(each, rule=NOT_PORTABLE) for each in refused.problems)
    return ()


class CelPythonProgram:
    """A checked expression of the portable subset."""

    def __init__(self, source: str, result: Scalar, variables: Mapping[str, CelType], tree: Node) -> None:
        self.source = source
        self.result: CelType = result
        self.reads = reads_of(tree, variables)
        self._expected = result
        self._tree = tree

    def evaluate(self, facts: Mapping[str, Bound]) -> Answer:
        """See `port.Program`."""
        parts = InterpretedParts(facts)
        outcome = parts.outcome(self._tree, NO_LOOPS)
        if outcome.answer is not None and outcome.answer.error:
            return innermost_error(self._tree, parts) or outcome.answer
        return _exact(outcome, self._expected)

    def evaluate_each(self, facts: Mapping[str, Bound], variable: str, items: Sequence[Bound]) -> tuple[Answer, ...]:
        """See `port.Program`; one after the other."""
        return tuple(self.evaluate({**facts, variable: item}) for item in items)

    def observe(self, facts: Mapping[str, Bound]) -> tuple[Answer, tuple[Observed, ...]]:
        """See `port.Program`."""
        return self.evaluate(facts), observed_parts(self._tree, self.source, InterpretedParts(facts))


class InterpretedParts:
    """Parts of an expression on certain facts, each interpreted alone."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts
        self._known: dict[tuple[Node, int], Outcome] = {}
        self._scopes: list[Scope] = []

    def outcome(self, node: Node, scope: Scope) -> Outcome:
        key = (node, id(scope))
        if key not in self._known:
            self._scopes.append(scope)  # as long as it lives, no other scope has its id
            self._known[key] = _outcome(node, {**self._facts, **scope})
        return self._known[key]

    def turns(self, node: Node, over: Outcome) -> Sequence[Scope]:
        return [{node.variables[0]: value} for value in over.raw]

    def bound(self, node: Node, value: Outcome) -> Scope:
        return {node.variables[0]: value.raw}


def _checked(source: str, variables: Mapping[str, CelType]) -> tuple[Node, CelType]:
    reader = PortableReader(source, variables)
    try:
        tree, type_ = reader.read(parsed(_environment().compile, source))
    except Refused as refused:
        reader.problems.append(refused.problem)
        raise DoesNotCompile(tuple(sorted(reader.problems, key=lambda each: each.offset))) from None
    except RecursionError:
        raise DoesNotCompile((Problem(0, "cel-too-deep", "the expression is nested too deep"),)) from None
    problems = reader.problems or written_problems(tree, variables, lambda node: _outcome(node, {}))
    if problems:
        raise DoesNotCompile(tuple(sorted(problems, key=lambda each: each.offset)))
    return tree, type_


def _outcome(node: Node, facts: Mapping[str, Any]) -> Outcome:
    try:
        found = Interpreter(_environment(), node.message, FUNCTIONS).evaluate(facts)
    except CELEvalError as error:
        return Outcome(Answer(error=_told(error)))
    except TooManyTurns:
        return Outcome(Answer(error=STOPPED))
    except RecursionError:
        return Outcome(Answer(error="nested too deep to be evaluated"))
    except Exception as error:  # the library lets Python's own errors out in places: they are the expression's errors
        return Outcome(Answer(error=f"{type(error).__name__}: {error}"))
    return Outcome(_scalar(found), found)


def _scalar(found: Any) -> Answer | None:
    """The answer as a plain value; None for a list, a map or a record. A map is never a bool, nor an int a double."""
    plain: Value
    match found:
        case celtypes.BoolType():
            plain = bool(found)
        case bool():
            return Answer(error="came to something that is no value of CEL")
        case celtypes.IntType():
            plain = int(found)
        case float():
            plain = float(found)
        case str():
            plain = str.__str__(found)
        case timedelta():
            plain = timedelta(days=found.days, seconds=found.seconds, microseconds=found.microseconds)
        case datetime():
            moment = found.astimezone(UTC)
            plain = datetime.combine(moment.date(), moment.time(), UTC)
        case list() | dict():
            return None
        case _:
            return Answer(error=f"came to something that is no value of CEL: {type(found).__name__}")
    return Answer(value=plain)


_NO_MEMBER = re.compile(r"no such member in mapping: '(.*)'")
_EXPECTED = {
    Scalar.BOOL: bool,
    Scalar.INT: int,
    Scalar.DOUBLE: float,
    Scalar.STRING: str,
    Scalar.DURATION: timedelta,
    Scalar.TIMESTAMP: datetime,
}


def _exact(outcome: Outcome, expected: Scalar) -> Answer:
    answer = outcome.answer
    if answer is None or type(answer.value) is not _EXPECTED[expected]:
        return Answer(error=f"came to something else than a value of type {expected.value}")
    if isinstance(answer.value, float) and not math.isfinite(answer.value):
        return Answer(error=f"came to {answer.value}, which is no number to act upon")
    return answer


def _told(error: CELEvalError) -> str:
    text = str(error.args[0]) if error.args else "no value"
    if text.startswith("found no matching overload"):
        # The library's way of saying so: types were checked, so an operand is an error, which has its own words.
        return "a part of this erred"
    if found := _NO_MEMBER.fullmatch(text):
        return f'there is no key "{found[1]}"'
    beneath = error.args[2] if len(error.args) > 2 else None
    return str(beneath[0]) if text == "return error for overflow" and beneath else text


def _map(values: Mapping[str, Any]) -> Any:
    return celtypes.MapType({celtypes.StringType(key): value for key, value in values.items()})


def _record(**fields: Any) -> Any:
    return _map(fields)
