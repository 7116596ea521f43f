"""Variables put into the expressions that read them, as text, and the way back to where each character stands.

A variable is expanded token by token, in parentheses: it costs nothing where nobody reads it, errs only where it is
read, and works on every engine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from engine.model.diagnostic import Position
from engine.model.rule import Expression, NamedExpression
from engine.policy.findings import did_you_mean
from engine.policy.rules.placing import position_in
from engine.policy.rules.tokens import Token, TokenKind, ends_in_comment, first_unbalanced, tokens_of

VARIABLES = "variables"
_LONGEST = 20_000

# Takes a position, a rule id, a message and a hint.
Tell = Callable[[Position, str, str, str], None]


@frozen
class Piece:
    """The characters from ``start`` on are those of ``expression`` from ``offset`` on, ``length`` of them."""

    start: int
    expression: Expression
    offset: int
    length: int


@frozen
class Expanded:
    """The text that is compiled, and where it comes from."""

    text: str
    pieces: tuple[Piece, ...]

    def piece_at(self, offset: int) -> Piece:
        """What a character comes from; parentheses that were added belong to what they enclose."""
        index = bisect_right(self.pieces, offset, key=lambda piece: piece.start) - 1
        return self.pieces[max(index, 0)]

    def position(self, offset: int) -> Position:
        """Where a character of the text stands in a file: inside a variable, at the variable's own place."""
        piece = self.piece_at(offset)
        return position_in(piece.expression, piece.offset + min(max(offset - piece.start, 0), piece.length))


class Expander:
    """Expands the expressions of one rule. What is wrong with the variables themselves is told once, at the start."""

    def __init__(self, variables: Sequence[NamedExpression], tell: Tell) -> None:
        self._tell = tell
        self._all = [variable.name for variable in variables]
        self._used: set[str] = set()
        self._ready: dict[str, Expanded | None] = {}
        # A comment at a variable's end would swallow the parenthesis.
        self._closings = {each.name: "\n)" if ends_in_comment(each.expression.text) else ")" for each in variables}
        for variable in variables:
            if variable.name not in self._ready:
                self._ready[variable.name] = self._variable(variable)

    def expanded(self, expression: Expression) -> Expanded | None:
        """The expression with its variables in it; None, once it has been told, where that cannot be."""
        return self._expanded(expression, None)

    def unused(self) -> tuple[str, ...]:
        """The variables that nothing has read so far."""
        return tuple(name for name in self._ready if name not in self._used)

    def _variable(self, variable: NamedExpression) -> Expanded | None:
        expression = variable.expression
        stray = first_unbalanced(tokens_of(expression.text))
        if stray is not None:
            message = f"{stray.text} has no other in the variable {variable.name}, which is a whole expression"
            self._tell(position_in(expression, stray.start), "cel-syntax", message, "close or remove it")
            return None
        return self._expanded(expression, variable.name)

    def _expanded(self, expression: Expression, of: str | None) -> Expanded | None:
        text, pieces, at, is_whole = "", list[Piece](), 0, True
        for start, end, token in _references(tokens_of(expression.text)):
            inner = self._read(expression, token, of)
            if inner is None:
                is_whole = False
                continue
            pieces.append(Piece(len(text), expression, at, start - at))
            text += expression.text[at:start]
            pieces.append(Piece(len(text), inner.pieces[0].expression, 0, 0))
            text += "("
            pieces += [
                Piece(len(text) + each.start, each.expression, each.offset, each.length) for each in inner.pieces
            ]
            text += inner.text + ("\n)" if ends_in_comment(inner.text) else ")")
            at = end
            if len(text) > _LONGEST:
                message = f"with its variables written out this has more than {_LONGEST:,} characters"
                self._tell(
                    position_in(expression, start), "too-long", message, "let variables read fewer of each other"
                )
                return None
        pieces.append(Piece(len(text), expression, at, len(expression.text) - at))
        return Expanded(text + expression.text[at:], tuple(pieces)) if is_whole else None

    def _read(self, expression: Expression, token: Token, of: str | None) -> Expanded | None:
        """The variable that a token names; None where there is none that can be read here."""
        name, position = token.text, position_in(expression, token.start)
        if name in self._ready:
            self._used.add(name)
            return self._ready[name]
        if name == VARIABLES:
            message = "variables is read by name, variables.NAME, and is no value itself"
            self._tell(position, "unknown-variable", message, did_you_mean(name, self._ready))
        elif name == of:
            self._tell(position, "variable-cycle", f"the variable {name} reads itself", "write out what it is")
        elif name in self._all:
            message = f"the variable {of} reads {name}, which stands after it"
            self._tell(position, "variable-order", message, f"move {name} before {of}")
        else:
            hint = did_you_mean(name, self._ready) or "declare it under spec.variables"
            self._tell(position, "unknown-variable", f"there is no variable {name}", hint)
        return None


def _references(tokens: Sequence[Token]) -> list[tuple[int, int, Token]]:
    """Where ``variables.NAME`` stands: start, end and the token of the name, or of ``variables`` itself without one."""
    found = []
    for index, token in enumerate(tokens):
        if token.kind is not TokenKind.NAME or token.text != VARIABLES or token.follows_dot:
            continue
        after = tokens[index + 1 : index + 3]
        if len(after) == 2 and after[0].text == "." and after[1].kind is TokenKind.NAME:
            found.append((token.start, after[1].end, after[1]))
        else:
            found.append((token.start, token.end, token))
    return found


def names_read(tokens: Sequence[Token], declared: Mapping[str, object]) -> frozenset[str]:
    """The declared names that a text reads, those that a loop declares itself included."""
    return frozenset(token.text for token in tokens if not token.follows_dot and token.text in declared)


def params_read(source: str) -> set[str]:
    """The parameters that a text names; ``*`` where it reads them all at once."""
    tokens = tokens_of(source)
    found = set()
    for index, token in enumerate(tokens):
        if token.text == "params" and token.kind is TokenKind.NAME and not token.follows_dot:
            after = tokens[index + 1 : index + 3]
            found.add(after[1].text if len(after) == 2 and after[0].text == "." else "*")
    return found
