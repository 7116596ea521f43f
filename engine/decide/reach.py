"""Where several volumes can all be reached: ORed terms of node affinity, joined.

``()`` is everywhere. A term that no node can meet is dropped, so what is left may be nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.constraint import Operator, Requirement

Term = tuple[Requirement, ...]
Terms = tuple[Term, ...]

# Met by no node: an empty term matches none.
_NOWHERE: Terms = ((),)


def joined(these: Terms, those: Terms) -> Terms:
    """Where both hold: each of these with each of those, no term twice, in the order given."""
    if not these or not those:
        return these or those
    both = (_both(one, other) for one in these for other in those)
    return tuple(dict.fromkeys(term for term in both if term is not None)) or _NOWHERE


def is_nowhere(terms: Terms) -> bool:
    """Whether no node can meet any of them."""
    return terms == _NOWHERE


def said(terms: Terms) -> str:
    """The terms as a person would read them."""
    return " or ".join(" and ".join(map(str, term)) for term in terms)


def _both(one: Term, other: Term) -> Term | None:
    """One term for two, in key order; None where values of a key exclude each other."""
    by_key: dict[str, list[Requirement]] = {}
    for each in (*one, *other):
        by_key.setdefault(each.key, []).append(each)
    term: list[Requirement] = []
    for key, asked in sorted(by_key.items()):
        listed = [each for each in asked if each.operator is Operator.IN]
        if not listed:
            term += dict.fromkeys(asked)
            continue
        values = tuple(value for value in sorted(set(listed[0].values)) if _admitted(value, asked))
        if not values:
            return None
        term.append(Requirement(key, Operator.IN, values))
    return tuple(term)


def _admitted(value: str, asked: Iterable[Requirement]) -> bool:
    return all(each.admits(value) for each in asked)
