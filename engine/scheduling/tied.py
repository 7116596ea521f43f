"""Pods that are tied to others, and packing: where they go is settled before, and looked at again after."""

from __future__ import annotations

from collections.abc import Iterable, Set

from engine.model.pod import PodKey
from engine.scheduling.groups import PodClass
from engine.scheduling.market import Market
from engine.scheduling.packed import Wish
from engine.scheduling.topology.coupling import Coupling
from engine.scheduling.topology.pinning import is_pinned, pins
from engine.scheduling.topology.topology import Topology

# Pods of one class on one node, by its number.
Load = tuple[PodClass, tuple[PodKey, ...], int]


def wishes_by_domain(wish: Wish, foreseen: Topology | None, market: Market) -> list[Wish]:
    """The wish, or in its stead one for each combination of domains that some of its pods go to.

    ``foreseen`` counts them there. Pods for which there is no domain have no wish.
    """
    coupling = wish.pod_class.coupling
    keys = sorted(is_pinned(coupling))
    if foreseen is None or coupling is None or not keys:
        return [wish]
    combos = market.combos(wish.rung, tuple(keys))
    labels, costs = [combo.labels for combo in combos], [combo.least_micros for combo in combos]
    handed_out, _ = pins(foreseen, coupling, len(wish.pods), labels, costs)
    parts, taken = [], 0
    for index, count in handed_out:
        pods = wish.pods[taken : taken + count]
        parts.append(Wish(wish.pod_class, pods, wish.rung, combos[index].pin, wish.takes))
        taken += count
    return parts


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
