"""CEL's text literals, read strictly: an escape that CEL does not know is refused."""

from __future__ import annotations

import re

_PARTS = re.compile(r"""(?P<raw>[rR]?)(?P<quote>\"\"\"|'''|"|')(?P<body>.*)(?P=quote)""", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:(?P<one>[abfnrtv\\?\"'`])|x(?P<x>[0-9a-fA-F]{2})|X(?P<y>[0-9a-fA-F]{2})"
    r"|u(?P<u>[0-9a-fA-F]{4})|U(?P<v>[0-9a-fA-F]{8})|(?P<o>[0-3][0-7]{2})|(?P<bad>.|$))",
    re.DOTALL,
)
_SINGLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def read_text(literal: str) -> str:
    """The text that the literal stands for. Raises ValueError for what is no text literal."""
    parts = _PARTS.fullmatch(literal)
    if parts is None:
        raise ValueError("this is no text")
    return parts["body"] if parts["raw"] else _ESCAPE.sub(_replaced, parts["body"])


def _replaced(found: re.Match[str]) -> str:
    if found["one"]:
        return _SINGLE.get(found["one"], found["one"])
    if found["o"]:
        return chr(int(found["o"], 8))
    code = found["x"] or found["y"] or found["u"] or found["v"]
    if code is None:
        raise ValueError(f"\\{found['bad']} is no escape of CEL")
    number = int(code, 16)
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise ValueError(f"\\{found[0][1:]} is no character")
    return chr(number)
