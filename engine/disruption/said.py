"""What one disruption budget says at one moment, whichever kind it is of: a NodePool's own, or a rule's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum

from attrs import frozen

from engine.model.rule import Enforcement

UNLIMITED = "no budget is active"


class BudgetState(str, Enum):
    """``SHUT`` and ``UNASKED`` say nothing: the window is shut, or a condition of the rule is false. ``BLOCKING``: the
    rule's windows are shut, and outside of them it lets nothing go."""

    ACTIVE = "active"
    SHUT = "shut"
    BLOCKING = "blocking"
    UNASKED = "unasked"


@frozen(kw_only=True)
class BudgetSaid:
    """``allowed`` nodes may be out at once, ``per_opening`` may go since ``opened_at``; None is no bound of the kind.

    ``arithmetic`` tells how ``allowed`` came about. ``rule`` is a DisruptionBudget's name, empty for a NodePool's own.
    ``begun`` are the claims that count towards ``per_opening``. ``opens_at`` is when a shut one opens next; None is
    never, or that it is open. ``error`` is what a budget came to that gave no number: it lets nothing go.
    """

    name: str
    state: BudgetState
    allowed: int | None = None
    arithmetic: str = ""
    rule: str = ""
    message: str = ""
    enforcement: Enforcement = Enforcement.DENY
    windows: tuple[str, ...] = ()
    per_opening: int | None = None
    begun: frozenset[str] = frozenset()
    opened_at: datetime | None = None
    opens_at: datetime | None = None
    error: str = ""

    @property
    def holds(self) -> bool:
        """Whether it limits anything now; what only warns or counts limits nothing."""
        return self.enforcement is Enforcement.DENY and self.speaks

    @property
    def speaks(self) -> bool:
        return self.state in (BudgetState.ACTIVE, BudgetState.BLOCKING)


@frozen
class Bound:
    """A number that a budget sets, and what counts towards it already. ``has_room`` is false on an error, too."""

    budget: str
    allowed: int
    used: int
    error: str = ""

    @property
    def left(self) -> int:
        return 0 if self.error else max(self.allowed - self.used, 0)


def bounds(said: BudgetSaid, out: int, begun: int | None = None) -> tuple[Bound, ...]:
    """The bounds that one budget sets. ``out`` nodes of the pool are out; ``begun`` count towards the opening, those
    that the budget itself names where None."""
    if not said.speaks:
        return ()
    found = []
    if said.allowed is not None:
        found.append(Bound(named(said), said.allowed, out, said.error))
    if said.per_opening is not None:
        counted = len(said.begun) if begun is None else begun
        found.append(Bound(f"{said.name}, in one opening of {', '.join(said.windows)}", said.per_opening, counted))
    return tuple(found)


def named(said: BudgetSaid) -> str:
    """``slow-drain, window night`` or ``slow-drain, outside window night``; a budget without windows by its name."""
    if not said.windows:
        return said.name
    outside = "outside " if said.state is BudgetState.BLOCKING else ""
    several = "s" * (len(said.windows) > 1)
    return f"{said.name}, {outside}window{several} {', '.join(said.windows)}"


def tightest(every: Iterable[Bound]) -> Bound | None:
    """The bound that leaves the least; of several the one that allows least, then the first by name. None: no bound."""
    return min(every, key=lambda each: (each.left, each.allowed, each.budget), default=None)


def least_allowed(said: Iterable[BudgetSaid]) -> int | None:
    """How many nodes may be out at once by all of these; None is unlimited."""
    return min((each.allowed for each in said if each.holds and each.allowed is not None), default=None)
