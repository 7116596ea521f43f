"""Classes and kinds of node that have nothing to do with others, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from attrs import field, frozen

from engine.scheduling.packing.search import Ints

UNLIMITED = 2**62
# Quotients in floating point are no further apart from the exact ones.
_ROUGHLY = 1 + 1e-9
# The pods on a node: places of classes in their part, in order, and how many of each; zeros left out.
Load = tuple[tuple[int, int], ...]


@frozen(eq=False)
class Part:
    """Classes and kinds that have nothing to do with those of other parts, all of them placeable but for limits.

    ``class_indices`` and ``kind_indices`` are those of the problem. Arrays: ``requests`` by class and resource,
    ``rooms`` by kind and resource, ``allowed`` by kind and class, ``takes`` by kind and limit. A kind's own ``most``
    is one of the limits here.
    """

    class_indices: tuple[int, ...]
    kind_indices: tuple[int, ...]
    requests: Ints
    counts: Ints
    rooms: Ints
    prices: Ints
    allowed: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    takes: Ints
    limits: Ints
    fits: Ints = field(init=False)
    by_price: Ints = field(init=False)

    @fits.default
    def _pods_of_one_class(self) -> Ints:
        """By kind and class, how many pods of nothing but the class a node of the kind holds."""
        fits = np.full(self.allowed.shape, UNLIMITED, np.int64)
        for resource in range(self.requests.shape[1]):
            # Classes by the hundred ask for a few different amounts, and dividing is what takes time.
            amounts, of_class = np.unique(self.requests[:, resource], return_inverse=True)
            held = np.where(amounts > 0, self.rooms[:, resource, None] // np.maximum(amounts, 1), UNLIMITED)
            np.minimum(fits, held[:, of_class], out=fits)
        return np.where(self.allowed, fits, 0)

    @by_price.default
    def _the_cheap_ones_first(self) -> Ints:
        return np.argsort(self.prices, kind="stable")

    def least_prices(self, resource: int) -> Sequence[tuple[Ints, Fraction]]:
        """What one unit of a resource costs where it is cheapest, in micro-dollars, for the classes, by place, that ask
        for it; those that may go to the same kinds together."""
        return self._least_prices[resource]

    @cached_property
    def _least_prices(self) -> tuple[tuple[tuple[Ints, Fraction], ...], ...]:
        alike: dict[bytes, list[int]] = {}
        for place, column in enumerate(np.ascontiguousarray(self.allowed.T)):
            alike.setdefault(column.tobytes(), []).append(place)
        found = []
        for resource in range(self.requests.shape[1]):
            priced = []
            for places in alike.values():
                asking = np.array([place for place in places if self.requests[place, resource]], np.int64)
                if len(asking):
                    kinds = np.flatnonzero(self.allowed[:, places[0]])
                    priced.append((asking, self._least_price(resource, kinds)))
            found.append(tuple(priced))
        return tuple(found)

    def _least_price(self, resource: int, kinds: Ints) -> Fraction:
        rooms, prices = self.rooms[kinds, resource], self.prices[kinds]
        with np.errstate(divide="ignore"):
            about = np.where(rooms > 0, prices / rooms, np.inf)
        near = np.flatnonzero(about <= about.min() * _ROUGHLY)
        return min(Fraction(int(prices[each]), int(rooms[each])) for each in near.tolist())
