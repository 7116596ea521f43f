"""The documented rules said slowly: everything is counted anew from the list of placed pods for each question.

From the Kubernetes documentation, "Pod Topology Spread Constraints" and "Assigning Pods to Nodes" (inter-pod affinity),
and the API reference of those fields; a label without a value is no domain to spread over or to be together in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from engine.model.constraint import LabelSelector, PodTerm, Taint, TopologySpread
from engine.model.pod import Pod
from engine.scheduling.groups import Demand
from tests.scheduling.topology.neighbours import HOSTNAME

NamespaceLabels = Mapping[str, Mapping[str, str]]


@frozen
class Place:
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()


@frozen
class Scene:
    """Pods by the index of their node; ``offers`` are labels of nodes that could be made for the pod in question."""

    places: tuple[Place, ...]
    pods: tuple[tuple[Pod, int], ...]
    namespaces: NamespaceLabels = field(factory=dict)

    def with_pod(self, pod: Pod, place: int) -> Scene:
        return evolve(self, pods=(*self.pods, (pod, place)))


def suits(pod: Pod, place: Place) -> bool:
    demand = Demand.of(pod.placing)
    return demand.admits(place.labels) and demand.barring_taint(place.taints) is None


def allows(scene: Scene, pod: Pod, place: int, offers: Sequence[Mapping[str, str]] = ()) -> bool:
    """Whether the pod may be bound to the place, whose labels and taints suit it."""
    required = [each for each in pod.placing.spreads if each.is_required]
    return (
        all(_spread_allows(scene, pod, each, required, place, offers) for each in required)
        and _affinity_allows(scene, pod, place)
        and _own_anti_affinity_allows(scene, pod, place)
        and _anti_affinity_of_others_allows(scene, pod, place)
        and _ports_allow(scene, pod, place)
    )


def how_many(scene: Scene, pod: Pod, place: int, most: int, offers: Sequence[Mapping[str, str]] = ()) -> int:
    """How many such pods may be bound there one after another."""
    count = 0
    while count < most and allows(scene, pod, place, offers):
        scene = scene.with_pod(pod, place)
        count += 1
    return count


def _selected(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    return selector is not None and all(each.admits(labels.get(each.key)) for each in selector)


def _spread_allows(
    scene: Scene,
    pod: Pod,
    spread: TopologySpread,
    required: Sequence[TopologySpread],
    place: int,
    offers: Sequence[Mapping[str, str]],
) -> bool:
    if not all(scene.places[place].labels.get(each.key) for each in required):
        return False
    demand = Demand.of(pod.placing)
    matching: dict[str, int] = {}
    for index, each in enumerate(scene.places):
        if not all(each.labels.get(other.key) for other in required):
            continue
        if spread.honors_affinity and not demand.admits(each.labels):
            continue
        if spread.honors_taints and demand.barring_taint(each.taints) is not None:
            continue
        here = sum(
            _selected(spread.selector, other.labels) and other.key.namespace == pod.key.namespace
            for other, where in scene.pods
            if where == index and not other.deleting
        )
        matching[each.labels[spread.key]] = matching.get(each.labels[spread.key], 0) + here
    if spread.key == HOSTNAME and offers:
        matching["another host"] = 0
    for labels in offers:
        if spread.key != HOSTNAME and all(labels.get(other.key) for other in required if other.key != HOSTNAME):
            matching.setdefault(labels[spread.key], 0)
    least = 0 if len(matching) < (spread.min_domains or 1) else min(matching.values())
    itself = int(_selected(spread.selector, pod.labels))
    return matching.get(scene.places[place].labels[spread.key], 0) + itself - least <= spread.max_skew


def _sees(scene: Scene, term: PodTerm, pod: Pod) -> bool:
    namespace = pod.key.namespace
    reached = namespace in term.namespaces or _selected(term.namespace_selector, scene.namespaces.get(namespace, {}))
    return reached and _selected(term.selector, pod.labels)


def _affinity_allows(scene: Scene, pod: Pod, place: int) -> bool:
    terms = pod.placing.pod_affinity
    here = scene.places[place].labels
    if not all(here.get(term.key) for term in terms):
        return False
    company = [
        scene.places[where].labels for other, where in scene.pods if all(_sees(scene, term, other) for term in terms)
    ]
    if all(any(labels.get(term.key) == here[term.key] for labels in company) for term in terms):
        return True
    nobody = not any(term.key in labels for term in terms for labels in company)
    return nobody and all(_sees(scene, term, pod) for term in terms)


def _own_anti_affinity_allows(scene: Scene, pod: Pod, place: int) -> bool:
    return not any(
        _share(scene, term, place, where) and _sees(scene, term, other)
        for term in pod.placing.pod_anti_affinity
        for other, where in scene.pods
    )


def _anti_affinity_of_others_allows(scene: Scene, pod: Pod, place: int) -> bool:
    return not any(
        _share(scene, term, place, where) and _sees(scene, term, pod)
        for other, where in scene.pods
        for term in other.placing.pod_anti_affinity
    )


def _share(scene: Scene, term: PodTerm, one: int, other: int) -> bool:
    value = scene.places[one].labels.get(term.key)
    return value is not None and value == scene.places[other].labels.get(term.key)


def _ports_allow(scene: Scene, pod: Pod, place: int) -> bool:
    taken = [port for other, where in scene.pods if where == place for port in other.placing.host_ports]
    return not any(own.conflicts(port) for own in pod.placing.host_ports for port in taken)
