"""How many nodes of a pool may be out, over days to come: spells in which that does not change, and what decides.

Every moment at which a budget's window opens or shuts, or a calendar's does, is looked at, and nothing between: no
number can change there. Where a rule reads the time itself, each hour is looked at too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from attrs import evolve, frozen

from engine.disruption.budget_rules import BudgetRules
from engine.disruption.budgets import PoolStanding, changes_of, said_by_pool
from engine.disruption.said import UNLIMITED, BudgetSaid, named
from engine.model.policy import NodePool
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.rule import Window
from engine.policy.windows import openings

_HOUR = timedelta(hours=1)

RulesAt = Callable[[datetime], BudgetRules]


@frozen
class PerOpening:
    """A rule lets ``allowed`` go in each opening of its windows; ``opened_at`` is when this one began, in UTC."""

    budget: str
    allowed: int
    windows: tuple[str, ...]
    opened_at: datetime


@frozen
class Spell:
    """From ``begins`` to ``ends``, in UTC, ``allowed`` nodes may be out at once; None is no limit at all.

    ``budget`` names the least budget. ``per_opening`` limits come on top, each counted from its own opening. ``error``
    is what a budget came to that gave no number.
    """

    begins: datetime
    ends: datetime
    allowed: int | None
    budget: str
    per_opening: tuple[PerOpening, ...] = ()
    error: str = ""


@frozen
class ReasonsTimetable:
    """The spells of reasons that have them in common."""

    reasons: tuple[DisruptionReason, ...]
    spells: tuple[Spell, ...]


@frozen
class PoolTimetable:
    """One pool of ``nodes`` nodes. ``zones`` are those of its rules' windows, UTC apart."""

    node_pool: str
    nodes: int
    rows: tuple[ReasonsTimetable, ...]
    zones: tuple[str, ...] = ()


def timetable(
    pool: NodePool, nodes: int, gpus: int, rules_at: RulesAt, windows: Sequence[Window], start: datetime, end: datetime
) -> PoolTimetable:
    """What may go of the pool in ``[start, end)``. ``nodes`` and ``gpus`` are supposed to stay, and nothing to be out.

    ``rules_at`` gives the rules at a moment; ``windows`` are all windows of the calendars.
    """
    standing = PoolStanding(pool=pool, base=nodes, out=0, serving=nodes, gpus=gpus)
    moments = _moments(pool, rules_at(start), windows, start, end)
    spells: dict[DisruptionReason, list[Spell]] = {reason: [] for reason in VOLUNTARY_REASONS}
    for begins, ends in pairwise(moments):
        rules = rules_at(begins).on(standing)
        for reason, found in spells.items():
            about = (rule.said for rule in rules if rule.is_about(reason))
            said = (*said_by_pool(pool, reason, nodes, begins), *about)
            _append(found, _spell([each for each in said if each.holds], begins, ends))
    alike: dict[tuple[Spell, ...], tuple[DisruptionReason, ...]] = {}
    for reason, found in spells.items():
        alike[tuple(found)] = (*alike.get(tuple(found), ()), reason)
    zone_of = {window.name: window.time_zone for window in windows}
    zones = {zone_of[name] for rule in rules_at(start).on(standing) for name in rule.rule.windows} - {"UTC"}
    rows = tuple(ReasonsTimetable(reasons, found) for found, reasons in alike.items())
    return PoolTimetable(node_pool=pool.name, nodes=nodes, rows=rows, zones=tuple(sorted(zones)))


def _moments(
    pool: NodePool, rules: BudgetRules, windows: Sequence[Window], start: datetime, end: datetime
) -> list[datetime]:
    """Every moment at which a number may change, with both ends."""
    found = {start, end}
    for budget in pool.disruption.budgets:
        found.update(changes_of(budget, start, end))
    for window in windows:
        for opening in openings(window, start, end):
            found |= {opening.begins, opening.ends}
    if rules.read_the_time:
        hour = start.replace(minute=0, second=0, microsecond=0) + _HOUR
        while hour < end:
            found.add(hour)
            hour += _HOUR
    return sorted(found)


def _append(spells: list[Spell], spell: Spell) -> None:
    """Spells that differ in their times alone are one."""
    if spells and evolve(spells[-1], ends=spell.ends) == evolve(spell, begins=spells[-1].begins):
        spells[-1] = evolve(spells[-1], ends=spell.ends)
    else:
        spells.append(spell)


def _spell(said: Sequence[BudgetSaid], begins: datetime, ends: datetime) -> Spell:
    least = min(
        (each for each in said if each.allowed is not None),
        key=lambda each: (each.allowed or 0, not each.error),
        default=None,
    )
    per_opening = tuple(
        PerOpening(each.name, each.per_opening, each.windows, each.opened_at)
        for each in said
        if each.per_opening is not None and each.opened_at is not None
    )
    if least is None:
        return Spell(begins, ends, None, UNLIMITED, per_opening)
    return Spell(begins, ends, least.allowed, named(least), per_opening, least.error)
