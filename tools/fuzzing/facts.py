"""Facts at random, to evaluate rules on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from engine.policy.cel.port import Plain
from engine.policy.cel.types import CelType, ListOf, MapOf, Record, Scalar
from tools.fuzzing.words import MAP_KEYS, TEXTS


class FactFuzz:
    """Makes facts of any type: ordinary ones, and those at the edge of what a cluster could tell."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def fact(self, type_: CelType) -> Plain:
        match type_:
            case Record():
                return {each.name: self.fact(each.type) for each in type_.fields}
            case ListOf(element):
                return [self.fact(element) for _ in range(self._rng.choice((0, 1, 2, 3)))]
            case MapOf(value):
                return {key: self.fact(value) for key in self._rng.sample(MAP_KEYS, self._rng.randint(0, 4))}
            case Scalar():
                return self._scalar(type_)

    def _scalar(self, type_: Scalar) -> Plain:
        match type_:
            case Scalar.BOOL:
                return self._rng.random() < 0.5
            case Scalar.INT:
                return self._rng.choice(
                    (0, 1, 2, 8, 80, 1000, 10**12, 2**63 - 1, -(2**63), -1, self._rng.randint(0, 300))
                )
            case Scalar.DOUBLE:
                return self._rng.choice((0.0, -0.0, 1.0, 2.5, 0.1, 98.32, 1e308, -3.5, self._rng.uniform(0, 100)))
            case Scalar.STRING:
                return self._rng.choice((*TEXTS, "g6e.12xlarge", "on-demand", "us-east-1a"))
            case Scalar.DURATION:
                return timedelta(seconds=self._rng.choice((0, 1, 59, 3600, 90_061, -60, 10**9, 0.5, 0.000001)))
            case Scalar.TIMESTAMP:
                moments = ((2026, 11, 30, 12), (1970, 1, 1, 0), (2026, 3, 29, 1), (2099, 12, 31, 23), (2024, 2, 29, 5))
                return datetime(*self._rng.choice(moments), tzinfo=UTC) + timedelta(seconds=self._rng.randint(0, 7200))
