"""Disruption budgets explained: each with its state and arithmetic, the least of them, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from engine.disruption.counted import Counted, Counts
from engine.disruption.explained import BudgetExplanation
from engine.disruption.said import Bound, BudgetSaid, BudgetState, bounds
from engine.model.canonical import to_plain
from engine.model.duration import format_duration
from engine.model.rule import Enforcement
from engine.report.tables import Screen, heading, indented, table
from engine.report.words import counted

_COUNTED = 8


def render_budgets(explanations: Iterable[BudgetExplanation]) -> RenderableType:
    """One section for each pool and the reasons that are answered alike."""
    lines: list[RenderableType] = []
    for alike in _alike(explanations):
        lines += [Text(""), *_section(alike)] if lines else list(_section(alike))
    return Screen(*lines)


def budgets_plain(explanations: Iterable[BudgetExplanation]) -> list[dict[str, Any]]:
    """The same for programs; ``left`` and ``allowed`` null are no limit."""
    return [
        {
            "node_pool": each.node_pool,
            "reason": each.reason.value,
            "at": to_plain(each.at),
            "base": each.base,
            "out": each.out,
            "going": each.going,
            "counted": [{**to_plain(one), "words": counted_words(one)} for one in each.counted],
            "left": each.left,
            "least": to_plain(each.least) if each.least is not None else None,
            "budgets": [
                {**to_plain(said), "begun": sorted(said.begun), "words": said_words(said, each.at)}
                for said in each.said
            ],
        }
        for each in explanations
    ]


def said_words(said: BudgetSaid, at: datetime) -> str:
    """``active: 10% of 19 = 1.9, rounded up to 2``; ``shut, says nothing; opens Mon 30 Nov 09:00 UTC, in 1d23h``."""
    if said.error:
        return f"lets nothing go, it cannot be evaluated: {said.error}"
    match said.state:
        case BudgetState.UNASKED:
            return "says nothing: a condition of it is false"
        case BudgetState.SHUT:
            return f"shut, says nothing; {_opens(said, at)}"
        case BudgetState.BLOCKING:
            windows = f"window{'s' * (len(said.windows) > 1)} {', '.join(said.windows)}"
            return f"outside its {windows}, lets nothing go; {_opens(said, at)}"
        case BudgetState.ACTIVE:
            return f"active{_since(said)}{_numbers(said)}"


def _since(said: BudgetSaid) -> str:
    return f" since {said.opened_at:%a %d %b %H:%M} UTC" if said.opened_at is not None else ""


def _numbers(said: BudgetSaid) -> str:
    """Where the numbers come from; a number that is written as it is needs no word."""
    parts = [said.arithmetic] if said.allowed is not None and said.arithmetic != str(said.allowed) else []
    if said.per_opening is not None:
        parts.append(f"{len(said.begun)} of {said.per_opening} have gone in this opening")
    if said.allowed is None and said.per_opening is None:
        parts.append("says who may go and when, not how many")
    return f": {'; '.join(parts)}" if parts else ""


def _opens(said: BudgetSaid, at: datetime) -> str:
    if said.opens_at is None:
        return "never opens"
    opens = said.opens_at.astimezone(UTC)
    return f"opens {opens:%a %d %b %H:%M} UTC, in {format_duration(opens - at)}"


def _section(alike: Sequence[BudgetExplanation]) -> Iterator[RenderableType]:
    one = alike[0]
    reasons = ", ".join(each.reason.value for each in alike)
    at = f"{one.at.astimezone(UTC):%a %d %b %Y %H:%M} UTC"
    going = f", {one.going} going" if one.going else ""
    yield heading(one.node_pool, f"{reasons} at {at}: {counted(one.base, 'node')}, {one.out} out{going}")
    if one.said:
        rows = table("budget", ">allowed", "~state")
        for said in one.said:
            tells = "" if said.enforcement is Enforcement.DENY else f" ({said.enforcement.value} only)"
            rows.add(said.name + tells, _allowed(said), said_words(said, one.at))
        yield indented(rows)
    yield from (indented(Text(f"counts: {counted_words(each)}", style="yellow")) for each in one.counted[:_COUNTED])
    if len(one.counted) > _COUNTED:
        yield indented(Text(f"and {len(one.counted) - _COUNTED} more count", style="yellow"))
    yield indented(_ending(one))


def counted_words(each: Counted) -> str:
    """``node-1 waits for gpu-7f to take its place (Drifted)``."""
    name = each.node or each.claim
    why = f" ({each.reason.value})" if each.reason is not None else ""
    match each.counts:
        case Counts.LOST:
            return f"{name} is lost{why}"
        case Counts.LEFT:
            return f"{name} was let go, and may still run{why}"
        case Counts.MARKED:
            return f"{name} is marked, and drains{why}"
        case Counts.DOOMED:
            return f"{name} has to go{why}"
        case Counts.NOT_READY:
            return f"{name} is not ready"
        case Counts.AWAITS:
            return f"{name} waits for {' and '.join(each.awaits) or 'another'} to take its place{why}"
        case Counts.MARKED_NEXT:
            return f"{name} is marked by the next pass{why}"


def _ending(one: BudgetExplanation) -> Text:
    if one.least is None:
        return Text("NO LIMIT: no budget is active for this, any number of nodes may go at once", style="bold red")
    least: Bound = one.least
    used = f"{least.used} of {least.allowed} used" if least.allowed else "it lets none go"
    left = f"{least.left} more may go now" if least.left else "no more may go now"
    return Text(f"The least is {least.budget}: {used}; {left}.", style="bold")


def _allowed(said: BudgetSaid) -> str:
    numbers = [str(bound.allowed) for bound in bounds(said, 0)]
    return "/".join(numbers) or "-"


def _alike(explanations: Iterable[BudgetExplanation]) -> list[list[BudgetExplanation]]:
    """Explanations that differ in their reason alone, together."""
    found: list[list[BudgetExplanation]] = []
    for each in explanations:
        for group in found:
            if (group[0].node_pool, group[0].said, group[0].least) == (each.node_pool, each.said, each.least):
                group.append(each)
                break
        else:
            found.append([each])
    return found
