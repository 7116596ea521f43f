"""One question about disruption budgets, answered with every number: how many nodes of a pool may go, and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from attrs import frozen

from engine.disruption.budget_rules import BudgetRules
from engine.disruption.budgets import PoolStanding, said_by_pool
from engine.disruption.said import Bound, BudgetSaid, bounds, tightest
from engine.model.reason import DisruptionReason


@frozen
class BudgetExplanation:
    """What every budget that is about ``reason`` says of the pool, its own first, then rules by name.

    ``out`` of ``base`` nodes are out. ``least`` is the bound that decides; None is none, and ``left`` is None then.
    ``left`` nodes more may go now.
    """

    node_pool: str
    reason: DisruptionReason
    at: datetime
    base: int
    out: int
    said: tuple[BudgetSaid, ...]
    least: Bound | None

    @property
    def left(self) -> int | None:
        return self.least.left if self.least is not None else None


def explained(
    standing: PoolStanding, rules: BudgetRules, reasons: Sequence[DisruptionReason], rule: str | None = None
) -> tuple[BudgetExplanation, ...]:
    """One explanation for each reason; with ``rule``, only for those that the rule of that name is about."""
    asked = rules.on(standing)
    found = []
    for reason in reasons:
        about = [each for each in asked if each.is_about(reason)]
        if rule is not None and rule not in {each.rule.name for each in about}:
            continue
        said = (*said_by_pool(standing.pool, reason, standing.base, rules.now), *(each.said for each in about))
        acting = (bound for each in said if each.holds for bound in bounds(each, standing.out))
        found.append(
            BudgetExplanation(
                node_pool=standing.pool.name,
                reason=reason,
                at=rules.now,
                base=standing.base,
                out=standing.out,
                said=said,
                least=tightest(acting),
            )
        )
    return tuple(found)
