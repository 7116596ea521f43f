"""First fit decreasing: the answer that is there at once, and what fills up where better answers leave pods over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, frozen

from engine.scheduling.packing.part import UNLIMITED, Load, Part
from engine.scheduling.packing.search import Ints


@frozen
class Bought:
    """``nodes`` nodes of a kind, by its place in the part, that hold the same."""

    kind: int
    load: Load
    nodes: int


@define(eq=False)
class _Open:
    """Nodes of a kind that are alike so far."""

    kind: int
    left: Ints
    load: Ints
    nodes: int

    def split(self, nodes: int) -> _Open:
        """So many of them as nodes of their own."""
        self.nodes -= nodes
        return _Open(self.kind, self.left.copy(), self.load.copy(), nodes)


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
    opened: list[_Open] = []
    unplaced, left = np.zeros_like(counts), limits.copy()
    for place in order:
        pods = int(counts[place])
        if pods:
            pods = _onto_open(part, opened, place, pods)
            unplaced[place] = _onto_new(part, opened, place, pods, left)
    return [Bought(each.kind, tuple(each.load.tolist()), each.nodes) for each in opened if each.nodes], unplaced


def _onto_open(part: Part, opened: list[_Open], place: int, pods: int) -> int:
    if not opened:
        return pods
    request = part.requests[place]
    asked = request > 0
    rooms = np.array([each.left for each in opened])
    fits = (rooms[:, asked] // request[asked]).min(axis=1)
    fits[~part.allowed[[each.kind for each in opened], place]] = 0
    for index in np.flatnonzero(fits):
        each, fit = opened[index], int(fits[index])
        full, rest = divmod(min(pods, fit * each.nodes), fit)
        if rest:
            _put(opened, each, place, rest, 1, request)
        if full:
            _put(opened, each, place, fit, full, request)
        pods -= full * fit + rest
        if not pods:
            break
    return pods


def _put(opened: list[_Open], group: _Open, place: int, pods: int, nodes: int, request: Ints) -> None:
    if nodes < group.nodes:
        group = group.split(nodes)
        opened.append(group)
    group.load[place] += pods
    group.left -= pods * request


def _onto_new(part: Part, opened: list[_Open], place: int, pods: int, limits: Ints) -> int:
    while pods:
        best = _cheapest(part, place, pods, limits)
        if best is None:
            break
        kind, fit, most = best
        each = min(fit, pods)
        nodes = min(pods // each, most)
        group = _Open(kind, part.rooms[kind].copy(), np.zeros(len(part.counts), np.int64), nodes)
        group.load[place] = each
        group.left -= each * part.requests[place]
        opened.append(group)
        limits -= nodes * part.takes[kind]
        pods -= nodes * each
    return pods


def _cheapest(part: Part, place: int, pods: int, limits: Ints) -> tuple[int, int, int] | None:
    """The kind that costs the least for each of so many pods, how many it holds, how many of it there may be."""
    fits = part.fits[:, place]
    among = np.flatnonzero((fits > 0) & (part.takes <= limits).all(axis=1))
    if not len(among):
        return None
    kind = int(among[np.argmin(part.prices[among] / np.minimum(fits[among], pods))])
    return kind, int(fits[kind]), nodes_within(part, kind, limits)


def nodes_within(part: Part, kind: int, limits: Ints) -> int:
    """How many more nodes of the kind the limits admit."""
    taken = part.takes[kind] > 0
    return int((limits[taken] // part.takes[kind][taken]).min()) if taken.any() else UNLIMITED
