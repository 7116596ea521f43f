"""Node selector and required node affinity.

Kubernetes documentation, "Assigning Pods to Nodes": every label of ``nodeSelector`` is on the node; of
``nodeSelectorTerms`` one holds, and in it every expression. An empty term matches nothing. NotIn and DoesNotExist hold
where the label is absent. Gt and Lt compare integers; a value that is none fails. Gte and Lte are Karpenter's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from engine.model.constraint import Requirement
from engine.model.pod import Placing

# Karpenter reads these old names as the new ones.
_NEW_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
# What Go's strconv.ParseInt takes for a decimal number.
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def unmet(placing: Placing, labels: Mapping[str, str]) -> Iterator[str]:
    """What the pod asks of a node's labels and does not get there, in words."""
    for key, value in placing.node_selector.items():
        if value_of(labels, key) != value:
            yield f"selects {key}={value}, the node has {value_of(labels, key)}"
    terms = placing.affinity_terms
    if terms and not any(_holds(term, labels) for term in terms):
        yield f"none of {len(terms)} required affinity terms holds"


def meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels meets one expression."""
    value = value_of(labels, requirement.key)
    operator, values = requirement.operator.value, requirement.values
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return value is not None and len(values) == 1 and _compares(operator, value, values[0])


def value_of(labels: Mapping[str, str], key: str) -> str | None:
    """The node's value of a label, under its present name or an old one."""
    present = _NEW_NAMES.get(key, key)
    if present in labels:
        return labels[present]
    return next((labels[old] for old, new in _NEW_NAMES.items() if new == present and old in labels), None)


def _holds(term: Sequence[Requirement], labels: Mapping[str, str]) -> bool:
    return bool(term) and all(meets(each, labels) for each in term)


def _compares(operator: str, value: str, bound: str) -> bool:
    if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(bound)):
        return False
    number, other = int(value), int(bound)
    if operator == "Gt":
        return number > other
    if operator == "Lt":
        return number < other
    return number >= other if operator == "Gte" else number <= other
