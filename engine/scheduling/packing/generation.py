"""Column generation on one part: better and better loads, and a proven bound, a turn at a time.

Method: Gilmore and Gomory's program over loads; prices of the searches smoothed towards the best so far (Wentges 1997);
the bound of each turn after Farley (1990). Bounds are worked out in whole numbers, so no rounding can spoil them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from attrs import frozen

from engine.scheduling.packing.compiled import best_load, weighing
from engine.scheduling.packing.master import MICROS, Column, Master, Optimum
from engine.scheduling.packing.part import UNLIMITED, Part
from engine.scheduling.packing.search import Floats, Ints

# Searches count money in thousandths of a micro-dollar.
_PER_MICRO = 1000
_SMOOTHING = 0.7
# How long prices of resources are looked for: longer for a kind whose search was cut short before.
_WEIGHING_ROUNDS, _MORE_ROUNDS = 100, 1_000
_FIRST_SEARCH, _MORE_SEARCH, _LONGEST_SEARCH = 20_000, 8, 160_000
# So many turns without a better bound while searches are cut short are the sign that they are too short.
_PATIENCE = 10
# Loads that gain less than this part of a price are not looked for, and bounds are that much lower: first large gains,
# which are found fast, and finer ones when there are none left.
_WORTHWHILE = (1e-3, 1e-4, 1e-5)
# What one solution of the program counts as: its time grows with its columns and the square of its rows.
_STEPS_OF_PROGRAM, _PIVOTS_A_STEP = 5_000, 350
# So many kinds are searched before it is asked whether that has brought anything.
_KINDS_AT_ONCE = 48


@frozen(eq=False)
class _Prices:
    """What pods and limits are worth, in thousandths of micro-dollars; the second never positive."""

    worth: Ints
    limit_worth: Ints

    @classmethod
    def of(cls, optimum: Optimum) -> _Prices:
        scale = MICROS * _PER_MICRO
        return cls(_whole(optimum.worth * scale), _whole(optimum.limit_worth * scale))

    def towards(self, other: _Prices, part: float) -> _Prices:
        return _Prices(
            _whole((1 - part) * self.worth + part * other.worth),
            _whole((1 - part) * self.limit_worth + part * other.limit_worth),
        )


def _whole(amounts: Floats | Ints) -> Ints:
    return np.rint(amounts).astype(np.int64)


def steps_of_program(part: Part, columns: int) -> int:
    """What one solution of the part's program with so many columns counts as."""
    return _STEPS_OF_PROGRAM + len(part.counts) ** 2 * columns // _PIVOTS_A_STEP


class Generation:
    """The columns found for a part, the last optimum over them, and the bound that was proven so far."""

    def __init__(self, part: Part, first: tuple[Column, ...]) -> None:
        """``first`` must place all pods, unless limits are in the way."""
        self.part = part
        self.master = Master(part)
        for column in first:
            self.master.add(column)
        self.optimum: Optimum | None = None
        self.best_prices: _Prices | None = None
        self._best_scale = Fraction(1)
        self.bound_micros = 0
        self._smoothing = _SMOOTHING
        self.grains_done = 0
        self._longest = _FIRST_SEARCH
        self._turns_in_vain = 0
        self._rounds = [_WEIGHING_ROUNDS] * len(part.prices)
        self._guests = [np.flatnonzero(fits) for fits in part.fits]
        alike: dict[bytes, list[int]] = {}
        for kind in np.argsort(part.prices, kind="stable").tolist():
            alike.setdefault(self._guests[kind].tobytes(), []).append(kind)
        # Kinds with the same guests, the cheap ones first.
        self._alike = list(alike.values())

    def turn(self) -> int:
        """One solution of the program and one search for each kind. Returns the steps used. Raises SolverFailed."""
        optimum = self.master.solve()
        self.optimum = optimum
        now = _Prices.of(optimum)
        asked = now if self.best_prices is None else now.towards(self.best_prices, self._smoothing)
        steps, added, was_cut, better = self._search(asked, now)
        self._turns_in_vain = 0 if better else self._turns_in_vain + 1
        if was_cut and self._turns_in_vain >= _PATIENCE:
            self._search_longer()
        if self.bound_micros * (1 + 2 * self._worthwhile) >= optimum.dollars * MICROS:
            self._search_finer()
        elif added or (better and self._smoothing):
            self._smoothing = _SMOOTHING
        elif self._smoothing:
            self._smoothing = 0.0
        elif was_cut and self._longest < _LONGEST_SEARCH:
            self._search_longer()
        else:
            self._search_finer()
        return steps + steps_of_program(self.part, len(self.master.columns))

    @property
    def is_done(self) -> bool:
        """Whether no load is left that is worth finding, as far as searches went."""
        return self.grains_done == len(_WORTHWHILE)

    @property
    def _worthwhile(self) -> float:
        return _WORTHWHILE[self.grains_done]

    def _search_longer(self) -> None:
        self._longest = min(_LONGEST_SEARCH, self._longest * _MORE_SEARCH)
        self._turns_in_vain = 0

    def _search_finer(self) -> None:
        self.grains_done += 1
        self._smoothing = _SMOOTHING

    def _search(self, asked: _Prices, now: _Prices) -> tuple[int, int, bool, bool]:
        """Steps used, columns added, whether any search was cut short, whether the bound got better.

        Where there are many kinds, those that promise most come first, and the others are not looked into as long as
        these bring anything: what each could be worth at most is known without a search.
        """
        part, steps, added, was_cut = self.part, 0, 0, False
        scale = Fraction(1)
        at_most = self._worth_at_most(asked)
        prices = [self._price(kind, asked) for kind in range(len(self._guests))]
        order = sorted(range(len(prices)), key=lambda kind: (-at_most[kind] / max(1, prices[kind]), kind))
        for place, kind in enumerate(order):
            price = prices[kind]
            to_beat = price + int(price * self._worthwhile)
            most = at_most[kind]
            if most > to_beat and not (added and place >= _KINDS_AT_ONCE):
                guests = self._guests[kind]
                requests, values = part.requests[guests], asked.worth[guests]
                weights = weighing(requests, values, part.rooms[kind], self._rounds[kind])
                value, most, load, used = best_load(
                    requests, values, part.counts[guests], part.rooms[kind], weights, to_beat, self._longest
                )
                steps += used
                if most > value:
                    was_cut, self._rounds[kind] = True, _MORE_ROUNDS
                if value > to_beat and int(load @ now.worth[guests]) > self._price(kind, now):
                    taken = np.flatnonzero(load)
                    whole = tuple(zip(guests[taken].tolist(), load[taken].tolist(), strict=True))
                    added += self.master.add(Column(kind, whole))
            if most > price:
                scale = min(scale, Fraction(price, most))
        bound = _bound(part, part.counts, asked, scale)
        better = bound > self.bound_micros or self.best_prices is None
        if better:
            self.bound_micros, self.best_prices, self._best_scale = max(bound, self.bound_micros), asked, scale
        return steps, added, was_cut, better

    def _worth_at_most(self, asked: _Prices) -> list[int]:
        """For each kind, what no load of it is worth more than: its room at prices at which no class is underpriced.

        Any prices of resources give such a bound; those are taken that are nearly the best for a kind in the middle.
        """
        if len(self._guests) <= _KINDS_AT_ONCE:
            return [UNLIMITED] * len(self._guests)
        part = self.part
        found = [UNLIMITED] * len(self._guests)
        for kinds in self._alike:
            guests = self._guests[kinds[0]]
            requests, values = part.requests[guests], asked.worth[guests]
            weights = weighing(requests, values, part.rooms[kinds[len(kinds) // 2]], _WEIGHING_ROUNDS)
            cost = requests @ weights.T
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(values[:, None] > 0, values[:, None] / cost, 0.0).max(axis=0)
                bounds = (part.rooms[kinds] @ weights.T * ratios).min(axis=1)
            # Rounding must never make a bound too low.
            for kind, bound in zip(kinds, np.ceil(bounds * (1 + 1e-9)).tolist(), strict=True):
                found[kind] = min(UNLIMITED, int(bound)) if np.isfinite(bound) else UNLIMITED
        return found

    def _price(self, kind: int, prices: _Prices) -> int:
        """A node of the kind, with what it takes of limits."""
        return int(self.part.prices[kind]) * _PER_MICRO - int(self.part.takes[kind] @ prices.limit_worth)

    def bound_of(self, counts: Ints) -> int:
        """The least that so many pods of each class can cost, in micro-dollars, as far as it is proven."""
        proven = resource_bound(self.part, counts)
        if self.best_prices is not None:
            proven = max(proven, _bound(self.part, counts, self.best_prices, self._best_scale))
        return proven


def _bound(part: Part, counts: Ints, prices: _Prices, scale: Fraction) -> int:
    """What the pods are worth, at prices scaled down so that no load is worth more than its node; rounded up, since
    costs are whole."""
    pods = sum(int(each) * int(count) for each, count in zip(prices.worth, counts, strict=True))
    limits = sum(int(each) * int(limit) for each, limit in zip(prices.limit_worth, part.limits, strict=True))
    return -int(-(pods * scale + limits) // _PER_MICRO)


def resource_bound(part: Part, counts: Ints) -> int:
    """What the pods would cost if each could have just so much of one resource, of the kind where that is cheapest.

    The most over the resources, in micro-dollars: what can be said at once.
    """
    most = 0
    for resource in range(part.requests.shape[1]):
        asked = part.requests[:, resource] * counts
        total = sum(
            (each * int(asked[places].sum()) for places, each in part.least_prices(resource)), start=Fraction(0)
        )
        most = max(most, -int(-total // 1))
    return most
