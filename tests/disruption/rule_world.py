"""Budget rules at a moment, over machines that stand empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from engine.disruption.budget_rules import BudgetRules, Gone
from engine.disruption.budgets import PoolStanding
from engine.disruption.candidate import Candidate
from engine.disruption.candidates import Choice, choose
from engine.disruption.machine import Machine
from engine.model.ledger import Disruption
from engine.model.pod import Pod
from engine.model.policy import NodePool, Policy
from engine.model.reason import DisruptionReason
from engine.model.rule import DisruptionBudget, Expression, NamedExpression, Window
from engine.policy.facts.values import cluster_facts
from engine.policy.rules.compiled import bundle_of
from tests.builders import NOON, SOMEWHERE, environment, node_class, snapshot

EMPTY = DisruptionReason.EMPTY
HOUR = timedelta(hours=1)


def cel(text: str | None) -> Expression | None:
    return None if text is None else Expression(text, SOMEWHERE)


def rule(
    name: str = "slow-drain",
    *,
    candidate: str | None = None,
    budget: str | None = None,
    most: str | None = None,
    windows: Sequence[str] = (),
    only_if: str | None = None,
    **more: object,
) -> DisruptionBudget:
    """``most`` is maxPerWindow, ``only_if`` a match condition. ``more``: reasons, blocks_outside, enforcement…"""
    conditions = (NamedExpression("only", Expression(only_if, SOMEWHERE)),) if only_if is not None else ()
    fields: dict[str, object] = {"message": f"{name} says so", "match_conditions": conditions, **more}
    return DisruptionBudget(
        name=name,
        position=SOMEWHERE,
        candidate=cel(candidate),
        budget=cel(budget),
        max_per_window=cel(most),
        windows=tuple(windows),
        **fields,  # type: ignore[arg-type]
    )


def window(name: str = "day", *schedules: str, lasts: timedelta = 8 * HOUR, zone: str = "UTC") -> Window:
    """Open from 9 to 17 UTC on every day, without more said."""
    return Window(name, schedules or ("0 9 * * *",), lasts, zone, position=SOMEWHERE)


def policy(pools: Iterable[NodePool], rules: Iterable[DisruptionBudget], windows: Iterable[Window] = ()) -> Policy:
    return Policy(
        node_pools=tuple(pools),
        node_classes=(node_class(),),
        rules=tuple(sorted(rules, key=lambda each: each.name)),
        windows=tuple(sorted(windows, key=lambda each: each.name)),
    )


def known(disruptions: Mapping[str, Disruption] | None = None, since: datetime | None = NOON - 99 * HOUR) -> Gone:
    return Gone(disruptions or {}, since)


def asked(
    *rules: DisruptionBudget,
    windows: Iterable[Window] = (),
    gone: Gone | None = None,
    pods: Mapping[str, Sequence[Pod]] | None = None,
    at: datetime = NOON,
) -> BudgetRules:
    facts = cluster_facts(environment(), snapshot())
    on = pods or {}
    bundle = bundle_of(policy((), rules, windows))
    every = tuple(windows)
    return BudgetRules(bundle, every, facts, gone or known(), lambda machine: on.get(machine.claim.name, ()), at)


def standings(machines: Iterable[Machine]) -> dict[str, PoolStanding]:
    everyone = tuple(machines)
    found = {}
    for pool in {each.pool.name: each.pool for each in everyone}.values():
        members = [each for each in everyone if each.pool.name == pool.name]
        serving = sum(each.serves for each in members)
        found[pool.name] = PoolStanding(pool, len(members), len(members) - serving, serving)
    return found


def chosen(
    machines: Iterable[Machine],
    rules: BudgetRules,
    *,
    reason: DisruptionReason = EMPTY,
    stay: Iterable[str] = (),
    cap: int = 100,
    at: datetime = NOON,
) -> Choice:
    """All machines are candidates, but those that ``stay``; these count all the same."""
    everyone = tuple(machines)
    wanted = [
        Candidate(machine=each, reason=reason, rule="test", since=NOON)
        for each in everyone
        if each.claim.name not in set(stay)
    ]
    return choose(wanted, standings(everyone), cap=cap, released=0, now=at, rules=rules)


def going(choice: Choice) -> list[str]:
    return sorted(removal.record.claim for removal in choice.removals)


def gone_at(moment: datetime, pool: str = "gpu", reason: DisruptionReason = EMPTY) -> Disruption:
    return Disruption(pool, reason, begun_at=moment, acted_at=moment)
