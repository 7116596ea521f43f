"""Node selector terms, in a pod's node affinity and in a volume's."""

from __future__ import annotations

from collections.abc import Collection

from engine.model.constraint import Operator, PreferredNodeTerm, Requirement
from engine.observe.json_fields import BrokenObject, Json, mapping, objects, shown, text, whole_number, words

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_OPERATORS = {operator.value: operator for operator in Operator}
_HEAVIEST = 100

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


def preferred_node_terms(node_affinity: Json) -> tuple[PreferredNodeTerm, ...]:
    """The nodes that a pod prefers; raises BrokenObject.

    A term without expressions prefers nothing. One by a node's field names a node that stands already, which no node
    to be started can be: it is left out.
    """
    read = []
    for term in objects(node_affinity, PREFERRED):
        preference = mapping(term, "preference")
        preferred_by = weight(term, "preferred node affinity")
        expressions = objects(preference, "matchExpressions")
        if expressions and not objects(preference, "matchFields"):
            required = tuple(requirement(expression, "preferred node affinity") for expression in expressions)
            read.append(PreferredNodeTerm(preferred_by, required))
    return tuple(read)


def weight(term: Json, where: str) -> int:
    """A preferred term's weight, 1 to 100; ``where`` names it in messages. Raises BrokenObject."""
    written = whole_number(term, "weight")
    if not 1 <= written <= _HEAVIEST:
        raise BrokenObject(f"{where}: weight is {shown(term.get('weight'))}, expected 1 to {_HEAVIEST}")
    return written


def requirement(expression: Json, where: str, operators: Collection[Operator] = tuple(Operator)) -> Requirement:
    """One match expression by one of these operators; ``where`` names it in messages. Raises BrokenObject."""
    key, operator = text(expression, "key"), text(expression, "operator")
    if not key:
        raise BrokenObject(f"a {where} expression has no key")
    if operator not in _OPERATORS or _OPERATORS[operator] not in operators:
        raise BrokenObject(f"{where} on {key}: operator {shown(operator)}, expected In, NotIn, Exists, …")
    return Requirement(key=key, operator=_OPERATORS[operator], values=words(expression, "values"))
