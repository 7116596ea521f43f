"""Texts that a fact is compared with and can never be: ``instanceType.gpuName != 'H100'`` lets every H100 through.

Warnings only: what a field may say is the account's and the catalog's affair, and grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.model.labels import ON_DEMAND, RESERVED, SPOT
from engine.model.reason import VOLUNTARY_REASONS
from engine.policy.findings import did_you_mean
from engine.policy.rules.tokens import Token, TokenKind, text_in

_CAPACITY_TYPES = (ON_DEMAND, SPOT, RESERVED)
# All that these can say.
_ONE_OF: Mapping[tuple[str, str], Sequence[str]] = {
    ("instanceType", "capacityType"): _CAPACITY_TYPES,
    ("node", "capacityType"): _CAPACITY_TYPES,
    ("instanceType", "arch"): ("amd64", "arm64"),
    ("reason", ""): tuple(each.value for each in VOLUNTARY_REASONS),
}
# Names of AWS and Karpenter, which are in lower case.
_LOWER_CASE = frozenset(
    {
        *(("instanceType", field) for field in ("name", "family", "size", "gpuName")),
        *(("node", field) for field in ("instanceType", "zone")),
    }
)
_COMPARISONS = ("==", "!=")


def never_equal(tokens: Sequence[Token]) -> Iterator[tuple[Token, str, str]]:
    """Each text that its fact never is, with a message and a hint."""
    for at, token in enumerate(tokens):
        if token.kind is not TokenKind.NAME or token.follows_dot:
            continue
        is_record = [each.text for each in tokens[at + 1 : at + 2]] == ["."] and at + 2 < len(tokens)
        fact = (token.text, tokens[at + 2].text) if is_record else (token.text, "")
        if fact not in _ONE_OF and fact not in _LOWER_CASE:
            continue
        for text in _compared(tokens, at, at + 3 if is_record else at + 1):
            yield from _judged(fact, text)


def _compared(tokens: Sequence[Token], start: int, end: int) -> Iterator[Token]:
    """Texts on either side of ``==`` and ``!=``, and those of a list that it is sought ``in``."""
    if start > 1 and tokens[start - 1].text in _COMPARISONS:
        yield from _texts(tokens[start - 2 : start - 1])
    if end + 1 >= len(tokens):
        return
    if tokens[end].text in _COMPARISONS:
        yield from _texts(tokens[end + 1 : end + 2])
    elif tokens[end].text == "in" and tokens[end + 1].text == "[":
        for token in tokens[end + 2 :]:
            if token.text == "]":
                return
            yield from _texts((token,))


def _texts(tokens: Sequence[Token]) -> Iterator[Token]:
    return (token for token in tokens if token.kind is TokenKind.TEXT)


def _judged(fact: tuple[str, str], token: Token) -> Iterator[tuple[Token, str, str]]:
    text, name = text_in(token), ".".join(filter(None, fact))
    options = _ONE_OF.get(fact)
    if options is not None and text not in options:
        yield token, f"{name} is never {text!r}", did_you_mean(text, options)
    elif options is None and text != text.lower():
        yield token, f"{name} is never {text!r}, since it is in lower case", f"write {text.lower()!r}"
