"""Pods that are tied to others, and packing: where they go is settled before, and looked at again after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import lru_cache

from attrs import evolve

from engine.model.pod import PodKey
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Rung
from engine.scheduling.packed import Pin, Wish
from engine.scheduling.requirements import canonical_labels
from engine.scheduling.topology.coupling import Coupling
from engine.scheduling.topology.pinning import is_pinned, pins
from engine.scheduling.topology.topology import Topology

# Pods of one class on one node, by its number.
Load = tuple[PodClass, tuple[PodKey, ...], int]


def wishes_by_domain(wish: Wish, foreseen: Topology | None) -> list[Wish]:
    """The wish, or in its stead one for each combination of domains that some of its pods go to.

    ``foreseen`` counts them there. Pods for which there is no domain have no wish.
    """
    coupling = wish.pod_class.coupling
    keys = sorted(is_pinned(coupling))
    if foreseen is None or coupling is None or not keys:
        return [wish]
    combos = _combos(wish.rung, tuple(keys))
    labels = [{**dict(pin), **seen} for pin, (_, seen) in combos.items()]
    handed_out, _ = pins(foreseen, coupling, len(wish.pods), labels, [cost for cost, _ in combos.values()])
    parts, taken, named = [], 0, list(combos)
    for index, count in handed_out:
        parts.append(evolve(wish, pods=wish.pods[taken : taken + count], pin=named[index]))
        taken += count
    return parts


# Classes by the thousand have a few dozen rungs among them.
@lru_cache(maxsize=128)
def _combos(rung: Rung, keys: tuple[str, ...]) -> Mapping[Pin, tuple[int, Mapping[str, str]]]:
    """The values of the keys that the rung's nodes can have, with the least that a pod costs there and the labels of
    such a node; in order."""
    found: dict[Pin, tuple[int, Mapping[str, str]]] = {}
    for offer in rung:
        cost = offer.kind.cost.micros // offer.pods_per_node
        added = dict(offer.kind.added_labels)
        for option in offer.options:
            labels = {**canonical_labels(option.labels_once_up), **added}
            pin = tuple((key, labels[key]) for key in keys if key in labels)
            if pin not in found or cost < found[pin][0]:
                found[pin] = (cost, labels)
    return dict(sorted(found.items()))


def kept_by_ties(loads: Iterable[Load], topology: Topology | None) -> Iterable[Load]:
    """The loads that stand when all of them are there: each of their pods could be bound last.

    Those of ties of which no pod could be bound first are left out: kube-scheduler has gone another way than was
    planned, and they would wait for ever.
    """
    every = list(loads)
    if topology is None:
        return every
    begun = _begun(every, topology)
    whole = topology.copy()
    left = [load for load in every if load[0].coupling is None or load[0].coupling in begun]
    for pod_class, pods, member in left:
        if pod_class.coupling is not None:
            whole.put(pod_class.coupling, member, len(pods))
    return [
        (pod_class, pods, member)
        for pod_class, pods, member in left
        if pod_class.coupling is None or whole.keeps(pod_class.coupling, member)
    ]


def _begun(loads: Iterable[Load], topology: Topology) -> Set[Coupling]:
    """The ties of which some pod can be bound, others of the loads before it."""
    waiting = [
        (pod_class.coupling, member, len(pods)) for pod_class, pods, member in loads if pod_class.coupling is not None
    ]
    every = {coupling for coupling, _, _ in waiting}
    now, begun = topology.copy(), set[Coupling]()
    while len(begun) < len(every):
        left = []
        for coupling, member, count in waiting:
            went = now.admitted(coupling, member, count)
            if went:
                now.put(coupling, member, went)
                begun.add(coupling)
            if went < count:
                left.append((coupling, member, count - went))
        if left == waiting:
            break
        waiting = left
    return begun


def are_kept(placed: Iterable[tuple[PodClass, int]], topology: Topology) -> bool:
    """Whether pods that are placed, and counted in the topology, could each stay where it is were it the last."""
    return all(pod_class.coupling is None or topology.keeps(pod_class.coupling, member) for pod_class, member in placed)
