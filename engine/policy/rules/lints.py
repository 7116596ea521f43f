"""Expressions that compile and still cannot mean what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from engine.policy.cel.port import CelEngine, DoesNotCompile, Program
from engine.policy.cel.types import CelType, Scalar
from engine.policy.rules.expressions import VARIABLES, names_read
from engine.policy.rules.loops import Scope, Structure
from engine.policy.rules.never_equal import never_equal
from engine.policy.rules.tokens import Token, TokenKind, tokens_of

# Half of what the first engine runs before it gives up.
MOST_STEPS = 5_000
# Parts that decide something; of the others a constant is a plain setting.
_DECIDING = frozenset({"require", "prefer", "candidate", "expression", "matchConditions"})
_CALENDAR_PARTS = ("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours")
_TIME_PARTS = (*_CALENDAR_PARTS, "getMinutes", "getSeconds", "getMilliseconds")
_SOME_TIME = 'timestamp("2026-01-01T00:00:00Z")'


@frozen
class Lint:
    """``offset`` is the code point of the text at which the culprit begins."""

    offset: int
    rule: str
    message: str
    hint: str
    is_error: bool = True


def expression_lints(
    program: Program, part: str, variables: Mapping[str, CelType], engine: CelEngine
) -> tuple[Lint, ...]:
    """What is wrong with an expression that compiles, its variables written out. ``part`` is its YAML field."""
    tokens = tokens_of(program.source)
    structure = Structure(tokens, variables)
    found = [
        *(() if names_read(tokens, variables) else _constant(program, part)),
        *_too_many_steps(structure, variables),
        *_shadowing(structure, variables),
        *_bad_time_zones(tokens, engine),
        *_time_by_hand(tokens),
        *_never_equal(tokens),
    ]
    return tuple(sorted(found, key=lambda lint: lint.offset))


def _constant(program: Program, part: str) -> Iterator[Lint]:
    if part in _DECIDING:
        message = f"{part} reads nothing, so it is the same for everything"
        yield Lint(0, "constant-expression", message, "let it read something, or remove it")
        return
    answer = program.evaluate({})
    if answer.error:
        yield Lint(max(answer.error_at, 0), "constant-expression", f"{part} always errs: {answer.error}", "correct it")
    elif isinstance(answer.value, int | float) and answer.value < 0:
        yield Lint(0, "out-of-range", f"{part} is {answer.value}, and counts from 0", "write 0 for none at all")


def _too_many_steps(structure: Structure, scope: Scope) -> Iterator[Lint]:
    steps = structure.steps(scope)
    if steps > MOST_STEPS:
        longest = max(structure.loops(scope), key=lambda loop: structure.steps_of(loop, scope))
        message = f"its loops may take {steps:,} steps; {MOST_STEPS:,} are the most, since the engine gives up later"
        hint = "count with size(), or read a total that is there already, instead of a loop"
        yield Lint(longest.name.start, "too-many-steps", message, hint)


def _shadowing(structure: Structure, scope: Scope, start: int = 0, end: int | None = None) -> Iterator[Lint]:
    """Loops' variables that hide those of the loops around them; the engines see to what hides a fact."""
    for loop in structure.loops(scope, start, end):
        for token in loop.variables:
            if token.text in scope or token.text == VARIABLES:
                message = f"the loop's variable {token.text} hides the {token.text} that is there already"
                yield Lint(token.start, "shadowed-name", message, "give the loop's variable another name")
        yield from _shadowing(structure, structure.inner_scope(loop, scope), loop.start, loop.end)


def _time_by_hand(tokens: Sequence[Token]) -> Iterator[Lint]:
    for token, dot, method in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.text == "now" and not token.follows_dot and dot.text == "." and method.text in _CALENDAR_PARTS:
            message = f"now.{method.text}() makes a schedule by hand, where midnight and daylight saving go wrong"
            hint = "name a window in a Calendar, and read windows.NAME"
            yield Lint(token.start, "time-by-hand", message, hint, is_error=False)


def _never_equal(tokens: Sequence[Token]) -> Iterator[Lint]:
    for text, message, hint in never_equal(tokens):
        yield Lint(text.start, "never-equal", message, hint, is_error=False)


def _bad_time_zones(tokens: Sequence[Token], engine: CelEngine) -> Iterator[Lint]:
    """Zones that the engine does not know, whatever time it is."""
    for method, opening, zone in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if method.text not in _TIME_PARTS or not method.follows_dot or opening.text != "(":
            continue
        if zone.kind is TokenKind.TEXT and _errs(f"{_SOME_TIME}.{method.text}({zone.text})", engine):
            hint = 'write an IANA name such as "America/New_York"'
            yield Lint(zone.start, "unknown-time-zone", f"{zone.text[:80]} is no time zone", hint)


def _errs(source: str, engine: CelEngine) -> bool:
    try:
        return bool(engine.compile(source, {}, Scalar.INT).evaluate({}).error)
    except DoesNotCompile:
        return True
