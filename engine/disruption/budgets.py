"""Disruption budgets: how many nodes of a pool may be out at once. Karpenter's arithmetic (NodePool v1, budgets).

The base that a percentage is taken of counts every machine of the pool that has a node, leaving and broken ones
included, and those lost in this pass: so it is never below what is seen nor below what is desired, machines in flight
apart. Those are in neither number: they serve nobody yet. Percentages round up.
"""

from __future__ import annotations

from datetime import UTC, datetime

from attrs import frozen
from cronsim import CronSimError

from engine.model.document import BudgetUse
from engine.model.duration import format_duration
from engine.model.policy import Budget, NodePool
from engine.model.reason import DisruptionReason
from engine.policy.cron import fires

# The reasons that a budget holds when it names none (Karpenter's NodePool.GetAllowedDisruptionsByReason).
DEFAULT_REASONS = (DisruptionReason.UNDERUTILIZED, DisruptionReason.EMPTY, DisruptionReason.DRIFTED)
UNLIMITED = "no budget is active"


@frozen
class PoolStanding:
    """``base`` machines of a pool count, ``out`` of them serve nobody, whatever the cause; ``serving`` do."""

    pool: NodePool
    base: int
    out: int
    serving: int


@frozen
class Allowance:
    """What the tightest active budget lets go at once; ``allowed`` None is no bound."""

    budget: str
    allowed: int | None

    def use(self, base: int, used: int) -> BudgetUse:
        """The arithmetic for one more that goes, as a removal record keeps it."""
        allowed = base if self.allowed is None else self.allowed
        return BudgetUse(budget=self.budget, base=base, allowed=allowed, used=used)

    def has_room(self, used: int) -> bool:
        return self.allowed is None or used < self.allowed


def allowance(standing: PoolStanding, reason: DisruptionReason, now: datetime) -> Allowance:
    """The least of the pool's budgets that are active now and hold this reason; none such: unlimited."""
    holding = [budget for budget in standing.pool.disruption.budgets if reason in (budget.reasons or DEFAULT_REASONS)]
    bounds = [
        (bound, describe(budget)) for budget in holding if (bound := _bound(budget, standing.base, now)) is not None
    ]
    if not bounds:
        return Allowance(budget=UNLIMITED, allowed=None)
    allowed, budget = min(bounds)
    return Allowance(budget=budget, allowed=allowed)


def describe(budget: Budget) -> str:
    """A budget in a few words: ``10%``, ``0 nodes on "0 9 * * 1-5" for 8h``."""
    size = (
        f"{budget.percent}%" if budget.percent is not None else f"{budget.nodes or 0} node{'s' * (budget.nodes != 1)}"
    )
    if budget.schedule is None or budget.duration is None:
        return size
    return f'{size} on "{budget.schedule}" for {format_duration(budget.duration)}'


def _bound(budget: Budget, base: int, now: datetime) -> int | None:
    """How many nodes a budget lets be out; None while its window is shut. A schedule that is none lets nothing go."""
    try:
        if not is_active(budget, now):
            return None
    except CronSimError:
        return 0
    if budget.percent is not None:
        return -(-base * budget.percent // 100)
    return budget.nodes or 0


def is_active(budget: Budget, now: datetime) -> bool:
    """Whether the window of a budget is open: from each time of its schedule, in UTC, for its duration.

    Raises CronSimError when the schedule is no 5-field cron line.
    """
    if budget.schedule is None or budget.duration is None:
        return True
    moment = now.astimezone(UTC).replace(tzinfo=None)
    # The first time after the earliest start that would still be running: at most now, when a window is open.
    opened = next(fires(budget.schedule, moment - budget.duration), None)
    return opened is not None and opened <= moment
