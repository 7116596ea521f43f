"""Expressions that compile and still cannot mean what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from engine.policy.cel.port import CelEngine, DoesNotCompile
from engine.policy.cel.types import CelType, Record, Scalar
from engine.policy.rules.expressions import VARIABLES, names_read
from engine.policy.rules.loops import Loop, Scope, Structure
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


def expression_lints(source: str, part: str, variables: Mapping[str, CelType], engine: CelEngine) -> tuple[Lint, ...]:
    """What is wrong with a text that compiles, with its variables written out. ``part`` is its YAML field."""
    tokens = tokens_of(source)
    structure = Structure(tokens, variables)
    found = [
        *_constant(tokens, part, variables),
        *_too_many_steps(structure, variables),
        *_in_loops(structure, variables),
        *_bad_literals(tokens, engine),
        *_time_by_hand(tokens),
    ]
    return tuple(sorted(found, key=lambda lint: lint.offset))


def _constant(tokens: Sequence[Token], part: str, variables: Mapping[str, CelType]) -> Iterator[Lint]:
    if part in _DECIDING and not names_read(tokens, variables):
        message = f"{part} reads nothing, so it is the same for everything"
        yield Lint(0, "constant-expression", message, "let it read something, or remove it")


def _too_many_steps(structure: Structure, scope: Scope) -> Iterator[Lint]:
    steps = structure.steps(scope)
    if steps > MOST_STEPS:
        longest = max(structure.loops(scope), key=lambda loop: structure.steps_of(loop, scope))
        message = f"its loops may take {steps:,} steps; {MOST_STEPS:,} are the most, since the engine gives up later"
        hint = "count with size(), or read a total that is there already, instead of a loop"
        yield Lint(longest.name.start, "too-many-steps", message, hint)


def _in_loops(structure: Structure, scope: Scope, start: int = 0, end: int | None = None) -> Iterator[Lint]:
    """What depends on the variables that are known at a place."""
    at = start
    for loop in structure.loops(scope, start, end):
        yield from _pointless_has(structure, scope, at, loop.start)
        yield from _shadowing(loop, scope)
        yield from _in_loops(structure, structure.inner_scope(loop, scope), loop.start, loop.end)
        at = loop.end
    yield from _pointless_has(structure, scope, at, len(structure.tokens) if end is None else end)


def _shadowing(loop: Loop, scope: Scope) -> Iterator[Lint]:
    for token in loop.variables:
        if token.text in scope or token.text == VARIABLES:
            message = f"the loop's variable {token.text} hides the {token.text} that is there already"
            yield Lint(token.start, "shadowed-name", message, "give the loop's variable another name")


def _pointless_has(structure: Structure, scope: Scope, start: int, end: int) -> Iterator[Lint]:
    tokens = structure.tokens
    for index in range(start, end - 1):
        if tokens[index].text != "has" or tokens[index].follows_dot or tokens[index + 1].text != "(":
            continue
        last = structure.closing(index + 1) - 1
        over = structure.type_ending_at(last - 2, scope)
        if tokens[last].follows_dot and isinstance(over, Record):
            message = f"{over.name}.{tokens[last].text} is always there, and has() does not ask whether it is set"
            yield Lint(tokens[index].start, "pointless-has", message, "compare the value; has() is for a map's keys")


def _time_by_hand(tokens: Sequence[Token]) -> Iterator[Lint]:
    for token, dot, method in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.text == "now" and not token.follows_dot and dot.text == "." and method.text in _CALENDAR_PARTS:
            message = f"now.{method.text}() makes a schedule by hand, where midnight and daylight saving go wrong"
            hint = "name a window in a Calendar, and read windows.NAME"
            yield Lint(token.start, "time-by-hand", message, hint, is_error=False)


def _bad_literals(tokens: Sequence[Token], engine: CelEngine) -> Iterator[Lint]:
    """Literals that can only err, found out by the engine itself."""
    for name, opening, literal, closing in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if literal.kind is not TokenKind.TEXT or (opening.text, closing.text) != ("(", ")"):
            continue
        tried = _tried(name, literal.text)
        if tried is None:
            continue
        what, source, result = tried
        try:
            error = engine.compile(source, {}, result).evaluate({}).error
        except DoesNotCompile as refused:
            error = refused.problems[0].message
        if error:
            yield Lint(literal.start, "bad-literal", f"{literal.text[:80]} is no {what}", _HINTS[what])


_HINTS = {
    "duration": 'write such as "1h30m"; there are no days',
    "time": 'write such as "2026-12-01T09:00:00Z"',
    "time zone": 'write an IANA name such as "America/New_York"',
    "regular expression": "the engine knows RE2's: no look-around, no back-references",
}


def _tried(name: Token, literal: str) -> tuple[str, str, Scalar] | None:
    """What a literal is meant to be, and a text that errs where it is not."""
    if not name.follows_dot:
        if name.text == "duration":
            return "duration", f"duration({literal})", Scalar.DURATION
        return ("time", f"timestamp({literal})", Scalar.TIMESTAMP) if name.text == "timestamp" else None
    if name.text == "matches":
        return "regular expression", f'"".matches({literal})', Scalar.BOOL
    return ("time zone", f"{_SOME_TIME}.{name.text}({literal})", Scalar.INT) if name.text in _TIME_PARTS else None
