"""One question about disruption budgets, answered with every number: how many nodes of a pool may go, and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from attrs import evolve, frozen

from engine.disruption.budget_rules import BudgetRules, RuleOnPool
from engine.disruption.budgets import PoolStanding, said_by_pool
from engine.disruption.counted import Counted
from engine.disruption.said import Bound, BudgetSaid, bounds, tightest
from engine.model.reason import DisruptionReason


@frozen
class BudgetExplanation:
    """What every budget that is about ``reason`` says of the pool, its own first, then rules by name.

    ``out`` of ``base`` nodes are out, and ``going`` more go by the plan: the next pass marks them, or they wait for
    their replacements, which counts as much. ``counted`` are all of these, where they are known one by one. ``least``
    is the bound that decides; None is none, and ``left`` is None then. ``left`` nodes more may go now.
    """

    node_pool: str
    reason: DisruptionReason
    at: datetime
    base: int
    out: int
    said: tuple[BudgetSaid, ...]
    least: Bound | None
    going: int = 0
    counted: tuple[Counted, ...] = ()

    @property
    def left(self) -> int | None:
        return self.least.left if self.least is not None else None


def explained(
    standing: PoolStanding,
    rules: BudgetRules,
    reasons: Sequence[DisruptionReason],
    rule: str | None = None,
    going: Sequence[Counted] = (),
) -> tuple[BudgetExplanation, ...]:
    """One explanation for each reason; with ``rule``, only for those that the rule of that name is about. ``going`` are
    nodes of the pool that serve still, and go by the plan."""
    asked = rules.on(standing)
    found = []
    for reason in reasons:
        about = [each for each in asked if each.is_about(reason)]
        if rule is not None and rule not in {each.rule.name for each in about}:
            continue
        said = (*said_by_pool(standing.pool, reason, standing.base, rules.now), *(each.said for each in about))
        said = tuple(_with_going(each, asked, going) for each in said)
        acting = (bound for each in said if each.holds for bound in bounds(each, standing.out + len(going)))
        found.append(
            BudgetExplanation(
                node_pool=standing.pool.name,
                reason=reason,
                at=rules.now,
                base=standing.base,
                out=standing.out,
                said=said,
                least=tightest(acting),
                going=len(going),
                counted=(*standing.counted, *going),
            )
        )
    return tuple(found)


def _with_going(said: BudgetSaid, asked: Sequence[RuleOnPool], going: Sequence[Counted]) -> BudgetSaid:
    """Those that go count towards an opening too, where the rule is about what they go for."""
    if said.per_opening is None:
        return said
    own = [rule for rule in asked if rule.rule.name == said.rule]
    counts = {each.claim for each in going for rule in own if each.reason is not None and rule.is_about(each.reason)}
    return evolve(said, begun=said.begun | counts)
