"""A rule's parameters: typed declarations in its file, values in the stack's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from attrs import frozen

from engine.model.rule import ParameterValue
from engine.policy.findings import ObjectFindings
from engine.policy.located import Path, Scalar, describe
from engine.policy.rules.parts import ParameterPart

PARAMS: Path = ("spec", "params")
# CEL's integers have 64 bits.
_LEAST_INT, _MOST_INT = -(2**63), 2**63 - 1
_WORDS = {"bool": "true or false", "int": "a whole number", "double": "a number", "string": "a string"}

Refuse = Callable[[str, str, str], None]


@frozen
class Parameter:
    """What a rule declares. ``type`` is bool, int, double or string; bounds are for numbers, and inclusive."""

    name: str
    type: str
    default: ParameterValue | None = None
    least: float | None = None
    most: float | None = None

    def taken(self, value: object, shown: str, refuse: Refuse) -> ParameterValue | None:
        """The value as the parameter's own type; None, with ``refuse(rule, message, hint)``, where it may not be."""
        typed = _typed(value, self.type)
        if typed is None:
            hint = "put it in quotes" if self.type == "string" else f"write {_WORDS[self.type]}"
            refuse("param-type", f"the parameter {self.name} is {_WORDS[self.type]}, found {shown}", hint)
            return None
        if self.least is not None and isinstance(typed, int | float) and typed < self.least:
            refuse("param-out-of-range", f"{self.name} is {shown}, below its min {self.least:g}", "raise it")
            return None
        if self.most is not None and isinstance(typed, int | float) and typed > self.most:
            refuse("param-out-of-range", f"{self.name} is {shown}, above its max {self.most:g}", "lower it")
            return None
        return typed


def _typed(value: object, kind: str) -> ParameterValue | None:
    match kind, value:
        case "bool", bool():
            return value
        case "string", str():
            return value
        case "int", int() if not isinstance(value, bool) and _LEAST_INT <= value <= _MOST_INT:
            return value
        case "double", int() | float() if not isinstance(value, bool):
            return _finite(value)
    return None


def _finite(value: float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def declared(parts: Mapping[str, ParameterPart], findings: ObjectFindings) -> tuple[Parameter, ...]:
    """The declarations; what is wrong with them goes to ``findings``."""
    return tuple(_declared(name, part, findings) for name, part in parts.items())


def _declared(name: str, part: ParameterPart, findings: ObjectFindings) -> Parameter:
    path = (*PARAMS, name)

    def value(key: str, of: Parameter) -> ParameterValue | None:
        written = getattr(part, key)
        if written is None:
            return None

        def refuse(rule: str, message: str, hint: str) -> None:
            findings.error((*path, key), rule, f"{key} of {message}" if rule == "param-type" else message, hint)
            findings.take_out((*path, key))

        plain = written.value if isinstance(written, Scalar) else written
        return of.taken(plain, describe(written), refuse)

    unbounded = Parameter(name, part.type)
    if part.type not in ("int", "double"):
        for key in ("min", "max"):
            if getattr(part, key) is not None:
                message = f"{name} is {_WORDS[part.type]}, which has no {key}"
                findings.error_at_key((*path, key), "contradiction", message, "remove it")
        return Parameter(name, part.type, value("default", unbounded))
    least, most = value("min", unbounded), value("max", unbounded)
    bounded = Parameter(name, part.type, None, _number(least), _number(most))
    if bounded.least is not None and bounded.most is not None and bounded.least > bounded.most:
        message = f"min of {name} is above its max, so no value is allowed"
        findings.error((*path, "min"), "contradiction", message, "exchange them")
        return Parameter(name, part.type, value("default", unbounded))
    return Parameter(name, part.type, value("default", bounded), bounded.least, bounded.most)


def _number(value: ParameterValue | None) -> float | None:
    return value if isinstance(value, int | float) else None
