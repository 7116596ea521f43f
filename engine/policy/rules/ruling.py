"""What requirement rules decide for a pod, as a value that the scheduler reads: which types are barred, which liked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from attrs import frozen

# An instance type and a capacity type: what a requirement rule is asked about.
TypeAt = tuple[str, str]


@frozen
class Bar:
    """Why a type is not for a pod: the first rule, in name order, that does not let it through, and its message.

    ``error`` is what the rule came to where it gave no answer, empty where it said no. ``is_forbidden``: some rule,
    this one or a later one, said no, so it is not for errors alone that the type is barred.
    """

    rule: str
    message: str
    error: str = ""
    is_forbidden: bool = True


@frozen
class Ruling:
    """Of one pool, for pods that its rules cannot tell apart. Types that are not named are let through, and score 0.

    ``scores`` are sums of weighted preferences. Both are in the order of their types.
    """

    bars: tuple[tuple[TypeAt, Bar], ...] = ()
    scores: tuple[tuple[TypeAt, float], ...] = ()

    @cached_property
    def barred(self) -> Mapping[TypeAt, Bar]:
        return dict(self.bars)

    @cached_property
    def score_of(self) -> Mapping[TypeAt, float]:
        return dict(self.scores)


@frozen
class Rulings:
    """A pod's rulings in all pools; those that bar nothing and like nothing are left out. In the order of the pools."""

    by_pool: tuple[tuple[str, Ruling], ...] = ()

    @cached_property
    def _of(self) -> Mapping[str, Ruling]:
        return dict(self.by_pool)

    @cached_property
    def order(self) -> str:
        """Tells different rulings apart the same way in every pass."""
        return repr(self.by_pool) if self.by_pool else ""

    def ruling(self, pool: str) -> Ruling:
        return self._of.get(pool, LETS_ALL)

    def bar(self, pool: str, type_at: TypeAt) -> Bar | None:
        """Why the pool may make no such node for the pod; None: it may."""
        return self.ruling(pool).barred.get(type_at) if self.by_pool else None

    def score(self, pool: str, type_at: TypeAt) -> float:
        """How much the pod likes such a node of the pool; 0 where no rule says anything."""
        return self.ruling(pool).score_of.get(type_at, 0.0) if self.by_pool else 0.0


LETS_ALL = Ruling()
NO_RULINGS = Rulings()
