"""What cel-expr answers, taken for exactly what it is: a value of the expected type, or an error."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from cel_expr_python import cel

from engine.policy.cel.outcomes import STOPPED
from engine.policy.cel.port import Answer, Problem, Value
from engine.policy.cel.types import CelType, Scalar

TRUE = Answer(value=True)
FALSE = Answer(value=False)
CEL_TYPES = {
    Scalar.BOOL: cel.Type.BOOL,
    Scalar.INT: cel.Type.INT,
    Scalar.DOUBLE: cel.Type.DOUBLE,
    Scalar.STRING: cel.Type.STRING,
    Scalar.DURATION: cel.Type.DURATION,
    Scalar.TIMESTAMP: cel.Type.TIMESTAMP,
}
PYTHON_TYPES = {
    Scalar.BOOL: bool,
    Scalar.INT: int,
    Scalar.DOUBLE: float,
    Scalar.STRING: str,
    Scalar.DURATION: timedelta,
    Scalar.TIMESTAMP: datetime,
}
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_NO_KEY = re.compile(r"Key not found in map : (.*)", re.DOTALL)
_NO_FACT = re.compile(r'No value with name "(.*)" found in Activation')


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
    if kind == CEL_TYPES[expected]:
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
    """The library's error in a person's words."""
    plain = _STATUS.sub("", error)
    if found := _NO_KEY.fullmatch(plain):
        return f"there is no key {found[1]}"
    if found := _NO_FACT.fullmatch(plain):
        return f"no fact was given for {found[1]}"
    if "teration budget" in plain:
        return STOPPED
    return plain
