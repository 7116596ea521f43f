"""What a plan does not do, and why: pods that get nothing, base capacity that is short, and how full limits are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial

from rich.console import RenderableType
from rich.text import Text

from engine.model.plan import LimitUse, Plan, Unplaced
from engine.model.quantity import NODES
from engine.model.rule import LimitedResource
from engine.report.ceiling_words import CEILING_UNITS, ceiling_words
from engine.report.tables import BAR, examples, heading, indented, table
from engine.report.words import counted, refusal_words, rounded_words

_GROUPS_SHOWN = 8
_REASONS_SHOWN = 2
_PODS_SHOWN = 2

# A pool, or several that say the same, and the words of their refusal.
Reasons = tuple[tuple[tuple[str, ...], str], ...]


def blocked_section(plan: Plan, now: datetime, *, details: bool) -> Iterator[RenderableType]:
    """Pods that get nothing, those of identical reasons together; the nearest miss comes first."""
    if not plan.unplaced:
        return
    yield heading(f"Blocked {counted(len(plan.unplaced), 'pod')}")
    groups = blocked_groups(plan.unplaced, now)
    shown = groups if details else groups[:_GROUPS_SHOWN]
    for reasons, pods in shown:
        names = examples([str(unplaced.pod) for unplaced in pods], every=details, shown=_PODS_SHOWN)
        yield indented(Text.assemble((counted(len(pods), "pod"), "yellow"), f"  {names}"))
        rows = table("", "~", has_header=False)
        for pools, words in reasons if details else reasons[:_REASONS_SHOWN]:
            rows.add(examples(pools, every=details), words)
        yield indented(rows, 4)
        hidden = sum(len(pools) for pools, _ in reasons[_REASONS_SHOWN:])
        if hidden and not details:
            yield indented(Text(f"and {counted(hidden, 'pool')} further from it (--details)", style="dim"), 4)
    rest = groups[len(shown) :]
    if rest:
        pods_left = sum(len(pods) for _, pods in rest)
        yield indented(
            Text(f"and {counted(pods_left, 'pod')} for {len(rest)} other sets of reasons (--details)", style="dim")
        )


def shortfalls_section(plan: Plan, now: datetime) -> Iterator[RenderableType]:
    """Pools that keep fewer nodes than their base capacity."""
    if not plan.base_shortfalls:
        return
    yield heading("Base capacity short")
    rows = table("node set", ">nodes", "~because")
    for short in plan.base_shortfalls:
        rows.add(short.node_pool, f"{short.have} of {short.wanted}", refusal_words(short.refusal, now))
    yield indented(rows)


def headroom_section(plan: Plan, now: datetime) -> Iterator[RenderableType]:
    """What pools keep free for pods to come, and where it is less than they should."""
    if not plan.headroom:
        return
    yield heading("Headroom")
    rows = table("node set", "zone", ">free", "of", "~because")
    for use in plan.headroom:
        because = "; ".join(refusal_words(refusal, now) for refusal in use.refusals)
        rows.add(use.node_pool, use.zone or "any", f"{use.spare} of {use.wanted}", use.resource, because)
    yield indented(rows)


def bindings_section(plan: Plan, *, details: bool) -> Iterator[RenderableType]:
    """Pods that kube-scheduler bound to another node than the plan had for them: nothing is bought twice for that."""
    if not plan.binding_differences:
        return
    yield heading(f"Bound elsewhere {counted(len(plan.binding_differences), 'pod')}")
    rows = table("pod", "planned for", "bound to")
    shown = plan.binding_differences if details else plan.binding_differences[:_GROUPS_SHOWN]
    for each in shown:
        rows.add(str(each.pod), each.planned, each.node)
    yield indented(rows)
    if rest := len(plan.binding_differences) - len(shown):
        yield indented(Text(f"and {counted(rest, 'pod')} more (--details)", style="dim"))


def limits_section(plan: Plan) -> Iterator[RenderableType]:
    """How full the limits are once this plan is done."""
    if not plan.limits:
        return
    yield heading("Limits")
    rows = table("node set", "resource", ">used", ">planned", ">limit", BAR, ">full", gives_way=(BAR,))
    for use in plan.limits:
        words = _words_of(use)
        rows.add(
            use.node_pool or use.group,
            _limited(use),
            words(use.used),
            f"+{words(use.planned)}" if use.planned else "0",
            words(use.limit),
            _bar(use),
            f"{round(100 * (use.used + use.planned) / max(use.limit, 1))}%",
        )
    yield indented(rows)


def _limited(use: LimitUse) -> str:
    """What is limited: a pool's own resource, or a rule's, with the rule."""
    if use.rule:
        return f"{CEILING_UNITS[LimitedResource(use.resource)]}, {use.rule}"
    return "nodes" if use.resource == NODES else use.resource


def _words_of(use: LimitUse) -> Callable[[int], str]:
    if use.rule:
        return partial(ceiling_words, LimitedResource(use.resource))
    return partial(rounded_words, use.resource)


def blocked_groups(unplaced: Iterable[Unplaced], now: datetime) -> list[tuple[Reasons, list[Unplaced]]]:
    """Pods by identical reasons, the largest group first."""
    groups: dict[Reasons, list[Unplaced]] = defaultdict(list)
    for each in unplaced:
        groups[_reasons(each, now)].append(each)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[1][0].pod))


def _reasons(unplaced: Unplaced, now: datetime) -> Reasons:
    by_words: dict[str, list[str]] = {}
    for each in unplaced.refusals:
        by_words.setdefault(refusal_words(each.refusal, now), []).append(each.node_pool or "any pool")
    return tuple((tuple(pools), words) for words, pools in by_words.items())


def _bar(use: LimitUse) -> Text:
    """Ten cells: what is used, what this plan adds, what is left."""
    cells = 10
    whole = max(use.limit, 1)
    used = min(cells, round(cells * use.used / whole))
    planned = min(cells - used, round(cells * (use.used + use.planned) / whole) - used)
    left = cells - used - planned
    return Text.assemble(("█" * used, "cyan"), ("▒" * planned, "green"), ("░" * left, "dim"))
