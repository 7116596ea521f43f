"""Node selector terms, in a pod's required node affinity and in a volume's."""

from __future__ import annotations

from engine.model.constraint import Operator, Requirement
from engine.observe.json_fields import BrokenObject, Json, objects, shown, text, words

_OPERATORS = {operator.value: operator for operator in Operator}

Terms = tuple[tuple[Requirement, ...], ...]


def node_selector_terms(selector: Json) -> tuple[Terms, bool]:
    """The ORed terms, and whether any selects by a node's field, which is left out. Raises BrokenObject.

    A term without expressions matches no node, so it is left out too.
    """
    terms = []
    by_field = False
    for term in objects(selector, "nodeSelectorTerms"):
        if objects(term, "matchFields"):
            by_field = True
        elif expressions := objects(term, "matchExpressions"):
            terms.append(tuple(requirement(expression, "node affinity") for expression in expressions))
    return tuple(terms), by_field


def requirement(expression: Json, where: str) -> Requirement:
    """One match expression; ``where`` names it in messages. Raises BrokenObject."""
    key, operator = text(expression, "key"), text(expression, "operator")
    if not key:
        raise BrokenObject(f"a {where} expression has no key")
    if operator not in _OPERATORS:
        raise BrokenObject(f"{where} on {key}: operator {shown(operator)}, expected In, NotIn, Exists, …")
    return Requirement(key=key, operator=_OPERATORS[operator], values=words(expression, "values"))
