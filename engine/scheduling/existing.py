"""Nodes that are there, or on their way, and the filling of them.

Nodes that are alike are handled together: alike in the labels that anybody asks for, in taints and in room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from engine.model.constraint import Taint
from engine.model.pod import PodKey
from engine.model.quantity import CPU, MEMORY, Resources
from engine.scheduling.groups import Demand, PodClass
from engine.scheduling.offers import how_many_fit


@frozen(eq=False)
class Place:
    """What decides, room apart, which pods a node takes. One object for equal places."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    is_accelerated: bool
    content: tuple[object, ...]


class World:
    """Nodes with the room that is left on them, and who got which pods. ``Member`` numbers stand for nodes."""

    def __init__(self, relevant_keys: frozenset[str]) -> None:
        """``relevant_keys`` are the labels that some pod asks for; nodes that differ in others only are alike."""
        self._relevant = sorted(relevant_keys)
        self._places: dict[tuple[object, ...], Place] = {}
        self._dislikes: dict[Demand, dict[Place, int | None]] = {}
        self._alike: dict[tuple[Place, Resources], list[int]] = {}
        self.pods: dict[int, list[PodKey]] = {}

    def place_of(self, labels: Mapping[str, str], taints: Iterable[Taint], is_accelerated: bool) -> Place:
        """The place that a node is; ``labels`` under their present names."""
        shown = tuple((key, labels[key]) for key in self._relevant if key in labels)
        standing = tuple(sorted(taints, key=str))
        content = (shown, tuple(map(str, standing)), is_accelerated)
        if content not in self._places:
            self._places[content] = Place(dict(shown), standing, is_accelerated, content)
        return self._places[content]

    def add(self, place: Place, room: Resources, member: int) -> None:
        self._alike.setdefault((place, room), []).append(member)

    def copy(self) -> World:
        """The same nodes and pods, to be filled apart; what was learnt about places is shared."""
        twin = World(frozenset(self._relevant))
        twin._places, twin._dislikes = self._places, self._dislikes
        twin._alike = {alike: list(members) for alike, members in self._alike.items()}
        twin.pods = {member: list(pods) for member, pods in self.pods.items()}
        return twin

    def fill(self, pod_class: PodClass, pods: Sequence[PodKey]) -> Sequence[PodKey]:
        """Puts pods of the class on the nodes that fit best, in this order; returns those for which there is no room.

        Best: no PreferNoSchedule taint against it, no accelerator wasted on a pod that asks for none, then the least
        room: accelerators, cpu, memory. Content decides next, so that nodes' names decide only between twins.
        """
        placed = 0
        for _, place, room, count in self._best_first(pod_class):
            if placed == len(pods):
                break
            members = self._alike.pop((place, room))
            needed = min(len(members), -(-(len(pods) - placed) // count))
            for member in members[:needed]:
                self.hold(place, room, member, pods[placed : placed + count], pod_class.requests)
                placed = min(placed + count, len(pods))
            for member in members[needed:]:
                self.add(place, room, member)
        return pods[placed:]

    def hold(self, place: Place, room: Resources, member: int, pods: Sequence[PodKey], requests: Resources) -> None:
        """Puts these pods on one node, which has ``room`` before they come."""
        self.pods.setdefault(member, []).extend(pods)
        taken = Resources({resource: amount * len(pods) for resource, amount in requests.items()})
        self.add(place, room - taken, member)

    def _best_first(self, pod_class: PodClass) -> list[tuple[tuple[object, ...], Place, Resources, int]]:
        known = self._dislikes.setdefault(pod_class.demand, {})
        found: list[tuple[tuple[object, ...], Place, Resources, int]] = []
        for place, room in self._alike:
            count = how_many_fit(pod_class.requests, room)
            if not count:
                continue
            if place not in known:
                known[place] = _dislikes(pod_class.demand, place)
            disliked = known[place]
            if disliked is not None:
                found.append((_score(pod_class, place, room, disliked), place, room, count))
        found.sort(key=lambda each: each[0])
        return found


def _dislikes(demand: Demand, place: Place) -> int | None:
    """How many taints speak against the place; None when the kube-scheduler would not bind the pod there at all."""
    if demand.barring_taint(place.taints) is not None or not demand.admits(place.labels):
        return None
    return demand.disliked_taints(place.taints)


def _score(pod_class: PodClass, place: Place, room: Resources, disliked: int) -> tuple[object, ...]:
    wasted = place.is_accelerated and not pod_class.accelerators
    devices = sum(room.amount(resource) for resource in room.accelerators())
    return disliked, wasted, devices, room.amount(CPU), room.amount(MEMORY), place.content, tuple(room.items())
