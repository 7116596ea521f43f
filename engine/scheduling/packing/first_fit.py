"""First fit decreasing: the answer that is there at once, and what fills up where better answers leave pods over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from engine.scheduling.packing import compiled
from engine.scheduling.packing.part import UNLIMITED, Load, Part
from engine.scheduling.packing.search import Ints


@frozen
class Bought:
    """``nodes`` nodes of a kind, by its place in the part, that hold the same."""

    kind: int
    load: Load
    nodes: int


def orders(part: Part) -> Iterator[tuple[int, ...]]:
    """Orders to place classes in: by what a pod costs where it costs the least, and by each resource."""
    whole = part.rooms.max(axis=0)
    share = part.requests / np.where(whole > 0, whole, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(part.fits > 0, part.prices[:, None] / part.fits, np.inf).min(axis=0)
    for key in (alone, share.max(axis=1), share.sum(axis=1)):
        yield tuple(np.argsort(-key, kind="stable").tolist())


def first_fit(part: Part, counts: Ints, order: Sequence[int], limits: Ints) -> tuple[list[Bought], Ints]:
    """Places the pods class by class, each on the first open node with room; else opens the kind that costs the least
    for each pod served. Returns the nodes, and how many of each class found no place within the limits."""
    ordered = np.array(order, np.int64)
    kinds, nodes, last, classes, pods, before, unplaced = compiled.fill(
        part.requests, part.rooms, part.prices, part.fits, part.takes, counts, ordered, limits, UNLIMITED
    )
    entries = list(zip(classes.tolist(), pods.tolist(), before.tolist(), strict=True))
    bought = [
        Bought(kind, _load(entries, entry), alike)
        for kind, alike, entry in zip(kinds.tolist(), nodes.tolist(), last.tolist(), strict=True)
        if alike
    ]
    return bought, unplaced


def _load(entries: Sequence[tuple[int, int, int]], last: int) -> Load:
    load = []
    while last >= 0:
        place, pods, last = entries[last]
        load.append((place, pods))
    return tuple(sorted(load))


def nodes_within(part: Part, kind: int, limits: Ints) -> int:
    """How many more nodes of the kind the limits admit."""
    taken = part.takes[kind] > 0
    return int((limits[taken] // part.takes[kind][taken]).min()) if taken.any() else UNLIMITED
