"""What an expression's loops run over, how long they are at most, and what their variables are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from engine.policy.cel.types import CelType, ListOf, MapOf, Record
from engine.policy.rules.tokens import Token, TokenKind

MACROS = frozenset(
    {"all", "exists", "exists_one", "existsOne", "map", "filter", "transformList", "transformMap", "transformMapEntry"}
)
_KEEP_ELEMENTS = frozenset({"filter"})
# How long something is taken to be whose type cannot be told, such as what a loop made.
_UNKNOWN_LENGTH = 64
_OPENING, _CLOSING = "([{", ")]}"


@frozen
class Unknown:
    """A value whose type cannot be told; ``most`` is how long it is where it is a list."""

    most: int = _UNKNOWN_LENGTH


@frozen
class Loop:
    """A macro's call. ``variables`` are the tokens that declare its variables, ``end`` is its closing parenthesis."""

    name: Token
    variables: tuple[Token, ...]
    start: int
    end: int
    over: CelType | Unknown

    @property
    def most(self) -> int:
        """How many turns it takes at most."""
        return self.over.most if isinstance(self.over, ListOf | MapOf | Unknown) else 1


Scope = Mapping[str, CelType | Unknown]


class Structure:
    """The loops of one text. Brackets must balance: a text that compiles does."""

    def __init__(self, tokens: Sequence[Token], variables: Mapping[str, CelType]) -> None:
        self.tokens = tokens
        self._variables = variables
        self._opening = dict(_pairs(tokens))
        self._closing = {start: end for end, start in self._opening.items()}

    def loops(self, scope: Scope, start: int = 0, end: int | None = None) -> Iterator[Loop]:
        """The outermost loops among the tokens from ``start`` to ``end``, in order."""
        index, last = start, len(self.tokens) if end is None else end
        while index < last:
            loop = self._loop(index, scope)
            if loop is None:
                index += 1
            else:
                yield loop
                index = loop.end

    def inner_scope(self, loop: Loop, scope: Scope) -> Scope:
        """What is known inside a loop: of two variables the first is an index or a key."""
        element: CelType | Unknown = Unknown()
        if isinstance(loop.over, ListOf):
            element = loop.over.element
        elif isinstance(loop.over, MapOf) and len(loop.variables) == 2:
            element = loop.over.value
        names = [token.text for token in loop.variables]
        return {**scope, **{name: Unknown() for name in names}, **({names[-1]: element} if names else {})}

    def steps(self, scope: Scope, start: int = 0, end: int | None = None) -> int:
        """How many turns all loops take at most, those of nested ones multiplied."""
        return sum(self.steps_of(loop, scope) for loop in self.loops(scope, start, end))

    def steps_of(self, loop: Loop, scope: Scope) -> int:
        """How many turns a loop and those inside it take at most."""
        return loop.most * (1 + self.steps(self.inner_scope(loop, scope), loop.start, loop.end))

    def type_ending_at(self, index: int, scope: Scope) -> CelType | Unknown:
        """The type of the path whose last token this is."""
        token = self.tokens[index] if 0 <= index < len(self.tokens) else None
        if token is None:
            return Unknown()
        if token.kind is TokenKind.NAME:
            if not token.follows_dot:
                return scope.get(token.text, Unknown())
            return _inside(self.type_ending_at(index - 2, scope), token.text)
        if token.text == ")":
            return self._call(self._opening[index], index, scope)
        if token.text == "]":
            return self._bracket(self._opening[index], index, scope)
        return Unknown()

    def _loop(self, index: int, scope: Scope) -> Loop | None:
        token, after = self.tokens[index], list(self.tokens[index + 1 : index + 6])
        if token.text not in MACROS or not token.follows_dot or not after or after[0].text != "(":
            return None
        names = [each for each in (after[1:2] + after[3:4]) if each.kind is TokenKind.NAME]
        commas = [each.text for each in (after[2:3] + after[4:5])]
        # In `all(a, b, …)` the second is a variable only where a third argument follows; in `map(a, b, …)` never.
        both = len(names) == 2 and commas == [",", ","] and token.text not in ("map", "filter")
        variables = tuple(names[: 2 if both else 1])
        over = self.type_ending_at(index - 2, scope)
        return Loop(token, variables, index + 2, self._closing[index + 1], over)

    def _call(self, opening: int, closing: int, scope: Scope) -> CelType | Unknown:
        before = self.tokens[opening - 1] if opening else None
        if before is None or before.kind is not TokenKind.NAME:
            # Parentheses around a path, or around something whose type cannot be told.
            is_path = all(
                token.kind is TokenKind.NAME or token.text in (".", ".?") for token in self._between(opening, closing)
            )
            return self.type_ending_at(closing - 1, scope) if is_path else Unknown()
        if before.follows_dot and before.text in MACROS:
            over = self.type_ending_at(opening - 3, scope)
            if before.text in _KEEP_ELEMENTS:
                return over
            return Unknown(over.most) if isinstance(over, ListOf | MapOf | Unknown) else Unknown()
        return Unknown()

    def _bracket(self, opening: int, closing: int, scope: Scope) -> CelType | Unknown:
        before = self.tokens[opening - 1] if opening else None
        if before is not None and (before.kind is TokenKind.NAME or before.text in (")", "]")):
            over = self.type_ending_at(opening - 1, scope)
            return over.element if isinstance(over, ListOf) else over.value if isinstance(over, MapOf) else Unknown()
        between = self._between(opening, closing)
        return Unknown(1 + sum(token.text == "," for token in between)) if between else Unknown(0)

    def _between(self, opening: int, closing: int) -> Sequence[Token]:
        return self.tokens[opening + 1 : closing]


def _inside(over: CelType | Unknown, name: str) -> CelType | Unknown:
    if isinstance(over, Record):
        return next((each.type for each in over.fields if each.name == name), Unknown())
    return over.value if isinstance(over, MapOf) else Unknown()


def _pairs(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """(closing, opening) of each pair of brackets."""
    open_: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.SYMBOL and token.text[0] in _OPENING:
            open_.append(index)
        elif token.kind is TokenKind.SYMBOL and token.text in _CLOSING and open_:
            yield index, open_.pop()
