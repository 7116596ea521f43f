"""The first engine: Google's CEL through cel-expr-python. It checks types, and evaluates what it has checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from attrs import define, frozen
from cel_expr_python import cel

from engine.policy.cel.checker_messages import CheckerMessages, worded
from engine.policy.cel.messages import RecordMessages
from engine.policy.cel.port import Answer, Bound, DoesNotCompile, Observed, Plain, Problem, Value
from engine.policy.cel.types import CelType, Record, Scalar

TRUE = Answer(value=True)
FALSE = Answer(value=False)
NO_BOOL = Answer(error="came to something that is no bool")
LOOP_STEPS = 10_000

_EXTENSIONS = """\
name: nodewright
extensions:
- name: optional
- name: strings
- name: math
- name: bindings
- name: two-var-comprehensions
"""
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_USES_OF_AN_ACTIVATION = 1_000
_ITEMS = "items__"
_PYTHON_TYPES = {
    Scalar.BOOL: bool,
    Scalar.INT: int,
    Scalar.DOUBLE: float,
    Scalar.STRING: str,
    Scalar.DURATION: timedelta,
    Scalar.TIMESTAMP: datetime,
}
_CEL_TYPES = {
    Scalar.BOOL: cel.Type.BOOL,
    Scalar.INT: cel.Type.INT,
    Scalar.DOUBLE: cel.Type.DOUBLE,
    Scalar.STRING: cel.Type.STRING,
    Scalar.DURATION: cel.Type.DURATION,
    Scalar.TIMESTAMP: cel.Type.TIMESTAMP,
}


class CelExprEngine:
    """Keeps one environment for each set of variables, and one message type for each Record."""

    name = "cel-expr"

    def __init__(self) -> None:
        self.messages = RecordMessages()
        self._configuration = cel.NewEnvConfigFromYaml(_EXTENSIONS)
        self._environments: dict[frozenset[tuple[str, CelType]], Environment] = {}

    def compile(
        self, source: str, variables: Mapping[str, CelType], result: CelType | tuple[CelType, ...]
    ) -> CelExprProgram:
        """Raises DoesNotCompile with every problem; TypeError for a result that is no Scalar."""
        wanted = result_types(result)
        environment = self.environment(variables)
        expression = environment.compile(source)
        checked = expression.return_type()
        for each in wanted:
            if checked == _CEL_TYPES[each]:
                return CelExprProgram(source, each, environment, expression, self)
        raise DoesNotCompile((result_problem(worded(checked.name(), self.messages.records).lower(), wanted),))

    def bind(self, type_: CelType, plain: Plain) -> Bound:
        """A protobuf message for a record; see `RecordMessages`."""
        bound: Bound = self.messages.intake(type_)(plain, type_.name if isinstance(type_, Record) else "the fact")
        return bound

    def environment(self, variables: Mapping[str, CelType]) -> Environment:
        """The environment in which these variables are declared."""
        key = frozenset(variables.items())
        if key not in self._environments:
            declared = {name: self.messages.checked_as(type_) for name, type_ in variables.items()}
            self._environments[key] = Environment(MappingProxyType(dict(variables)), self.declaring(declared), self)
        return self._environments[key]

    def declaring(self, variables: Mapping[str, Any]) -> Any:
        """The library's environment for variables that have the library's types."""
        return cel.NewEnv(descriptor_pool=self.messages.pool, config=self._configuration, variables=dict(variables))


@define(slots=True)
class Environment:
    """One set of variables. It keeps the facts that it took in last: rules of one pass read the same ones."""

    variables: Mapping[str, CelType]
    library: Any
    engine: CelExprEngine
    _taken: tuple[tuple[str, Bound | None], ...] = ()
    _activation: Any = None
    _uses: int = 0

    def compile(self, source: str) -> Any:
        """Raises DoesNotCompile."""
        try:
            return self.library.compile(source)
        except RuntimeError as error:
            read = CheckerMessages(source, self.variables, self.engine.messages.records)
            raise DoesNotCompile(read.problems(str(error))) from None

    def activation(self, facts: Mapping[str, Bound]) -> Any:
        """The facts as taken in before, where they are the very same objects.

        What evaluations allocate lives as long as the facts they ran on, so these are taken in anew once in a while.
        """
        self._uses += 1
        if self._activation is None or self._uses > _USES_OF_AN_ACTIVATION or not self._are_taken(facts):
            self._taken = tuple((name, facts.get(name)) for name in self.variables)
            self._activation = self.library.Activation({name: each for name, each in self._taken if each is not None})
            self._uses = 0
        return self._activation

    def _are_taken(self, facts: Mapping[str, Bound]) -> bool:
        for name, bound in self._taken:  # noqa: SIM110 - this loop runs before each evaluation, all() takes twice as long
            if facts.get(name) is not bound:
                return False
        return True


class CelExprProgram:
    """A checked expression of cel-expr."""

    def __init__(
        self, source: str, result: Scalar, environment: Environment, expression: Any, engine: CelExprEngine
    ) -> None:
        self.source = source
        self.result: CelType = result
        self._expected = result
        self.reads: frozenset[str] = frozenset()
        self._environment = environment
        self._expression = expression
        self._engine = engine
        self._batches: dict[str, _Batch | None] = {}

    def evaluate(self, facts: Mapping[str, Bound]) -> Answer:
        """See `port.Program`; 3 to 6 microseconds where the facts are the ones of the evaluation before."""
        return self._answer(self._expression, self._environment.activation(facts))

    def evaluate_each(self, facts: Mapping[str, Bound], variable: str, items: Sequence[Bound]) -> tuple[Answer, ...]:
        """See `port.Program`. All items go into one evaluation; where it errs, into two halves, down to single ones."""
        if variable not in self._batches:
            self._batches[variable] = self._batch(variable)
        batch = self._batches[variable]
        return self._each(batch, facts, variable, items)

    def observe(self, facts: Mapping[str, Bound]) -> tuple[Answer, tuple[Observed, ...]]:
        """See `port.Program`."""
        return self.evaluate(facts), ()

    def _each(
        self, batch: _Batch | None, facts: Mapping[str, Bound], variable: str, items: Sequence[Bound]
    ) -> tuple[Answer, ...]:
        if batch is None or len(items) <= 1:
            return tuple(self.evaluate({**facts, variable: item}) for item in items)
        if len(items) < LOOP_STEPS and (answers := batch.answers(facts, items, self._expected)) is not None:
            return answers
        half = len(items) // 2
        return (
            *self._each(batch, facts, variable, items[:half]),
            *self._each(batch, facts, variable, items[half:]),
        )

    def _batch(self, variable: str) -> _Batch | None:
        others = {name: type_ for name, type_ in self._environment.variables.items() if name != variable}
        type_ = self._environment.variables[variable]
        messages = self._engine.messages
        declared = {name: messages.checked_as(each) for name, each in others.items()}
        name, made = messages.batch_of(type_) if isinstance(type_, Record) else ("", None)
        declared[_ITEMS] = cel.Type(name) if name else cel.Type.List(messages.checked_as(type_))
        library = self._engine.declaring(declared)
        try:
            loop = library.compile(f"{_ITEMS}{'.items' if name else ''}.map({variable}, {self.source}\n)")
        except RuntimeError:
            return None  # one level deeper than the parser goes: each item is evaluated alone
        return _Batch(tuple(others), library, loop, made)

    def _answer(self, expression: Any, activation: Any) -> Answer:
        try:
            found = expression.eval(activation)
        except RuntimeError as error:
            return Answer(error=stopped(str(error)))
        plain = found.plain_value()
        if plain is True:
            return TRUE
        if plain is False:
            return FALSE
        return read_answer(found, plain, self._expected)


@frozen
class _Batch:
    """The expression in a loop over many values of one variable."""

    others: tuple[str, ...]
    library: Any
    loop: Any
    made: Any

    def answers(self, facts: Mapping[str, Bound], items: Sequence[Bound], result: Scalar) -> tuple[Answer, ...] | None:
        """None when anything at all erred."""
        data = {name: facts[name] for name in self.others if name in facts}
        data[_ITEMS] = self.made(items=items) if self.made else list(items)
        try:
            found = self.loop.eval(self.library.Activation(data)).plain_value()
        except RuntimeError:
            return None
        if not isinstance(found, list) or len(found) != len(items):
            return None
        if result is Scalar.BOOL:
            return tuple([TRUE if each is True else FALSE if each is False else NO_BOOL for each in found])
        expected = _PYTHON_TYPES[result]
        if not all(type(each) is expected for each in found):
            return None
        return tuple(finite(each) for each in found)


def result_types(result: CelType | tuple[CelType, ...]) -> tuple[Scalar, ...]:
    """What an expression may come to. Raises TypeError for anything but Scalars."""
    wanted = result if isinstance(result, tuple) else (result,)
    scalars = tuple(each for each in wanted if isinstance(each, Scalar))
    if len(scalars) != len(wanted) or not scalars:
        raise TypeError(f"an expression comes to a scalar, not {result!r:.100}")
    return scalars


def result_problem(found: str, wanted: Sequence[Scalar]) -> Problem:
    """The problem of an expression that comes to something else than its field takes."""
    expected = " or ".join(each.value for each in wanted)
    hint = ""
    if found == "int" and Scalar.DOUBLE in wanted:
        hint = "write a double, such as 5.0, or double(COUNT)"
    elif found == "double" and Scalar.INT in wanted:
        hint = "write int(X), which cuts the fraction off"
    elif found == "dyn":
        hint = f"say which type it is: {expected.split()[0]}(X)"
    return Problem(0, "cel-result-type", f"this comes to a value of type {found}, expected {expected}", hint)


def read_answer(found: Any, plain: Any, expected: Scalar) -> Answer:
    """A value of exactly the expected type, or an error: what else came out is named, never used."""
    kind = found.type()
    if kind == _CEL_TYPES[expected]:
        return finite(plain)
    if kind == cel.Type.ERROR:
        return Answer(error=told(str(plain)))
    return Answer(error=f"came to a value of type {kind.name().lower()}, expected {expected.value}")


def finite(value: Value) -> Answer:
    """A double that is no number, or without bounds, decides nothing: every comparison with it misleads."""
    if isinstance(value, float) and not math.isfinite(value):
        return Answer(error=f"came to {value}, which is no number to act upon")
    return Answer(value=value)


def told(error: str) -> str:
    """The library's error without its status word."""
    return _STATUS.sub("", error)


def stopped(error: str) -> str:
    """Why the library gave up on an evaluation."""
    if "Iteration budget" in error or "iteration" in error.lower():
        return f"stopped after {LOOP_STEPS:,} loop steps; loops inside loops multiply"
    return told(error)
