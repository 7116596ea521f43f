"""Requirement rules whose programs are Python functions, so that what is done with answers is tested apart from CEL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from engine.model.diagnostic import Position
from engine.model.rule import Enforcement, Expression, RequirementRule, Selection
from engine.policy.cel.port import Answer, Bound, Observed
from engine.policy.cel.types import CelType, Scalar
from engine.policy.rules.compiled import Bundle, CompiledRule

Facts = Mapping[str, Any]
SOMEWHERE = Position("policies/rules/test.yaml", 1, 1)


@define(eq=False)
class PythonProgram:
    """Counts what it was asked; an exception is an error."""

    function: Callable[[Facts], object]
    reads: frozenset[str]
    result: CelType = Scalar.BOOL
    source: str = "python"
    asked: list[Facts] = field(factory=list)

    def evaluate(self, facts: Mapping[str, Bound]) -> Answer:
        self.asked.append(facts)
        try:
            return Answer(value=self.function(facts))  # type: ignore[arg-type]
        except Exception as error:
            return Answer(error=f"{type(error).__name__}: {error}")

    def evaluate_each(self, facts: Mapping[str, Bound], variable: str, items: Sequence[Bound]) -> tuple[Answer, ...]:
        return tuple(self.evaluate({**facts, variable: item}) for item in items)

    def observe(self, facts: Mapping[str, Bound]) -> tuple[Answer, tuple[Observed, ...]]:
        return self.evaluate(facts), ()


class PythonEngine:
    """Takes facts in as they are."""

    name = "python"

    def compile(self, source: str, variables: object, result: object) -> PythonProgram:
        raise NotImplementedError

    def bind(self, type_: CelType, plain: object) -> Bound:
        return plain  # type: ignore[return-value]


def rule(
    name: str = "rule",
    function: Callable[[Facts], object] = lambda facts: True,
    reads: Iterable[str] = ("instanceType.name",),
    *,
    prefers: bool = False,
    weight: float = 1.0,
    when: PythonProgram | None = None,
    told: PythonProgram | None = None,
    enforcement: Enforcement = Enforcement.DENY,
    match: Selection | None = None,
) -> CompiledRule:
    """A ``require``, or with ``prefers`` a ``prefer``; ``when`` is a match condition, ``told`` the message's."""
    text = Expression("python", SOMEWHERE)
    part = "prefer" if prefers else "require"
    value = RequirementRule(
        name=name,
        position=SOMEWHERE,
        message=f"{name} says so",
        require=None if prefers else text,
        prefer=text if prefers else None,
        weight=weight,
        enforcement=enforcement,
        match=match or Selection(),
    )
    programs = {part: PythonProgram(function, frozenset(reads), Scalar.DOUBLE if prefers else Scalar.BOOL)}
    if told is not None:
        programs["messageExpression"] = told
    return CompiledRule(value, (("when", when),) if when else (), programs, sources={})


def bundle(*rules: CompiledRule) -> Bundle:
    in_order = tuple(sorted(rules, key=lambda each: each.rule.name))
    return Bundle(PythonEngine(), in_order, (), (), ())


def main_of(compiled: CompiledRule) -> PythonProgram:
    """The program of its ``require`` or ``prefer``."""
    program = compiled.programs.get("require") or compiled.programs["prefer"]
    assert isinstance(program, PythonProgram)
    return program
