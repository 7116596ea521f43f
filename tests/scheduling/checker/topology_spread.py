"""Topology spread constraints.

Kubernetes documentation, "Pod Topology Spread Constraints": with DoNotSchedule, a pod may be bound in a domain while
the matching pods there, itself counted if it matches, less the least of all eligible domains stay within maxSkew.

- Counted are pods of the pod's own namespace that its selector selects and that are not terminating. An empty selector
  counts none (kube-scheduler's countPodsMatchSelector).
- Nodes count that have the keys of all of the pod's DoNotSchedule constraints and that its node inclusion policies let
  in: nodeAffinityPolicy (Honor unless it says otherwise) those that meet its node selector and affinity,
  nodeTaintsPolicy (Ignore) those whose taints it tolerates. Their values are the eligible domains.
- With fewer eligible domains than minDomains the least is zero.
- A node without the key takes no such pod. A label without a value is no domain.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.constraint import TopologySpread
from engine.model.pod import Pod
from tests.scheduling.checker.node_labels import unmet
from tests.scheduling.checker.places import Place
from tests.scheduling.checker.selectors import selects
from tests.scheduling.checker.taints import untolerated


class SpreadCount:
    """The pods that one constraint of a pod counts, by domain. Starts with those that are bound."""

    def __init__(self, pod: Pod, spread: TopologySpread, places: Iterable[Place]) -> None:
        keys = [each.key for each in required_spreads(pod)]
        self._spread, self._namespace = spread, pod.key.namespace
        self._eligible = {
            place.name: place.domain(spread.key) or ""
            for place in places
            if all(place.domain(key) for key in keys) and _is_let_in(pod, spread, place)
        }
        self._counts = dict.fromkeys(self._eligible.values(), 0)
        for place in places:
            for other in place.bound:
                if self.counts(other, place):
                    self.add(place, 1)
        self._own = int(selects(spread.selector, pod.labels))

    def counts(self, pod: Pod, place: Place) -> bool:
        """Whether a pod on a node is among those that the constraint counts."""
        counted = bool(self._spread.selector) and pod.key.namespace == self._namespace and not pod.deleting
        return counted and place.name in self._eligible and selects(self._spread.selector, pod.labels)

    def add(self, place: Place, pods: int) -> None:
        self._counts[self._eligible[place.name]] += pods

    def refuses(self, place: Place) -> str:
        """Why the pod cannot be bound on a node with what is bound now, in words; empty where it can."""
        spread, domain = self._spread, place.domain(self._spread.key)
        if domain is None:
            return f"{place.name} has no {spread.key}"
        here, least = self._counts.get(domain, 0) + self._own, self.least()
        if here - least > spread.max_skew:
            return f"{here} in {spread.key}={domain}, {least} in the least of {len(self._counts)}"
        return ""

    def least(self) -> int:
        """The global minimum."""
        few = len(self._counts) < (self._spread.min_domains or 1)
        return 0 if few else min(self._counts.values())

    def is_least(self, place: Place) -> bool:
        """Whether one pod more on a node would be in a domain that has the fewest."""
        return self._counts.get(self._eligible.get(place.name, ""), -1) == self.least()


def required_spreads(pod: Pod) -> list[TopologySpread]:
    return [each for each in pod.placing.spreads if each.is_required]


def _is_let_in(pod: Pod, spread: TopologySpread, place: Place) -> bool:
    if spread.honors_affinity and any(unmet(pod.placing, place.labels)):
        return False
    return not (spread.honors_taints and any(untolerated(pod.placing.tolerations, place.taints)))
