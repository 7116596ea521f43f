"""First fit, and what is asked about all kinds of node, as loops over arrays. Compiled; see compiled.py.

Written for the compiler: plain loops, one function each, no calls. They run uncompiled, too, and the same.
"""

from __future__ import annotations

import numpy as np

from engine.scheduling.packing.search import Ints

Bools = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def fill(  # noqa: C901
    requests: Ints,
    rooms: Ints,
    prices: Ints,
    fits: Ints,
    takes: Ints,
    counts: Ints,
    order: Ints,
    limits: Ints,
    unlimited: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """Places pods class by class, in ``order``: each on the first open node with room, else on a new one of the kind
    that costs the least for each pod served.

    ``fits`` is by kind and class, 0 where a class may not go; ``takes`` by kind and limit. Returns, by group of nodes
    that hold the same, the kind, how many nodes, and the last entry of what one of them holds; by entry, the class, the
    pods and the entry before, -1 for none; and by class how many pods found no place within the limits.
    """
    kinds, dimensions = rooms.shape
    unplaced = np.zeros(counts.shape[0], np.int64)
    left_of_limits = limits.copy()
    groups = 0
    group_kind = np.empty(64, np.int64)
    group_nodes = np.empty(64, np.int64)
    group_last = np.empty(64, np.int64)
    group_left = np.empty((64, dimensions), np.int64)
    entries = 0
    entry_class = np.empty(64, np.int64)
    entry_pods = np.empty(64, np.int64)
    entry_before = np.empty(64, np.int64)
    for place in order:
        pods = counts[place]
        opened = groups
        group = 0
        best = -1
        while pods > 0:
            if group < opened:
                # Onto an open one.
                at = group
                group += 1
                if group_nodes[at] == 0 or fits[group_kind[at], place] == 0:
                    continue
                each = unlimited
                for d in range(dimensions):
                    if requests[place, d] > 0:
                        each = min(each, group_left[at, d] // requests[place, d])
                if each <= 0:
                    continue
                full = min(pods, each * group_nodes[at]) // each
                rest = min(pods, each * group_nodes[at]) - full * each
            else:
                best = -1
                least = np.inf
                for kind in range(kinds):
                    if fits[kind, place] > 0:
                        cost = prices[kind] / min(fits[kind, place], pods)
                        if cost < least:
                            within = True
                            for limit in range(takes.shape[1]):
                                if takes[kind, limit] > left_of_limits[limit]:
                                    within = False
                            if within:
                                best = kind
                                least = cost
                if best < 0:
                    break
                each = min(fits[best, place], pods)
                full = pods // each
                rest = 0
                for limit in range(takes.shape[1]):
                    if takes[best, limit] > 0:
                        full = min(full, left_of_limits[limit] // takes[best, limit])
                for limit in range(takes.shape[1]):
                    left_of_limits[limit] -= full * takes[best, limit]
                at = -1
            # First the node that takes the rest, then those that take as many as they hold.
            for part in range(2):
                nodes = full
                load = each
                if part == 0:
                    nodes = min(rest, 1)
                    load = rest
                if nodes == 0:
                    continue
                to = at
                if at < 0 or nodes < group_nodes[at]:
                    # Nodes of their own.
                    if groups == group_kind.shape[0]:
                        more = np.empty(2 * groups, np.int64)
                        more[:groups] = group_kind
                        group_kind = more
                        more = np.empty(2 * groups, np.int64)
                        more[:groups] = group_nodes
                        group_nodes = more
                        more = np.empty(2 * groups, np.int64)
                        more[:groups] = group_last
                        group_last = more
                        wider = np.empty((2 * groups, dimensions), np.int64)
                        wider[:groups] = group_left
                        group_left = wider
                    to = groups
                    groups += 1
                    group_nodes[to] = nodes
                    if at < 0:
                        group_kind[to] = best
                        group_last[to] = -1
                        group_left[to] = rooms[best]
                    else:
                        group_nodes[at] -= nodes
                        group_kind[to] = group_kind[at]
                        group_last[to] = group_last[at]
                        group_left[to] = group_left[at]
                if entries == entry_class.shape[0]:
                    more = np.empty(2 * entries, np.int64)
                    more[:entries] = entry_class
                    entry_class = more
                    more = np.empty(2 * entries, np.int64)
                    more[:entries] = entry_pods
                    entry_pods = more
                    more = np.empty(2 * entries, np.int64)
                    more[:entries] = entry_before
                    entry_before = more
                entry_class[entries] = place
                entry_pods[entries] = load
                entry_before[entries] = group_last[to]
                group_last[to] = entries
                entries += 1
                for d in range(dimensions):
                    group_left[to, d] -= load * requests[place, d]
                pods -= nodes * load
        unplaced[place] = pods
    return (
        group_kind[:groups],
        group_nodes[:groups],
        group_last[:groups],
        entry_class[:entries],
        entry_pods[:entries],
        entry_before[:entries],
        unplaced,
    )


def cheapest_for(  # noqa: C901
    rooms: Ints, by_price: Ints, fits: Ints, takes: Ints, requests: Ints, kind: int, classes: Ints, pods: Ints
) -> int:
    """The cheapest kind, the first of ``by_price``, that holds so many ``pods`` of these classes and takes no more of
    any limit than ``kind``, which holds them."""
    dimensions = rooms.shape[1]
    needed = np.zeros(dimensions, np.int64)
    for at in range(classes.shape[0]):
        for d in range(dimensions):
            needed[d] += pods[at] * requests[classes[at], d]
    for other in by_price:
        holds = True
        for d in range(dimensions):
            if rooms[other, d] < needed[d]:
                holds = False
                break
        if not holds:
            continue
        for limit in range(takes.shape[1]):
            if takes[other, limit] > takes[kind, limit]:
                holds = False
        for at in range(classes.shape[0]):
            if fits[other, classes[at]] == 0:
                holds = False
        if holds:
            return int(other)
    return kind


def unbeaten(prices: Ints, rooms: Ints, takes: Ints, is_endless: Bools, set_of: Ints, covers: Bools) -> Bools:
    """Which kinds are not beaten by one before them that costs no more, has as much room and takes as little; by one
    that is limited in number, none is.

    ``covers`` tells of two sets of guests whether the first has all of the second.
    """
    kinds = rooms.shape[0]
    kept = np.ones(kinds, np.bool_)
    for kind in range(kinds):
        for other in range(kind):
            if not (kept[other] and is_endless[other] and covers[set_of[other], set_of[kind]]):
                continue
            beats = prices[other] <= prices[kind]
            for d in range(rooms.shape[1]):
                if rooms[other, d] < rooms[kind, d]:
                    beats = False
                    break
            for limit in range(takes.shape[1]):
                if takes[other, limit] > takes[kind, limit]:
                    beats = False
            if beats:
                kept[kind] = False
                break
    return kept
