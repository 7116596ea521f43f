"""The search that everything waits for: the most valuable load of one node. Compiled; see compiled.py.

Written for the compiler: plain loops over arrays, one function, no calls. It runs uncompiled, too, and the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def best_load(  # noqa: C901
    requests: Ints, values: Ints, counts: Ints, room: Ints, weights: Floats, to_beat: int, steps: int
) -> tuple[int, int, Ints, int]:
    """The load of a node worth the most, if it is worth more than ``to_beat``: a knapsack of several dimensions.

    ``requests`` has a row for each class, ``values`` what a pod of it is worth, ``counts`` how many there are.
    Depth first, most of the class with the highest value for its weight first. ``weights`` has rows of prices for
    the resources: what is left of the room, weighed so, times the best ratio of value to weight that is still to come,
    bounds what can still be had; of all rows the least. Rows may hold any positive amounts: the better, the faster.

    Returns the value (``to_beat`` if nothing is worth more), a bound that no load's value exceeds, the load, and how
    many steps were used. The bound is the value where the search ended by itself.
    """
    classes, dimensions = requests.shape
    prices = weights.shape[0]
    # Rounding of floats must never cut off what is better: amounts are whole, so this errs to the safe side.
    slack = 1.0 + 1e-9
    order = np.empty(classes, np.int64)
    useful = np.empty(classes, np.int64)
    chosen = 0
    ratios = np.zeros(classes, np.float64)
    for i in range(classes):
        fits = counts[i]
        for d in range(dimensions):
            if requests[i, d] > room[d]:
                fits = 0
        if fits > 0 and values[i] > 0:
            order[chosen] = i
            chosen += 1
    # A class is left out where another is worth as much, takes no more, and is never short: each load with the one is
    # beaten or equalled by that with the other in its place.
    kept = 0
    for a in range(chosen):
        i = order[a]
        is_beaten = False
        for b in range(chosen):
            j = order[b]
            if values[j] < values[i] or a == b:
                continue
            takes_no_more = True
            is_same = values[j] == values[i]
            fits = counts[j] + 1
            for d in range(dimensions):
                if requests[j, d] > requests[i, d]:
                    takes_no_more = False
                    break
                if requests[j, d] < requests[i, d]:
                    is_same = False
                if requests[j, d] > 0:
                    fits = min(fits, room[d] // requests[j, d])
            if takes_no_more and fits <= counts[j] and not (is_same and b > a):
                is_beaten = True
                break
        if not is_beaten:
            useful[kept] = i
            kept += 1
    chosen = kept
    for a in range(chosen):
        i = useful[a]
        order[a] = i
        weight = 0.0
        for d in range(dimensions):
            weight += weights[0, d] * requests[i, d]
        ratios[i] = values[i] / weight if weight > 0.0 else np.inf
    for a in range(1, chosen):
        i = order[a]
        b = a - 1
        while b >= 0 and ratios[order[b]] < ratios[i]:
            order[b + 1] = order[b]
            b -= 1
        order[b + 1] = i
    # By price and place in the order: the best ratio from there on.
    still = np.zeros((prices, chosen + 1), np.float64)
    for p in range(prices):
        for a in range(chosen - 1, -1, -1):
            i = order[a]
            weight = 0.0
            for d in range(dimensions):
                weight += weights[p, d] * requests[i, d]
            ratio = values[i] / weight if weight > 0.0 else np.inf
            still[p, a] = max(still[p, a + 1], ratio)

    left = room.copy()
    taken = np.zeros(chosen, np.int64)
    best = to_beat
    best_taken = np.zeros(chosen, np.int64)
    value = 0
    used = 0
    place = 0
    while True:
        # Downwards: as many as fit of each class in turn, while it may still lead to something better.
        while place < chosen:
            used += 1
            bound = np.inf
            for p in range(prices):
                if still[p, place] < np.inf:
                    weight = 0.0
                    for d in range(dimensions):
                        weight += weights[p, d] * left[d]
                    bound = min(bound, still[p, place] * weight)
            if value + bound * slack < best + 1:
                break
            i = order[place]
            fits = counts[i]
            for d in range(dimensions):
                if requests[i, d] > 0:
                    fits = min(fits, left[d] // requests[i, d])
            if fits > 0:
                taken[place] = fits
                value += fits * values[i]
                for d in range(dimensions):
                    left[d] -= fits * requests[i, d]
            place += 1
        if value > best:
            best = value
            best_taken[:] = taken
        # Upwards: one less of the last class that was taken.
        place = min(place, chosen) - 1
        while place >= 0 and taken[place] == 0:
            place -= 1
        if place < 0 or used >= steps:
            break
        i = order[place]
        taken[place] -= 1
        value -= values[i]
        for d in range(dimensions):
            left[d] += requests[i, d]
        place += 1

    # Cut short: what the branches that were not looked into may still be worth.
    bound_of_all = float(best)
    while place >= 0:
        if taken[place] > 0:
            i = order[place]
            fewer = taken[place] - 1
            value -= taken[place] * values[i]
            for d in range(dimensions):
                left[d] += taken[place] * requests[i, d]
            taken[place] = 0
            bound = np.inf
            for p in range(prices):
                if still[p, place] < np.inf:
                    weight = 0.0
                    each = 0.0
                    for d in range(dimensions):
                        weight += weights[p, d] * left[d]
                        each += weights[p, d] * requests[i, d]
                    rest = still[p, place + 1]
                    with_fewer = fewer * values[i] + rest * (weight - fewer * each)
                    bound = min(bound, max(rest * weight, with_fewer))
            bound_of_all = max(bound_of_all, value + bound * slack)
        place -= 1

    whole = np.inf
    for p in range(prices):
        if still[p, 0] < np.inf:
            weight = 0.0
            for d in range(dimensions):
                weight += weights[p, d] * room[d]
            whole = min(whole, still[p, 0] * weight)
    bound_of_all = max(float(best), min(bound_of_all, whole * slack))

    load = np.zeros(classes, np.int64)
    for a in range(chosen):
        load[order[a]] = best_taken[a]
    return best, int(np.ceil(bound_of_all)), load, used


def weighing(requests: Ints, values: Ints, room: Ints, rounds: int) -> Floats:  # noqa: C901
    """Prices of the resources for ``best_load`` of a room: the first row nearly the best for a bound, then each alone.

    The best prices make the whole room cost the least while no class is worth more than its requests cost. They are
    approached by raising, again and again, the prices of what the most underpriced class asks for.
    """
    classes, dimensions = requests.shape
    rows = np.zeros((dimensions + 1, dimensions), np.float64)
    # What a pod takes of the room, for its worth; of classes that are worth something and fit.
    shares = np.zeros((classes, dimensions), np.float64)
    chosen = 0
    for i in range(classes):
        holds = values[i] > 0
        for d in range(dimensions):
            if requests[i, d] > room[d]:
                holds = False
        if holds:
            for d in range(dimensions):
                if requests[i, d] > 0:
                    shares[chosen, d] = requests[i, d] / (room[d] * float(values[i]))
            chosen += 1
    prices = np.full(dimensions, 1.0 / dimensions)
    for d in range(dimensions):
        if room[d] > 0:
            rows[d + 1, d] = 1.0 / room[d]
        rows[0, d] = 1.0 / room[d] if room[d] > 0 else 1.0
    best = 0.0
    for turn in range(rounds):
        cheapest = -1
        least = np.inf
        for i in range(chosen):
            cost = 0.0
            for d in range(dimensions):
                cost += prices[d] * shares[i, d]
            if cost < least:
                least = cost
                cheapest = i
        if cheapest < 0:
            break
        if least > best:
            best = least
            for d in range(dimensions):
                rows[0, d] = prices[d] / room[d] if room[d] > 0 else 1.0
        largest = 0.0
        for d in range(dimensions):
            largest = max(largest, shares[cheapest, d])
        if largest <= 0.0:
            break
        step = 1.0 / (3.0 + turn * 0.5)
        total = 0.0
        for d in range(dimensions):
            prices[d] *= 1.0 + step * shares[cheapest, d] / largest
            total += prices[d]
        for d in range(dimensions):
            prices[d] /= total
    return rows
