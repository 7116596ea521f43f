"""Keys of open-ended maps, such as a pod's labels, that a rule reads as though they were always there.

What lacks the key makes the rule err. That fails safe, so nothing is launched or nothing goes, for things that the
author never thought of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from engine.model.constraint import Operator, Requirement
from engine.model.rule import AnyRule
from engine.policy.cel.types import CelType, MapOf, Record
from engine.policy.facts.schema import NODE_POOL, POD
from engine.policy.rules.tokens import Token, TokenKind, text_in, tokens_of

_OWNERS: Mapping[str, Record] = {"pod": POD, "nodePool": NODE_POOL}
_CALLED = {"pod": "pod", "nodePool": "pool"}
# What becomes of it where each part errs: docs/policy.md. A message that errs is replaced, and harms nothing.
_COMES_OF_IT = {
    "require": "such a pod gets no instance type",
    "prefer": "it counts 0",
    "matchConditions": "the condition counts as met",
    "groupBy": "nothing is launched for such a pod",
    "ceiling": "nothing is added",
    "candidate": "no node goes",
    "budget": "no node goes",
    "maxPerWindow": "no node goes",
}
_DEMANDS_THE_KEY = frozenset({Operator.IN, Operator.EXISTS, Operator.GT, Operator.LT})


@frozen
class MapKey:
    """``pod.labels['tier']``: a variable, its field that is a map, and a key that is written out."""

    variable: str
    field: str
    key: str


@frozen
class Unguarded:
    """``offset`` is the code point of its expression's text at which the map is named."""

    part: str
    offset: int
    message: str
    hint: str


def unguarded_keys(rule: AnyRule, texts: Mapping[str, str]) -> tuple[Unguarded, ...]:
    """Each key once, at its first place. ``texts`` are the rule's parts, by YAML field, with variables written out.
    A condition's field has its name in brackets.

    A key that any part asks for with ``in`` or ``has``, or that ``match`` demands, is one that the author thought of.
    """
    tokens = [(part, tokens_of(text)) for part, text in texts.items()]
    known = {*_demanded(rule), *(key for _, of in tokens for key, _, asks in _keys(of) if asks)}
    found: dict[MapKey, Unguarded] = {}
    for part, of in tokens:
        comes_of_it = _COMES_OF_IT.get(part.partition("[")[0])
        if comes_of_it is None:
            continue
        for key, token, _ in _keys(of):
            if key not in known:
                found.setdefault(key, _told(part, comes_of_it, key, token))
    return tuple(found.values())


def _told(part: str, comes_of_it: str, key: MapKey, token: Token) -> Unguarded:
    owner, map_ = _CALLED[key.variable], f"{key.variable}.{key.field}"
    message = f"a {owner} without {key.key!r} in its {key.field} makes {part} err, and then {comes_of_it}"
    asked = f"{key.key!r} in {map_}"
    if part == "groupBy":
        hint = f"write {asked} ? {map_}[{key.key!r}] : 'none'"
    else:
        hint = f"begin with {asked} && …"
        hint += ", or let match.pods.selector ask for it" if map_ == "pod.labels" else ""
    return Unguarded(part, token.start, message, hint)


def _demanded(rule: AnyRule) -> Iterator[MapKey]:
    yield from _labels("pod", rule.match.pod_labels)
    yield from _labels("nodePool", rule.match.node_pool_labels)


def _labels(variable: str, demands: Iterable[Requirement]) -> Iterator[MapKey]:
    return (MapKey(variable, "labels", each.key) for each in demands if each.operator in _DEMANDS_THE_KEY)


def _keys(tokens: Sequence[Token]) -> Iterator[tuple[MapKey, Token, bool]]:
    """Every key that is written out, where its map is named, and whether it is only asked whether it is there."""
    for at, token in enumerate(tokens):
        owner = _OWNERS.get(token.text) if token.kind is TokenKind.NAME and not token.follows_dot else None
        following = [each.text for each in tokens[at + 1 : at + 6]]
        if owner is None or len(following) < 2 or following[0] != "." or not _is_map(owner, following[1]):
            continue
        before = [each.text for each in tokens[max(at - 2, 0) : at]]
        if before[1:] == ["in"] and tokens[at - 2].kind is TokenKind.TEXT:
            yield MapKey(token.text, following[1], text_in(tokens[at - 2])), token, True
        elif following[2:3] == ["["] and following[4:5] == ["]"] and tokens[at + 4].kind is TokenKind.TEXT:
            yield MapKey(token.text, following[1], text_in(tokens[at + 4])), token, False
        elif following[2:3] == ["."] and following[4:5] != ["("] and len(following) > 3:
            yield MapKey(token.text, following[1], following[3]), token, before == ["has", "("]


def _is_map(owner: Record, field: str) -> bool:
    types: dict[str, CelType] = {each.name: each.type for each in owner.fields}
    return isinstance(types.get(field), MapOf)
