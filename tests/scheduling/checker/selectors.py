"""Label selectors over pods, and which namespaces a pod term looks at.

Kubernetes documentation, "Labels and Selectors": In, NotIn, Exists and DoesNotExist, all of them together; NotIn and
DoesNotExist hold where the label is absent. An empty selector selects everything and an absent one nothing. "Assigning
Pods to Nodes": a term looks at the namespaces that it lists and at those that its namespaceSelector selects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model.constraint import LabelSelector, PodTerm, Requirement
from engine.model.pod import Pod
from engine.model.workload import Namespace


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    return selector is not None and all(_holds(each, labels) for each in selector)


class Namespaces:
    """The namespaces of a cluster, as terms name them."""

    def __init__(self, namespaces: Iterable[Namespace]) -> None:
        self._labels = {each.name: each.labels for each in namespaces}

    def looks_at(self, term: PodTerm, pod: Pod) -> bool:
        """Whether the term counts the pod: it is in one of the term's namespaces, and its labels are selected."""
        namespace = pod.key.namespace
        inside = namespace in term.namespaces or selects(term.namespace_selector, self._labels.get(namespace, {}))
        return inside and selects(term.selector, pod.labels)


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value, operator = labels.get(requirement.key), requirement.operator.value
    if operator == "In":
        return value is not None and value in requirement.values
    if operator == "NotIn":
        return value is None or value not in requirement.values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    raise ValueError(f"a label selector knows no {operator}")
