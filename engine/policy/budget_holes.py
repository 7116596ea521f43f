"""When a pool's budgets limit nothing: outside their schedules, or for reasons that none of them names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice, pairwise

from engine.model.policy import Budget
from engine.model.reason import DisruptionReason
from engine.policy.cron import fires

# Budgets hold for these; expiry and what is lost come without asking them (Karpenter's rule).
_LIMITED = (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED)
_ANY_DAY = datetime(2026, 1, 1)
# More than a year of weekly times, and every gap of a yearly one.
_TIMES_LOOKED_AT = 60


def unlimited_reasons(budgets: Sequence[Budget]) -> tuple[DisruptionReason, ...]:
    """The reasons for which there are times when no budget holds: then any number of nodes may go."""
    always = [budget for budget in budgets if _holds_always(budget)]
    return tuple(
        reason for reason in _LIMITED if not any(not budget.reasons or reason in budget.reasons for budget in always)
    )


def _holds_always(budget: Budget) -> bool:
    if budget.schedule is None or budget.duration is None:
        return True
    times = islice(fires(budget.schedule, _ANY_DAY), _TIMES_LOOKED_AT)
    longest_gap = max((later - earlier for earlier, later in pairwise(times)), default=timedelta.max)
    return longest_gap <= budget.duration
