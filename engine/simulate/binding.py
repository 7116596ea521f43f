"""Binding pods to nodes as kube-scheduler's filters allow it, by default onto the fullest node that has room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import Enum

from attrs import define, frozen

from engine.model.constraint import Taint, TaintEffect
from engine.model.coupling import couplings
from engine.model.node import Node
from engine.model.pod import Placing, Pod, PodKey
from engine.model.quantity import CPU, MEMORY, NOTHING, Resources

_BARRING = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)


class Scoring(str, Enum):
    """Which of the nodes that pass is taken: the fullest, as GPU clusters have it, or the emptiest, its default."""

    MOST_ALLOCATED = "MostAllocated"
    LEAST_ALLOCATED = "LeastAllocated"


@define
class _Room:
    node: Node
    left: Resources


@frozen
class Bound:
    """Node names for those waiting pods that fit, and words for those that do not, in the queue's order."""

    nodes: Mapping[PodKey, str]
    unbound: Mapping[PodKey, str]


def bind_pods(
    pods: Iterable[Pod], nodes: Sequence[Node], nominated: Mapping[str, str] | None = None
) -> tuple[Mapping[PodKey, str], Mapping[PodKey, str]]:
    """Node names for those waiting pods that fit, and words for those that do not.

    Pods that are ``nominated``, by ``NAMESPACE/NAME``, have their node first: others keep off the room that is theirs.
    The rest go by priority, then age, then size, as kube-scheduler's queue has them; of the nodes that pass, the one
    with least room left is taken (its MostAllocated scoring, which GPU clusters use).
    """
    every = tuple(pods)
    rooms = Rooms()
    for node in nodes:
        rooms.put(node)
    for pod in every:
        if pod.node_name is not None and not pod.is_finished:
            rooms.take(pod.node_name, pod.placing.requests)
    found = rooms.bind((each for each in every if each.is_to_be_bound), nominated or {})
    return found.nodes, found.unbound


class Rooms:
    """What is left on each node, kept from one round of binding to the next.

    ``coupled`` is asked where a pod that other pods tie may go: the name of its node, or empty. Without it such pods
    are told that they are not placed.
    """

    def __init__(self, scoring: Scoring = Scoring.MOST_ALLOCATED, coupled: Callable[[Pod], str] | None = None) -> None:
        self._rooms: dict[str, _Room] = {}
        self._fewest_first = scoring is Scoring.MOST_ALLOCATED
        self._coupled = coupled
        self._in_order: list[_Room] | None = None

    def put(self, node: Node) -> None:
        """A node that is new, or has changed; what was taken of it stays taken."""
        known = self._rooms.get(node.name)
        if known is None:
            self._rooms[node.name] = _Room(node, node.allocatable)
            self._in_order = None
            return
        if known.node.allocatable != node.allocatable:
            known.left = known.left + (node.allocatable - known.node.allocatable)
        known.node = node

    def drop(self, name: str) -> None:
        """A node that is gone."""
        self._rooms.pop(name, None)
        self._in_order = None

    def take(self, name: str, requests: Resources) -> None:
        """Room that a pod has; of a node that is not there nothing is taken."""
        if (room := self._rooms.get(name)) is not None:
            room.left = room.left - requests

    def give(self, name: str, requests: Resources) -> None:
        """Room that a pod has left."""
        if (room := self._rooms.get(name)) is not None:
            room.left = room.left + requests

    def left(self, name: str) -> Resources:
        """What is free on a node; nothing where there is no such node."""
        room = self._rooms.get(name)
        return room.left if room is not None else NOTHING

    def bind(self, waiting: Iterable[Pod], nominated: Mapping[str, str]) -> Bound:
        """Bind what fits, and take its room. ``nominated`` node names are by ``NAMESPACE/NAME``.

        A nominated pod that finds no room on its node yet holds it all the same, as far as there is any: kube-scheduler
        counts it there when it tries others.
        """
        unbound: dict[PodKey, str] = {}
        # A pod like one that found nothing finds nothing: rooms only shrink while we bind.
        hopeless: dict[Hashable, str] = {}
        latest: dict[Hashable, _Room] = {}
        queue = sorted(waiting, key=_queue_order)
        bound, held = self._bind_nominated(queue, nominated)
        for pod in queue:
            if pod.key in bound:
                continue
            likeness = pod.placing.content
            if likeness in hopeless:
                unbound[pod.key] = hopeless[likeness]
                continue
            fitting, why_not = self._fitting(pod, latest.get(likeness))
            if fitting is None:
                unbound[pod.key] = why_not
                if not _couplings(pod.placing) or self._coupled is None:
                    hopeless[likeness] = why_not
            else:
                bound[pod.key] = fitting.node.name
                fitting.left = fitting.left - pod.placing.requests
                latest[likeness] = fitting
        for room, requests in held:
            room.left = room.left + requests
        return Bound(bound, unbound)

    def _bind_nominated(
        self, queue: Iterable[Pod], nominated: Mapping[str, str]
    ) -> tuple[dict[PodKey, str], list[tuple[_Room, Resources]]]:
        """Those that their node takes now, and the room that is held for the others meanwhile."""
        bound: dict[PodKey, str] = {}
        held: list[tuple[_Room, Resources]] = []
        for pod in queue:
            room, requests = self._rooms.get(nominated.get(str(pod.key), "")), pod.placing.requests
            if room is None:
                continue
            if requests.fits_in(room.left) and _may_take(pod.placing, room):
                bound[pod.key] = room.node.name
            else:
                held.append((room, requests))
            room.left = room.left - requests
        return bound, held

    def _fitting(self, pod: Pod, latest: _Room | None) -> tuple[_Room | None, str]:
        """The node to take, or the words of kube-scheduler's own event about the lack of one."""
        placing = pod.placing
        if tied := _couplings(placing):
            named = self._rooms.get(self._coupled(pod)) if self._coupled is not None else None
            if named is not None and placing.requests.fits_in(named.left) and _may_take(placing, named, tied=True):
                return named, ""
            return None, f"the simulated scheduler does not place {', '.join(tied)}"
        if latest is not None and self._fewest_first and placing.requests.fits_in(latest.left):
            # The fullest node of a moment ago is fuller now.
            return latest, ""
        best: _Room | None = None
        best_left: tuple[int, int, int] = (0, 0, 0)
        for room in self._ordered():
            if not placing.requests.fits_in(room.left) or not room.node.ready or _barrier(placing, room.node):
                continue
            left = _left_over(room)
            if best is None or (left < best_left if self._fewest_first else left > best_left):
                best, best_left = room, left
        return (best, "") if best is not None else (None, self._why_none(placing))

    def _why_none(self, placing: Placing) -> str:
        reasons: Counter[str] = Counter()
        ready = [room for room in self._ordered() if room.node.ready]
        for room in ready:
            barrier = _barrier(placing, room.node)
            if barrier:
                reasons[barrier] += 1
            else:
                reasons.update(f"Insufficient {resource}" for resource, _, _ in placing.requests.shortfalls(room.left))
        counted = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        return f"0/{len(ready)} nodes are available" + (f": {counted}." if counted else ".")

    def _ordered(self) -> list[_Room]:
        if self._in_order is None:
            self._in_order = [self._rooms[name] for name in sorted(self._rooms)]
        return self._in_order


def may_run(placing: Placing, node: Node) -> bool:
    """Whether selector, affinity and taints let a pod onto a node, room aside."""
    return not _barrier(placing, node)


def _queue_order(pod: Pod) -> tuple[object, ...]:
    asked = pod.placing.requests
    accelerators = sum(asked.amount(resource) for resource in asked.accelerators())
    return (-pod.priority, pod.created_at, -accelerators, -asked.amount(CPU), -asked.amount(MEMORY), pod.key)


def _couplings(placing: Placing) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*placing.unsupported, *couplings(placing))))


def _may_take(placing: Placing, room: _Room, *, tied: bool = False) -> bool:
    """Whether a node takes such a pod, room aside. ``tied``: what ties it to other pods has been seen to."""
    return room.node.ready and (tied or not _couplings(placing)) and not _barrier(placing, room.node)


def _left_over(room: _Room) -> tuple[int, int, int]:
    accelerators = sum(room.left.amount(resource) for resource in room.left.accelerators())
    return accelerators, room.left.amount(CPU), room.left.amount(MEMORY)


def _barrier(placing: Placing, node: Node) -> str:
    if node.unschedulable:
        return "node(s) were unschedulable"
    if any(_bars(taint, placing) for taint in node.taints):
        return "node(s) had untolerated taint(s)"
    if any(node.labels.get(key) != value for key, value in placing.node_selector.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    terms = placing.affinity_terms
    if terms and not any(all(need.admits(node.labels.get(need.key)) for need in term) for term in terms):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def _bars(taint: Taint, placing: Placing) -> bool:
    return taint.effect in _BARRING and not any(toleration.tolerates(taint) for toleration in placing.tolerations)
