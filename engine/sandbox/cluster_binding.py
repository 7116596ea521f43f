"""Binding pods to nodes as kube-scheduler's filters allow it, onto the fullest node that has room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from attrs import define

from engine.model.constraint import Taint, TaintEffect
from engine.model.coupling import couplings
from engine.model.node import Node
from engine.model.pod import Placing, Pod, PodKey
from engine.model.quantity import CPU, MEMORY, Resources

_BARRING = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)


@define
class _Room:
    node: Node
    left: Resources


def bind_pods(
    pods: Iterable[Pod], nodes: Sequence[Node], nominated: Mapping[str, str] | None = None
) -> tuple[Mapping[PodKey, str], Mapping[PodKey, str]]:
    """Node names for those waiting pods that fit, and words for those that do not.

    Pods that are ``nominated``, by ``NAMESPACE/NAME``, have their node first: others keep off the room that is theirs.
    The rest go by priority, then age, then size, as kube-scheduler's queue has them; of the nodes that pass, the one
    with least room left is taken (its MostAllocated scoring, which GPU clusters use).
    """
    every = tuple(pods)
    rooms = [_Room(node, node.allocatable) for node in sorted(nodes, key=lambda each: each.name) if node.ready]
    by_name = {room.node.name: room for room in rooms}
    for pod in every:
        if pod.node_name in by_name and not pod.is_finished:
            room = by_name[pod.node_name]
            room.left = room.left - pod.placing.requests
    bound: dict[PodKey, str] = {}
    unbound: dict[PodKey, str] = {}
    # A pod like one that found nothing finds nothing: rooms only shrink while we bind.
    hopeless: dict[Hashable, str] = {}
    queue = sorted((each for each in every if each.is_to_be_bound), key=_queue_order)
    for pod in queue:
        wanted = by_name.get((nominated or {}).get(str(pod.key), ""))
        if wanted is not None and _fitting(pod.placing, [wanted])[0] is not None:
            bound[pod.key] = wanted.node.name
            wanted.left = wanted.left - pod.placing.requests
    for pod in queue:
        if pod.key in bound:
            continue
        likeness = pod.placing.content
        if likeness in hopeless:
            unbound[pod.key] = hopeless[likeness]
            continue
        fitting, why_not = _fitting(pod.placing, rooms)
        if fitting is None:
            unbound[pod.key] = hopeless[likeness] = why_not
        else:
            bound[pod.key] = fitting.node.name
            fitting.left = fitting.left - pod.placing.requests
    return bound, unbound


def may_run(placing: Placing, node: Node) -> bool:
    """Whether selector, affinity and taints let a pod onto a node, room aside."""
    return not _barrier(placing, node)


def _queue_order(pod: Pod) -> tuple[object, ...]:
    asked = pod.placing.requests
    accelerators = sum(asked.amount(resource) for resource in asked.accelerators())
    return (-pod.priority, pod.created_at, -accelerators, -asked.amount(CPU), -asked.amount(MEMORY), pod.key)


def _fitting(placing: Placing, rooms: Iterable[_Room]) -> tuple[_Room | None, str]:
    """The fullest node that has room, or the words of kube-scheduler's own event about the lack of one."""
    if unknown := tuple(dict.fromkeys((*placing.unsupported, *couplings(placing)))):
        return None, f"the simulated scheduler does not place {', '.join(unknown)}"
    best: _Room | None = None
    reasons: Counter[str] = Counter()
    tried = 0
    for room in rooms:
        tried += 1
        barrier = _barrier(placing, room.node)
        if barrier:
            reasons[barrier] += 1
        elif short := [resource for resource, _, _ in placing.requests.shortfalls(room.left)]:
            reasons.update(f"Insufficient {resource}" for resource in short)
        elif best is None or _left_over(room) < _left_over(best):
            best = room
    if best is not None:
        return best, ""
    counted = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return None, f"0/{tried} nodes are available" + (f": {counted}." if counted else ".")


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
