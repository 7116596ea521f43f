"""A change of policy on a screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from engine.model.duration import format_duration
from engine.report.definition_words import part_values
from engine.report.diff_report import EnvironmentDifference, MomentDifference, PolicyDifference
from engine.report.diff_report_words import (
    calendar_rows,
    ceiling_change_words,
    class_words,
    environment_sentence,
    errors_words,
    headroom_change_words,
    limit_words,
    moment_sentence,
    place_words,
    pool_cells,
    types_change_words,
    verdict_change_words,
    verdict_sentence,
    workloads_words,
)
from engine.report.tables import Screen, examples, heading, indented, table
from engine.report.words import counted

_ROWS = 20
_INTERVALS_SHOWN = 3


def render_difference(difference: PolicyDifference) -> RenderableType:
    """Everything that differs, what it does to the cluster and the bill first."""
    sides = difference.sides
    lines: list[RenderableType] = [
        Text.assemble((sides.base, "bold"), " → ", (sides.head, "bold")),
        Text(verdict_sentence(difference), style="green" if not difference.has_effect else "bold yellow"),
    ]
    lines += [Text(f"over a threshold: {sentence}", style="bold red") for sentence in difference.over]
    for environment in difference.environments:
        lines += [Text(""), *_environment(environment)]
    for is_new, title in ((True, "New findings of check"), (False, "Findings of check that are gone")):
        found = [str(each.finding) for each in difference.findings if each.is_new is is_new]
        lines += _listed(title, found)
    return Screen(*lines)


def _environment(environment: EnvironmentDifference) -> Iterator[RenderableType]:
    yield heading(environment.name)
    sentence = environment_sentence(environment)
    if sentence:
        yield indented(Text(sentence))
    for side, found in (("BASE", environment.invalid.base), ("HEAD", environment.invalid.head)):
        yield from _listed(f"{side} does not load", [str(each) for each in found])
    for moment in environment.moments:
        yield from _moment(moment)
    yield from _listed("Limits", [limit_words(each) for each in environment.limits])
    yield from _calendar(environment)
    yield from _definitions(environment)


def _moment(moment: MomentDifference) -> Iterator[RenderableType]:
    yield indented(Text(moment_sentence(moment), style="bold" if moment.has_effect else ""))
    yield indented(Text(f"at {place_words(moment)}", style="dim"))
    if moment.note:
        yield indented(Text(moment.note, style="dim"))
    pools = [pool for pool in moment.pools if pool.differs]
    if pools:
        rows = table("pool after the plan", ">nodes", ">GPUs", ">$/h")
        for pool in pools:
            rows.add(*pool_cells(pool))
        yield indented(rows)
    for is_new, title in ((True, "Blocked by HEAD alone"), (False, "No longer blocked")):
        groups = [each for each in moment.blocked if each.is_new is is_new]
        if groups:
            yield indented(heading(title, counted(sum(each.pods for each in groups), "pod")))
            rows = table(">pods", "~of", "~because")
            for each in groups[:_ROWS]:
                rows.add(f"{each.pods:,}", workloads_words(each.workloads), "\n".join(each.reasons))
            yield indented(rows, 4)
    yield from _classes(moment)
    yield from _machines(moment)
    says = [
        *(f"ceiling of {ceiling_change_words(each)}" for each in moment.ceilings),
        *map(verdict_change_words, moment.verdicts),
        *map(errors_words, moment.errors),
    ]
    yield from _listed("Headroom", map(headroom_change_words, moment.headroom))
    yield from _listed("Rules say otherwise", says)


def _classes(moment: MomentDifference) -> Iterator[RenderableType]:
    if not moment.classes:
        return
    yield indented(heading("Instance types", counted(sum(each.pods for each in moment.classes), "pod")))
    rows = table(">pods", "~of", "types", "~what changes")
    for each in moment.classes[:_ROWS]:
        told = [f"loses {types_change_words(change)}" for change in each.lost]
        told += [f"gains {types_change_words(change)}" for change in each.gained]
        rows.add(f"{each.pods:,}", workloads_words(each.workloads), class_words(each), "\n".join(told))
    yield indented(rows, 4)
    yield from _more(len(moment.classes))


def _machines(moment: MomentDifference) -> Iterator[RenderableType]:
    if moment.removed:
        yield indented(heading("Removals", counted(len(moment.removed), "machine")))
        rows = table("machine", "by HEAD", "type", ">$/h", "~reason")
        for gone in moment.removed[:_ROWS]:
            act = "leaves" if gone.is_new else "stays"
            rows.add(gone.claim, act, gone.instance_type, str(gone.usd_per_hour), f"{gone.reason}: {gone.rule}")
        yield indented(rows, 4)
        yield from _more(len(moment.removed))
    if moment.kept:
        yield indented(heading("Kept for another reason"))
        rows = table("pool", ">nodes", "~machines", "~because it was", "~and is")
        for kept in moment.kept[:_ROWS]:
            names = examples(kept.claims, shown=2)
            rows.add(kept.node_pool, f"{len(kept.claims):,}", names, kept.because.base, kept.because.head)
        yield indented(rows, 4)


def _calendar(environment: EnvironmentDifference) -> Iterator[RenderableType]:
    if not environment.calendar:
        return
    yield indented(heading("Disruption budgets, a week (UTC)"))
    rows = table("pool", "by BASE", "by HEAD", ">of the week", "~when", "~reasons")
    for row in calendar_rows(environment.calendar)[:_ROWS]:
        lasts, when = format_duration(row.lasts), examples(row.when, shown=_INTERVALS_SHOWN)
        rows.add(row.node_pool, row.allowed.base, row.allowed.head, lasts, when, row.reasons)
    yield indented(rows, 4)


def _definitions(environment: EnvironmentDifference) -> Iterator[RenderableType]:
    if not environment.definitions:
        return
    yield indented(heading("In the files"))
    for each in environment.definitions[:_ROWS]:
        place = f" ({each.place})" if each.place else ""
        yield indented(Text(f"{each.change.value} {each.kind} {each.name}{place}"), 4)
        for part in each.parts:
            if part.text.base is not None or part.text.head is not None:
                where = f" ({part.place})" if part.place not in ("", each.place) else ""
                yield indented(Text(f"{part.name}: {part_values(part)}{where}"), 6)
    yield from _more(len(environment.definitions))


def _listed(title: str, lines: Iterable[str]) -> Iterator[RenderableType]:
    every = list(lines)
    if every:
        yield indented(heading(title))
        yield from (indented(Text(line), 4) for line in every[:_ROWS])
        yield from _more(len(every))


def _more(count: int) -> Iterator[RenderableType]:
    if count > _ROWS:
        yield indented(Text(f"and {count - _ROWS:,} more (-o json has all)", style="dim"), 4)
