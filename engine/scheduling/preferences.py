"""What a pod would rather have of a node, as a number; and what it asks for that no new node can have.

Source of the rules: the NodeAffinity score of kube-scheduler; Karpenter's restricted labels (pkg/apis/v1/labels.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from engine.model import labels as keys
from engine.model.constraint import Operator, PreferredNodeTerm, Requirement
from engine.model.pod import Placing
from engine.scheduling.requirements import canonical_key, is_custom

# Labels in Karpenter's domains that nodes have all the same: of their class, and of being up.
_OF_NODES = frozenset((keys.NODE_CLASS, keys.REGISTERED, keys.INITIALIZED))
# Met by a node without the label.
_MET_BY_NONE = (Operator.NOT_IN, Operator.DOES_NOT_EXIST)


@frozen
class IgnoredTerm:
    """One of a pod's ORed terms of required node affinity that no new node can meet, for ``requirement``."""

    term: tuple[Requirement, ...]
    requirement: Requirement

    def __str__(self) -> str:
        return f"{' and '.join(map(str, self.term))}: no new node has {self.requirement.key}"


def preferred_weight(preferred_terms: Iterable[PreferredNodeTerm], labels: Mapping[str, str]) -> int:
    """The weights of the terms that a node meets, together; ``labels`` under their present names.

    A term without requirements prefers nothing. That a node is of no pool is a preference like any other: no node of
    ours meets it.
    """
    return sum(
        preferred.weight
        for preferred in preferred_terms
        if preferred.requirements
        and all(each.admits(labels.get(canonical_key(each.key))) for each in preferred.requirements)
    )


def ignored_terms(placing: Placing) -> tuple[IgnoredTerm, ...]:
    """The terms that are of no use for new nodes, in the pod's order: they ask for a label that is Karpenter's own and
    no fact of a node, or for a node by its name. Nodes that stand may meet them, and the pod's other terms hold.

    (Karpenter refuses the whole pod for one such term: core#2230.)
    """
    told = ((term, next(filter(_is_beyond_new_nodes, term), None)) for term in placing.affinity_terms)
    return tuple(IgnoredTerm(term, requirement) for term, requirement in told if requirement is not None)


def _is_beyond_new_nodes(requirement: Requirement) -> bool:
    key = canonical_key(requirement.key)
    is_known = key in keys.WELL_KNOWN or key in _OF_NODES or is_custom(key)
    return requirement.operator not in _MET_BY_NONE and (key == keys.HOSTNAME or not is_known)
