"""A NodePool's own disruption budgets. Karpenter's arithmetic (NodePool v1, budgets).

The base that a percentage is taken of counts every machine of the pool that has a node, leaving and broken ones
included, and those lost in this pass: so it is never below what is seen nor below what is desired, machines in flight
apart. Those are in neither number: they serve nobody yet. Percentages round up.

One thing is not Karpenter's: budgets without reasons hold expiry too. There it is unbudgeted, and a fleet that was
launched in one hour ends in one hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from attrs import frozen
from cronsim import CronSimError

from engine.disruption.counted import Counted
from engine.disruption.said import BudgetSaid, BudgetState
from engine.model.duration import format_duration
from engine.model.policy import Budget, NodePool
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.policy.cron import fires


@frozen
class PoolStanding:
    """``base`` machines of a pool count, ``out`` of them serve nobody, whatever the cause; ``serving`` do. ``gpus`` are
    the whole accelerators of those that count. ``counted`` are those that are out, one by one, for people."""

    pool: NodePool
    base: int
    out: int
    serving: int
    gpus: int = 0
    counted: tuple[Counted, ...] = ()


def said_by_pool(pool: NodePool, reason: DisruptionReason, base: int, now: datetime) -> tuple[BudgetSaid, ...]:
    """What each of the pool's budgets that hold this reason says, in the file's order."""
    return tuple(
        _said(budget, base, now)
        for budget in pool.disruption.budgets
        if reason in (budget.reasons or VOLUNTARY_REASONS)
    )


def describe(budget: Budget) -> str:
    """A budget in a few words: ``10%``, ``0 nodes on "0 9 * * 1-5" for 8h``."""
    size = (
        f"{budget.percent}%" if budget.percent is not None else f"{budget.nodes or 0} node{'s' * (budget.nodes != 1)}"
    )
    if budget.schedule is None or budget.duration is None:
        return size
    return f'{size} on "{budget.schedule}" for {format_duration(budget.duration)}'


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


def changes_of(budget: Budget, start: datetime, end: datetime) -> Iterator[datetime]:
    """The moments in ``(start, end)`` at which the budget may become active, or cease to be. None for a bad schedule,
    which lets nothing go at any time."""
    if budget.schedule is None or budget.duration is None:
        return
    first, last = (moment.astimezone(UTC).replace(tzinfo=None) for moment in (start, end))
    try:
        for fire in fires(budget.schedule, first - budget.duration):
            if fire >= last:
                return
            yield from (
                moment.replace(tzinfo=UTC) for moment in (fire, fire + budget.duration) if first < moment < last
            )
    except CronSimError:
        return


def _said(budget: Budget, base: int, now: datetime) -> BudgetSaid:
    """A schedule that is none lets nothing go."""
    try:
        active = is_active(budget, now)
    except CronSimError as error:
        return BudgetSaid(name=describe(budget), state=BudgetState.ACTIVE, allowed=0, error=f"bad schedule: {error}")
    if not active:
        return BudgetSaid(name=describe(budget), state=BudgetState.SHUT, opens_at=_opens_at(budget, now))
    allowed, arithmetic = _size(budget, base)
    return BudgetSaid(name=describe(budget), state=BudgetState.ACTIVE, allowed=allowed, arithmetic=arithmetic)


def _size(budget: Budget, base: int) -> tuple[int, str]:
    if budget.percent is None:
        return budget.nodes or 0, f"{budget.nodes or 0}"
    allowed = -(-base * budget.percent // 100)
    exact = f"{base * budget.percent / 100:.2f}".rstrip("0").rstrip(".")
    rounded = f", rounded up to {allowed}" if base * budget.percent % 100 else ""
    return allowed, f"{budget.percent}% of {base} = {exact}{rounded}"


def _opens_at(budget: Budget, now: datetime) -> datetime | None:
    moment = now.astimezone(UTC).replace(tzinfo=None)
    opens = next(fires(budget.schedule, moment), None) if budget.schedule is not None else None
    return opens.replace(tzinfo=UTC) if opens is not None else None
