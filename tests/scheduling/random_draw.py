"""Dice, and how large a random cluster may be."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from attrs import frozen

T = TypeVar("T")


@frozen
class Knobs:
    """The most of everything; each cluster draws its own numbers up to these.

    ``copies`` is how many equal pods one shape may have. ``troubles``: nodes, claims and the ledger may be in any
    state; without it all that stands is up. ``bounds``: limits, caps, refused offerings and closed pools.
    ``oddities``: pods that must not be planned for, base capacity, static pools, daemonsets that select labels.

    The rest are ties, drawn apart from all else: ``spreads`` over zones, nodes, capacity types and labels of pools,
    ``affinity`` and anti-affinity between pods, ``host_ports``, ``volumes``, ``preferences`` (with priority classes and
    several terms of node affinity), ``min_values`` of pools, and ``companies``: pods that must be where some of
    another app are.
    """

    pools: int = 3
    types: int = 5
    shapes: int = 6
    copies: int = 4
    machines: int = 5
    foreign: int = 2
    daemon_sets: int = 3
    zones: int = 3
    troubles: bool = True
    bounds: bool = True
    oddities: bool = True
    spreads: bool = False
    affinity: bool = False
    host_ports: bool = False
    volumes: bool = False
    preferences: bool = False
    min_values: bool = False
    companies: bool = False

    @property
    def has_ties(self) -> bool:
        drawn = (self.spreads, self.affinity, self.host_ports, self.volumes, self.preferences, self.min_values)
        return any((*drawn, self.companies))


class Dice:
    """Draws from one seed."""

    def __init__(self, random: Random, strictness: int) -> None:
        """``strictness``: one in so many things has a constraint of a kind, and three in so many at most."""
        self._random = random
        self._strictness = strictness

    def pick(self, values: Sequence[T]) -> T:
        return self._random.choice(values)

    def maybe(self, none: T, values: Sequence[T]) -> T:
        """One of the values now and then, nothing otherwise."""
        return self._random.choice(values) if self.one_in(self._strictness) else none

    def one_in(self, many: int) -> bool:
        return self._random.randrange(many) == 0

    def upto(self, most: int, least: int = 0) -> int:
        return self._random.randint(least, most)

    def some(self, values: Sequence[T], least: int, most: int) -> list[T]:
        return self._random.sample(list(values), self._random.randint(least, min(most, len(values))))
