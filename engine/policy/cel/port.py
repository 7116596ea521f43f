"""The port behind which a CEL library works. Both engines answer it, and on the portable subset they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from attrs import frozen

from engine.policy.cel.types import CelType

# What a fact is made of before an engine takes it in: records and maps are dicts, lists are sequences.
Plain = bool | int | float | str | datetime | timedelta | Mapping[str, "Plain"] | Sequence["Plain"]
Value = bool | int | float | str | datetime | timedelta


@frozen
class Answer:
    """What an expression came to: exactly one of a value and an error. An error is never taken for a value.

    ``error_at`` is the code-point offset in the source of the innermost expression that erred, -1 where unknown.
    """

    value: Value | None = None
    error: str = ""
    error_at: int = -1


@frozen
class Span:
    """A part of a source, in code points: ``[start, end)``."""

    start: int
    end: int


@frozen
class Observed:
    """A sub-expression and what it came to; ``answers`` has one entry outside of loops, one for each turn inside.

    ``is_bool`` tells a bool sub-expression, whose both outcomes coverage asks for.
    """

    span: Span
    text: str
    answers: tuple[Answer, ...]
    is_bool: bool


@frozen
class Problem:
    """Why a source does not compile. ``offset`` in code points; ``rule`` a stable id such as ``cel-syntax``."""

    offset: int
    rule: str
    message: str
    hint: str = ""


class DoesNotCompile(Exception):
    """Carries every problem that the checker found."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(each.message for each in problems))


class Bound(Protocol):
    """A fact as an engine has taken it in. Making one costs more than evaluating; use it again and again."""


class Program(Protocol):
    """A checked expression. ``reads`` are exact paths such as ``pod.labels.tier`` or ``pod.gpus``; a path that ends in
    ``*`` is all below it (``pod.labels.*``), for an index that is not a literal or a loop over the whole."""

    source: str
    result: CelType
    reads: frozenset[str]

    def evaluate(self, facts: Mapping[str, Bound]) -> Answer:
        """Never raises for what an expression does: budgets that run out and wrong result types are errors too."""
        ...

    def evaluate_each(self, facts: Mapping[str, Bound], variable: str, items: Sequence[Bound]) -> tuple[Answer, ...]:
        """As `evaluate` with ``variable`` each of the items in turn, in one call where the engine can. An item that
        errs does not spoil the others."""
        ...

    def observe(self, facts: Mapping[str, Bound]) -> tuple[Answer, tuple[Observed, ...]]:
        """The answer, and what every sub-expression that was reached came to, outermost first. Slow: for people."""
        ...


class CelEngine(Protocol):
    """``name`` is what ``--cel-engine`` takes."""

    name: str

    def compile(self, source: str, variables: Mapping[str, CelType], result: CelType | tuple[CelType, ...]) -> Program:
        """``result`` is what the expression has to come to, one of several where a tuple: `Program.result` tells which.

        Raises DoesNotCompile, and TypeError for a ``result`` that is no Scalar: a mistake of ours.
        """
        ...

    def bind(self, type_: CelType, plain: Plain) -> Bound:
        """Takes a fact in. Raises TypeError or ValueError for one that is not of the type: a mistake of ours."""
        ...
