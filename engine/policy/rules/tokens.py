"""The tokens of a CEL text as expansion and lints see them: which names are variables', and what is left open."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from attrs import frozen

from engine.policy.cel.tokens import tokens_of as lexemes_of


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


_KINDS = {"word": TokenKind.NAME, "text": TokenKind.TEXT, "number": TokenKind.NUMBER, "sign": TokenKind.SYMBOL}
_QUOTES = ("'", '"', "`")
_CLOSING = {")": "(", "]": "[", "}": "{"}


def tokens_of(source: str) -> tuple[Token, ...]:
    """All tokens; white space and comments are left out."""
    found: list[Token] = []
    for lexeme in lexemes_of(source):
        kind = TokenKind.UNCLOSED if lexeme.text in _QUOTES else _KINDS[lexeme.kind]
        follows_dot = kind is TokenKind.NAME and bool(found) and found[-1].text in (".", ".?")
        found.append(Token(kind, lexeme.text, lexeme.start, lexeme.end, follows_dot))
    return tuple(found)


def text_in(token: Token) -> str:
    """What stands between the quotes; an escape stays as it is written."""
    return token.text.lstrip("rRbB").strip("'\"")


def first_unbalanced(tokens: Sequence[Token]) -> Token | None:
    """The first bracket or quote that has no other, or None."""
    open_: list[Token] = []
    for token in tokens:
        if token.kind is TokenKind.UNCLOSED:
            return token
        if token.kind is not TokenKind.SYMBOL:
            continue
        if token.text[0] in _CLOSING.values():
            open_.append(token)
        elif token.text in _CLOSING and (not open_ or open_.pop().text[0] != _CLOSING[token.text]):
            return token
    return open_[0] if open_ else None


def ends_in_comment(source: str) -> bool:
    """Whether what follows the source on its line would be comment."""
    tokens = tokens_of(source)
    tail = source[tokens[-1].end :] if tokens else source
    return "//" in tail.rpartition("\n")[2]
