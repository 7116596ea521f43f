"""Classes of pods that have nothing to do with each other: no pool serves two of them, not even by way of others."""

from __future__ import annotations

from collections.abc import Sequence, Set

from engine.scheduling.groups import PodClass
from engine.scheduling.market import Market


def unrelated(classes: Sequence[PodClass], market: Market) -> list[tuple[Sequence[PodClass], Set[str]]]:
    """Parts of the classes, in their order, each with the pools that its new nodes may be of.

    Those for whom no node can be bought come first: they can only have what is there. Then those that ask for
    accelerators, with all whom the same pools serve.
    """
    parts: list[tuple[set[PodClass], set[str]]] = []
    for pod_class in classes:
        members, pools = {pod_class}, {kind.pool for kind in market.kinds(pod_class).values()}
        apart = []
        for part in parts:
            if part[1].isdisjoint(pools) and (part[1] or pools):
                apart.append(part)
            else:
                members |= part[0]
                pools |= part[1]
        parts = [*apart, (members, pools)]
    places = {pod_class: place for place, pod_class in enumerate(classes)}
    told = [(sorted(members, key=lambda each: places[each]), pools) for members, pools in parts]
    told.sort(key=lambda part: (bool(part[1]), not any(each.accelerators for each in part[0]), places[part[0][0]]))
    return [(members, pools) for members, pools in told]
