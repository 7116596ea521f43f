"""What differs in the files themselves: rules, pools, classes, windows, settings, limits, and findings of ``check``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from itertools import pairwise

from attrs import evolve, fields, has

from engine.model.diagnostic import Diagnostic, Position
from engine.model.duration import format_duration
from engine.model.environment import Environment
from engine.model.policy import NodeClass, NodePool, Policy
from engine.model.quantity import Resources, format_amount
from engine.model.rule import AnyRule, Expression, NamedExpression, Window
from engine.model.snapshot import Snapshot
from engine.policy.rules.tokens import tokens_of
from engine.reconcile.calendar import calendar_of
from engine.reconcile.diffing_moments import Loaded
from engine.report.calendar_report import CalendarScreen
from engine.report.diff_report import (
    PARAMETER,
    SETTING,
    WINDOW,
    Both,
    CalendarChange,
    Change,
    DefinitionChange,
    FindingChange,
    LimitChange,
    PartChange,
)

_Defined = AnyRule | NodePool | NodeClass | Window
_NOT_MEANING = ("name", "position", "field_positions")
# Of other settings the values are long, or an address; that they differ says enough.
_TOLD_SETTINGS = ("policies", "caps", "pricing", "paused", "cel_engine", "region", "default_node_class")
_IN_RULES = ("params", "enforcement", "rule_positions", "name", "limits")
_WRITTEN_AS = {"is_portable": "portable", "is_time_sensitive": "timeSensitive", "blocks_outside": "outside"}


def definition_changes(base: Loaded, head: Loaded) -> tuple[DefinitionChange, ...]:
    """Of rules as they are in force in the environment, parameters and enforcement included; in order of kinds."""
    return (
        *_rule_changes(base, head),
        *_changes(_named("NodePool", base.policy.node_pools), _named("NodePool", head.policy.node_pools)),
        *_changes(_named("EC2NodeClass", base.policy.node_classes), _named("EC2NodeClass", head.policy.node_classes)),
        *_changes(_named(WINDOW, base.policy.windows), _named(WINDOW, head.policy.windows)),
        *_settings(base.environment, head.environment),
    )


def limit_changes(base: Loaded, head: Loaded) -> tuple[LimitChange, ...]:
    """Of pools that both sides have."""
    old = {pool.name: base.environment.pool_limits(pool.name, pool.limits) for pool in base.policy.node_pools}
    new = {pool.name: head.environment.pool_limits(pool.name, pool.limits) for pool in head.policy.node_pools}
    found = []
    for pool in sorted(old.keys() & new.keys()):
        for resource in sorted({*old[pool], *new[pool]}):
            limit = Both(old[pool].get(resource), new[pool].get(resource))
            if limit.differs:
                found.append(LimitChange(pool, resource, limit))
    return tuple(found)


def calendar_changes(base: Loaded, head: Loaded, snapshot: Snapshot) -> tuple[CalendarChange, ...]:
    """Over the week from the snapshot on, of pools that both sides have, as large as its document has them."""
    document, at = snapshot.document, snapshot.taken_at
    old, new = (_allowed(calendar_of(side.policy, side.environment, document, at=at)) for side in (base, head))
    intervals: dict[tuple[str, datetime, datetime, Both[str]], list[str]] = {}
    for pool, reason in sorted(old.keys() & new.keys()):
        for begins, ends, allowed in _different(old[pool, reason], new[pool, reason]):
            intervals.setdefault((pool, begins, ends, allowed), []).append(reason)
    return tuple(
        CalendarChange(pool, ", ".join(reasons), begins, ends, allowed)
        for (pool, begins, ends, allowed), reasons in intervals.items()
    )


def finding_changes(base: Iterable[Diagnostic], head: Iterable[Diagnostic]) -> tuple[FindingChange, ...]:
    """Findings that are new or gone. One that only moved to another line is neither."""
    old, new = ({_without_line(each): each for each in side} for side in (base, head))
    found = [FindingChange(new[each], is_new=True) for each in new.keys() - old.keys()]
    found += [FindingChange(old[each], is_new=False) for each in old.keys() - new.keys()]
    return tuple(sorted(found, key=lambda each: (not each.is_new, each.finding.sort_key)))


def _without_line(finding: Diagnostic) -> tuple[str, str, str]:
    return finding.rule, finding.position.file, finding.message


def _rules(policy: Policy) -> Mapping[tuple[str, str], _Defined]:
    return {(rule.kind.value, rule.name): rule for rule in policy.rules}


def _named(kind: str, defined: Iterable[NodePool | NodeClass | Window]) -> Mapping[tuple[str, str], _Defined]:
    return {(kind, each.name): each for each in defined}


def _changes(
    old: Mapping[tuple[str, str], _Defined], new: Mapping[tuple[str, str], _Defined]
) -> Iterable[DefinitionChange]:
    for kind, name in sorted(old.keys() | new.keys()):
        before, after = old.get((kind, name)), new.get((kind, name))
        if after is None or before is None:
            change = Change.ADDED if before is None else Change.REMOVED
            yield DefinitionChange(kind, name, change, _place(after or before))
        elif parts := tuple(_parts(before, after)):
            yield DefinitionChange(kind, name, Change.CHANGED, _place(after), parts)


def _rule_changes(base: Loaded, head: Loaded) -> Iterable[DefinitionChange]:
    """Parameters and enforcement that a stack file gives are told with their place in it."""
    said = Both(base.environment.rule_positions, head.environment.rule_positions)
    for change in _changes(_rules(base.policy), _rules(head.policy)):
        parts = tuple(evolve(part, place=_stack_place(change.name, part.name, said)) for part in change.parts)
        is_of_stack = bool(parts) and all(part.place for part in parts)
        yield evolve(change, parts=parts, place=parts[0].place if is_of_stack else change.place)


def _stack_place(rule: str, part: str, said: Both[Mapping[str, Position]]) -> str:
    """Where the stack file sets it, or did; empty where the value is the rule file's on both sides."""
    parameter = part.removeprefix(PARAMETER)
    key = f"params[{rule}][{parameter}]" if parameter != part else f"{part}[{rule}]"
    if key in said.head:
        return f"{said.head[key].file}:{said.head[key].line}"
    return f"{said.base[key].file}:{said.base[key].line} of BASE" if key in said.base else ""


def _place(defined: _Defined | None) -> str:
    position: Position | None = defined.position if defined is not None else None
    return f"{position.file}:{position.line}" if position is not None else ""


def _parts(before: _Defined, after: _Defined) -> Iterable[PartChange]:
    for each in fields(type(after)):
        if each.name in _NOT_MEANING:
            continue
        old, new = getattr(before, each.name, None), getattr(after, each.name, None)
        if each.name == "params":
            yield from _parameters(old or {}, new or {})
        elif _meaning(old) != _meaning(new):
            yield PartChange(_written_as(each.name), Both(_text(old), _text(new)))


def _parameters(old: Mapping[str, object], new: Mapping[str, object]) -> Iterable[PartChange]:
    for name in sorted(old.keys() | new.keys()):
        values = Both(_text(old.get(name)), _text(new.get(name)))
        if values.differs:
            yield PartChange(f"{PARAMETER}{name}", values)


def _meaning(value: object) -> object:
    """Of an expression its tokens: white space and comments are none."""
    match value:
        case Expression(text=text):
            return tuple(token.text for token in tokens_of(text))
        case NamedExpression(name=name, expression=expression):
            return name, _meaning(expression)
        case tuple():
            return tuple(map(_meaning, value))
        case _:
            return value


def _settings(before: Environment, after: Environment) -> Iterable[DefinitionChange]:
    for each in fields(Environment):
        old, new = getattr(before, each.name), getattr(after, each.name)
        if each.name not in _IN_RULES and old != new:
            told = (PartChange(_written_as(each.name), Both(_text(old), _text(new))),)
            parts = told if each.name in _TOLD_SETTINGS else ()
            name = f"nodewright:{_written_as(each.name)}"
            yield DefinitionChange(SETTING, name, Change.CHANGED, f"stacks/Pulumi.{after.name}.yaml", parts)


def _written_as(name: str) -> str:
    """A field as files spell it."""
    if name in _WRITTEN_AS:
        return _WRITTEN_AS[name]
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _text(value: object) -> str | None:
    """A part of a definition in a line or a few; None where there is none."""
    match value:
        case None | "" | ():
            return None
        case Expression(text=text):
            return text.strip()
        case NamedExpression(name=name, expression=expression):
            return f"{name}: {expression.text.strip()}"
        case Enum():
            return str(value.value)
        case bool():
            return str(value).lower()
        case timedelta():
            return format_duration(value)
        case Resources():
            return ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in value.items()) or None
        case Mapping():
            return ", ".join(f"{key}: {_text(each)}" for key, each in sorted(value.items())) or None
        case tuple():
            return ", ".join(str(_text(each)) for each in value)
        case _:
            return _attributes(value) if type(value).__str__ is object.__str__ else str(value)


def _attributes(value: object) -> str | None:
    """Of a value that has no words of its own, its parts; ``consolidateAfter=5m nodes=2``."""
    kind = type(value)
    if not has(kind):
        return str(value)
    shown = ((each.name, _text(getattr(value, each.name))) for each in fields(kind))
    return " ".join(f"{_written_as(name)}={text}" for name, text in shown if text is not None) or None


_Spell = tuple[datetime, datetime, str]


def _allowed(screen: CalendarScreen) -> Mapping[tuple[str, str], Sequence[_Spell]]:
    """What may go of each pool for each reason, spell by spell."""
    return {
        (pool.node_pool, reason.value): [
            (spell.begins, spell.ends, _allowed_words(spell.allowed, [each.allowed for each in spell.per_opening]))
            for spell in row.spells
        ]
        for pool in screen.pools
        for row in pool.rows
        for reason in row.reasons
    }


def _allowed_words(allowed: int | None, per_opening: Sequence[int]) -> str:
    at_once = "no limit" if allowed is None else f"{allowed} at once"
    return f"{at_once}, {min(per_opening)} in one opening" if per_opening else at_once


def _different(old: Sequence[_Spell], new: Sequence[_Spell]) -> Iterable[tuple[datetime, datetime, Both[str]]]:
    """The intervals in which the two differ; neighbours that differ alike are one."""
    moments = sorted({moment for begins, ends, _ in (*old, *new) for moment in (begins, ends)})
    pending: tuple[datetime, datetime, Both[str]] | None = None
    for begins, ends in pairwise(moments):
        allowed = Both(_at(old, begins), _at(new, begins))
        if pending is not None and (pending[1] != begins or pending[2] != allowed):
            yield pending
            pending = None
        if allowed.differs:
            pending = (pending[0] if pending is not None else begins, ends, allowed)
    if pending is not None:
        yield pending


def _at(spells: Sequence[_Spell], moment: datetime) -> str:
    return next((allowed for begins, ends, allowed in spells if begins <= moment < ends), "")
