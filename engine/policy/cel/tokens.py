"""CEL's tokens, for what has to be found in a source without parsing it: where an expression begins and ends."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property

from attrs import field, frozen

_TOKEN = re.compile(
    r"""
    (?P<gap>\s+|//[^\n]*)
    |(?P<text>(?:[rR][bB]?|[bB][rR]?)?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?)
    |(?P<word>[A-Za-z_]\w*|`[^`\n]*`)
    |(?P<sign>&&|\|\||[<>=!]=|\.\?|\[\?|.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_RAW_TEXT = re.compile(
    r"(?:[rR][bB]?|[bB][rR])(?:\"\"\".*?\"\"\"|'''.*?'''|\"[^\"\n]*\"|'[^'\n]*')",
    re.DOTALL,
)
_CLOSING = {")": "(", "]": "[", "}": "{"}


@frozen
class Token:
    """``kind`` is ``text``, ``number``, ``word`` or ``sign``; offsets are in code points."""

    kind: str
    start: int
    end: int
    text: str


def tokens_of(source: str) -> tuple[Token, ...]:
    """All tokens, without comments and blanks. Nothing is refused: what is no token is a sign of one character."""
    found = []
    at = 0
    while at < len(source):
        raw = _RAW_TEXT.match(source, at)
        match = raw or _TOKEN.match(source, at)
        assert match is not None, "the last alternative takes any character"
        kind = "text" if raw else str(match.lastgroup)
        if kind != "gap":
            found.append(Token(kind, at, match.end(), match[0]))
        at = match.end()
    return tuple(found)


@frozen
class Tokens:
    """A source's tokens by place, and which bracket belongs to which."""

    source: str
    all: tuple[Token, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "all", tokens_of(self.source))

    @cached_property
    def partners(self) -> dict[int, int]:
        """From each bracket's place in `all` to its partner's."""
        open_ones: list[int] = []
        partners: dict[int, int] = {}
        for at, token in enumerate(self.all):
            if token.kind != "sign":
                continue
            if token.text[0] in "([{":
                open_ones.append(at)
            elif token.text in _CLOSING and open_ones and self.all[open_ones[-1]].text[0] == _CLOSING[token.text]:
                partners[at] = open_ones.pop()
                partners[partners[at]] = at
        return partners

    @cached_property
    def starts(self) -> list[int]:
        return [token.start for token in self.all]

    def place(self, offset: int) -> int:
        """The place in `all` of the token that begins at the offset, or of the first one behind it."""
        return min(bisect_left(self.starts, offset), len(self.all) - 1)

    def closing_end(self, offset: int) -> int:
        """Where the bracket that opens at the offset closes, exclusive."""
        place = self.place(offset)
        return self.all[self.partners.get(place, place)].end

    def balanced(self, start: int, end: int) -> tuple[int, int]:
        """The span, widened until each bracket in it has its partner in it too."""
        first, last = self.place(start), self.place(end - 1)
        if self.all[last].start > end - 1:
            last -= 1
        widened = True
        while widened:
            inside = [self.partners.get(at, at) for at in range(first, last + 1)]
            low, high = min([first, *inside]), max([last, *inside])
            widened = (low, high) != (first, last)
            first, last = low, high
        return self.all[first].start, self.all[last].end
