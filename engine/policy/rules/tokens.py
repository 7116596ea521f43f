"""The tokens of a CEL text, as far as expansion and lints need them. The engines parse; this only finds the words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from attrs import frozen


class TokenKind(str, Enum):
    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    SYMBOL = "symbol"
    # A quote without its other: nothing that follows can be told apart from text.
    UNCLOSED = "unclosed"


@frozen
class Token:
    """``start`` and ``end`` are code points. ``follows_dot``: the name is a field's or a method's, not a variable's."""

    kind: TokenKind
    text: str
    start: int
    end: int
    follows_dot: bool = False


# Lexis: google/cel-spec, doc/langdef.md, Syntax.
_TOKEN = re.compile(
    r"""
    (?P<skip> \s+ | //[^\n]* )
    | (?P<text> [rR][bB]?(?:"{3}[\s\S]*?"{3} | '{3}[\s\S]*?'{3} | "[^"\n]*" | '[^'\n]*')
        | [bB][rR](?:"{3}[\s\S]*?"{3} | '{3}[\s\S]*?'{3} | "[^"\n]*" | '[^'\n]*')
        | [bB]?(?:"{3}(?:\\[\s\S]|[^\\])*?"{3} | '{3}(?:\\[\s\S]|[^\\])*?'{3}
        | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*') )
    | (?P<name> [A-Za-z_][A-Za-z0-9_]* | `[^`\n]*` )
    | (?P<number> [0-9][0-9A-Za-z_]*(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?)? | \.[0-9]+ )
    | (?P<unclosed> ["'`] )
    | (?P<symbol> && | \|\| | [=!<>]= | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {")": "(", "]": "[", "}": "{"}


def tokens_of(source: str) -> tuple[Token, ...]:
    """All tokens; white space and comments are left out."""
    found: list[Token] = []
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup or "skip"
        if kind != "skip":
            # A bool, since `.` and `?.` alone stand before a field.
            follows_dot = kind == "name" and bool(found) and found[-1].text == "."
            found.append(Token(TokenKind(kind), match[0], match.start(), match.end(), follows_dot))
    return tuple(found)


def first_unbalanced(tokens: Sequence[Token]) -> Token | None:
    """The first bracket or quote that has no other, or None."""
    open_: list[Token] = []
    for token in tokens:
        if token.kind is TokenKind.UNCLOSED:
            return token
        if token.kind is not TokenKind.SYMBOL:
            continue
        if token.text in _CLOSING.values():
            open_.append(token)
        elif token.text in _CLOSING and (not open_ or open_.pop().text != _CLOSING[token.text]):
            return token
    return open_[0] if open_ else None


def ends_in_comment(source: str) -> bool:
    """Whether what follows the source on its line would be comment."""
    tokens = tokens_of(source)
    tail = source[tokens[-1].end :] if tokens else source
    return "//" in tail.rpartition("\n")[2]
