"""What must hold of every expression that compiles: it answers, both engines the same, and reads what it says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

from attrs import evolve, frozen

from engine.model.policy import Policy
from engine.model.rule import AnyRule, LimitRule
from engine.policy.cel.engines import engine_named
from engine.policy.cel.port import Answer, Bound, CelEngine, DoesNotCompile, Plain, Program
from engine.policy.cel.types import CelType, Record, Scalar
from engine.policy.facts.schema import variables_for
from engine.policy.rules.compiled import CompiledRule, bundle_of, expressions_of
from tools.fuzzing.facts import FactFuzz
from tools.fuzzing.oracles import INSIDES, Nonsense, promise

_PYTHON_TYPES = {
    Scalar.BOOL: bool,
    Scalar.INT: int,
    Scalar.DOUBLE: float,
    Scalar.STRING: str,
    Scalar.DURATION: timedelta,
    Scalar.TIMESTAMP: datetime,
}
_BATCH = 3


@frozen
class _Asked:
    """A program of a rule with the variables that it may read."""

    rule: AnyRule
    part: str
    program: Program
    variables: Mapping[str, CelType]


def _programs(compiled: CompiledRule, windows: Sequence[str]) -> Iterator[_Asked]:
    rule = compiled.rule
    named = [(part, part, program) for part, program in compiled.programs.items()]
    named += [("matchConditions", f"matchConditions {name}", program) for name, program in compiled.conditions]
    for part, shown_as, program in named:
        variables = variables_for(
            rule.kind,
            part,
            rule.params,
            windows,
            time_sensitive=rule.is_time_sensitive,
            grouped=isinstance(rule, LimitRule) and rule.group_by is not None,
        )
        yield _Asked(rule, shown_as, program, variables)


def check_rules_on_facts(policy: Policy, rng: Random, rounds: int = 1) -> None:
    """Every rule's expressions, on facts made up for them."""
    windows = [window.name for window in policy.windows]
    # Loading has seen to it that portable rules are; to ask once more would cost most of the time.
    bundle = bundle_of(evolve(policy, rules=tuple(evolve(rule, is_portable=False) for rule in policy.rules)))
    portable = {rule.name for rule in policy.rules if rule.is_portable}
    second = engine_named("cel-python")
    for kind in (bundle.requirement_rules, bundle.limit_rules, bundle.disruption_budgets, bundle.guardrails):
        for compiled in kind:
            parts = {part for part, _, _ in expressions_of(compiled.rule)}
            promise(parts == set(compiled.programs), "every part is compiled", compiled.rule)
            for asked in _programs(compiled, windows):
                twin = _twin(asked, second) if compiled.rule.name in portable else None
                for number in range(rounds):
                    _check_once(asked, twin, (bundle.engine, second), rng, is_watched=number == 0)


def _twin(asked: _Asked, second: CelEngine) -> Program:
    """The same expression with the other engine, which takes whatever a portable rule has."""
    try:
        return second.compile(asked.program.source, asked.variables, asked.program.result)
    except DoesNotCompile as refused:
        raise Nonsense("what is portable compiles with both engines", f"{asked.program.source}: {refused}") from None


def _check_once(
    asked: _Asked, twin: Program | None, engines: tuple[CelEngine, CelEngine], rng: Random, *, is_watched: bool
) -> None:
    facts = {variable: FactFuzz(rng).fact(type_) for variable, type_ in asked.variables.items()}
    if is_watched:
        _check_evaluation(asked, engines[0], facts, rng)
    if twin is not None:
        _check_agreement(asked, twin, engines, facts, is_watched=is_watched and rng.random() < 0.3)


def _bound(engine_: CelEngine, variables: Mapping[str, CelType], facts: Mapping[str, Plain]) -> dict[str, Bound]:
    return {name: engine_.bind(type_, facts[name]) for name, type_ in variables.items()}


def check_answer(answer: Answer, program: Program) -> None:
    promise((answer.value is None) == bool(answer.error), "an answer is a value or an error", (program.source, answer))
    promise(-1 <= answer.error_at <= len(program.source), "an error is somewhere in its source", answer)
    if answer.error:
        promise(not INSIDES.search(answer.error), "an error tells no insides", (program.source, answer.error))
        return
    assert isinstance(program.result, Scalar)
    is_exact = type(answer.value) is _PYTHON_TYPES[program.result]
    promise(is_exact, "a value has exactly the declared type", (program.source, answer))
    is_number = not isinstance(answer.value, float) or math.isfinite(answer.value)
    promise(is_number, "a value is a number", (program.source, answer))


def _check_evaluation(asked: _Asked, engine_: CelEngine, facts: Mapping[str, Plain], rng: Random) -> None:
    """One engine alone: as one value, observed, in a batch, and with all that it does not read changed."""
    program = asked.program
    bound = _bound(engine_, asked.variables, facts)
    answer = program.evaluate(bound)
    check_answer(answer, program)
    observed, parts = program.observe(bound)
    promise(observed == answer, "what is watched answers the same", (program.source, answer, observed))
    for part in parts:
        within = 0 <= part.span.start < part.span.end <= len(program.source)
        promise(within, "a part is in its source", (program.source, part.span))
    other = _bound(engine_, asked.variables, _with_unread_changed(asked, facts, rng))
    answer_of_other = program.evaluate(other)
    promise(
        alike(answer, answer_of_other),
        "what is not read changes nothing",
        (program.source, sorted(program.reads), answer, answer_of_other),
    )
    _check_batch(asked, engine_, bound, rng)


def _with_unread_changed(asked: _Asked, facts: Mapping[str, Plain], rng: Random) -> dict[str, Plain]:
    made = FactFuzz(rng)
    changed = dict(facts)
    for name, type_ in asked.variables.items():
        plain = facts[name]
        if isinstance(type_, Record) and isinstance(plain, Mapping):
            changed[name] = {
                each.name: plain[each.name]
                if _is_read(f"{name}.{each.name}", asked.program.reads)
                else made.fact(each.type)
                for each in type_.fields
            }
        elif not _is_read(name, asked.program.reads):
            changed[name] = made.fact(type_)
    return changed


def _is_read(path: str, reads: Iterable[str]) -> bool:
    """Whether any read is of the path, of something in it, or of all that it is part of."""
    return any(
        read == path
        or read.startswith((f"{path}.", f"{path}["))
        or (read.endswith("*") and path.startswith(read[:-1].rstrip(".")))
        or path.startswith(f"{read}.")
        for read in reads
    )


def _check_batch(asked: _Asked, engine_: CelEngine, bound: Mapping[str, Bound], rng: Random) -> None:
    variable = next((name for name in ("instanceType", "pod", "node") if name in asked.variables), None)
    if variable is None:
        return
    type_ = asked.variables[variable]
    items = [engine_.bind(type_, FactFuzz(rng).fact(type_)) for _ in range(_BATCH)]
    each = asked.program.evaluate_each(bound, variable, items)
    alone = [asked.program.evaluate({**bound, variable: item}) for item in items]
    for mine, theirs in zip(each, alone, strict=True):
        check_answer(mine, asked.program)
        promise(alike(mine, theirs), "a batch answers as each alone", (asked.program.source, mine, theirs))


def _check_agreement(
    asked: _Asked,
    twin: Program,
    engines: tuple[CelEngine, CelEngine],
    facts: Mapping[str, Plain],
    *,
    is_watched: bool,
) -> None:
    first, second = engines
    mine = asked.program.evaluate(_bound(first, asked.variables, facts))
    bound = _bound(second, asked.variables, facts)
    theirs = twin.evaluate(bound)
    check_answer(theirs, twin)
    read = {name: facts[name] for name in facts if _is_read(name, asked.program.reads)}
    promise(asked.program.result == twin.result, "both engines find the same type", asked.program.source)
    promise(alike(mine, theirs), "both engines agree", f"{asked.program.source!r} {mine} {theirs} on {read!r:.300}")
    if is_watched:
        promise(alike(twin.observe(bound)[0], theirs), "what is watched answers the same", asked.program.source)


def alike(mine: Answer, theirs: Answer) -> bool:
    """Both the same value of the same type, or both errors."""
    if mine.error or theirs.error:
        return bool(mine.error) and bool(theirs.error)
    return type(mine.value) is type(theirs.value) and mine.value == theirs.value
