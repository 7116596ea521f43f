"""Affinity and anti-affinity between pods.

Kubernetes documentation, "Assigning Pods to Nodes", section on inter-pod affinity and anti-affinity, and for what it
leaves open kube-scheduler's InterPodAffinity filter:

- A required affinity term holds on a node that has its key and in whose domain a pod is that all of the pod's affinity
  terms select. The first pod of a group, whose terms nothing that is bound meets, may go where the keys are if it meets
  its own terms.
- A required anti-affinity term keeps its pod out of the domains where a selected pod is, and each selected pod out of
  its own. So order does not matter for it: of two pods the second is refused.
- Terminating pods count until they are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from engine.model.constraint import PodTerm
from engine.model.pod import Pod
from tests.scheduling.checker.places import Place
from tests.scheduling.checker.selectors import Namespaces
from tests.scheduling.checker.violation import Violation


class AffinityCount:
    """The pods that all affinity terms of a pod select, by term and domain. Starts with those that are bound."""

    def __init__(self, pod: Pod, places: Iterable[Place], namespaces: Namespaces) -> None:
        self._terms = pod.placing.pod_affinity
        self._namespaces = namespaces
        self._counts: list[Counter[str]] = [Counter() for _ in self._terms]
        self._meets_itself = self._meets_all(pod)
        for place in places:
            for other in place.bound:
                if self.counts(other, place):
                    self.add(place, 1)

    def counts(self, pod: Pod, place: Place) -> bool:
        return any(place.domain(term.key) for term in self._terms) and self._meets_all(pod)

    def add(self, place: Place, pods: int) -> None:
        for term, counts in zip(self._terms, self._counts, strict=True):
            domain = place.domain(term.key)
            if domain is not None:
                counts[domain] += pods

    def refuses(self, place: Place) -> str:
        """Why the pod cannot be bound on a node with what is bound now, in words; empty where it can."""
        domains = [place.domain(term.key) for term in self._terms]
        for term, domain in zip(self._terms, domains, strict=True):
            if domain is None:
                return f"{place.name} has no {term.key}"
        for term, domain, counts in zip(self._terms, domains, self._counts, strict=True):
            if domain is not None and counts[domain] <= 0:
                is_first = not any(+each for each in self._counts)
                if not (is_first and self._meets_itself):
                    return f"nothing that it seeks is in {term.key}={domain}"
        return ""

    def _meets_all(self, pod: Pod) -> bool:
        return all(self._namespaces.looks_at(term, pod) for term in self._terms)


def kept_apart(places: Iterable[Place], namespaces: Namespaces) -> Iterator[Violation]:
    """Each planned pod that shares a domain with a pod that it, or that pod, is to be kept from."""
    places = tuple(places)
    for place in places:
        for pod, is_new in _with_newness(place):
            for term in pod.placing.pod_anti_affinity:
                for other, other_is_new in _in_domain(term, place, places):
                    if (is_new or other_is_new) and other.key != pod.key and namespaces.looks_at(term, other):
                        where = f"{term.key}={place.domain(term.key)}"
                        yield Violation("anti-affinity", str(pod.key), f"is kept from {other.key}: {where}")


def _in_domain(term: PodTerm, place: Place, places: tuple[Place, ...]) -> Iterator[tuple[Pod, bool]]:
    domain = place.domain(term.key)
    for there in places:
        if domain is not None and there.domain(term.key) == domain:
            yield from _with_newness(there)


def _with_newness(place: Place) -> Iterator[tuple[Pod, bool]]:
    """The pods of a place, and whether the plan puts them there."""
    yield from ((pod, False) for pod in place.bound)
    yield from ((pod, True) for pod in place.planned)
