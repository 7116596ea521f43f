"""A change of policy as Markdown for a pull request: what it does first, a table, and the details folded away.

Names and messages come from outside. Nothing of them is taken for Markdown, HTML, a link or a mention.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from engine.model.duration import format_duration
from engine.report.diff_report import (
    Both,
    ClassDifference,
    DefinitionChange,
    EnvironmentDifference,
    MomentDifference,
    PolicyDifference,
)
from engine.report.diff_report_words import (
    calendar_rows,
    ceiling_change_words,
    class_words,
    cost_words,
    count_words,
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
from engine.report.tables import examples
from engine.report.words import counted

# What GitHub takes for one comment.
MOST_CHARACTERS = 65_536
_NOTE_CHARACTERS = 300
_ROWS, _CELL_CHARACTERS, _INTERVALS_SHOWN = 40, 600, 4
_SPECIAL = frozenset("\\`*_{}[]<>|@~&")


def diff_markdown(difference: PolicyDifference, most: int = MOST_CHARACTERS) -> str:
    """The comment, in at most ``most`` characters: sections that do not fit are left out, and that is said."""
    head = f"## Policy: {_safe(difference.sides.base)} → {_safe(difference.sides.head)}"
    blocks = [head, _safe(verdict_sentence(difference)), *_over(difference), _overview(difference)]
    for environment in difference.environments:
        blocks += _environment(environment)
    blocks += _findings(difference)
    return _fitting([block for block in blocks if block], most)


def _fitting(blocks: Sequence[str], most: int) -> str:
    whole = "\n\n".join(blocks) + "\n"
    if len(whole) <= most:
        return whole
    room, kept = most - _NOTE_CHARACTERS, []
    for block in blocks:
        # One that is too long gives way to shorter ones behind it.
        if len(block) + 2 <= room:
            room -= len(block) + 2
            kept.append(block)
    left = counted(len(blocks) - len(kept), "section")
    note = f"*{left} did not fit into a comment of {most:,} characters; `nodewright diff` on a terminal shows all.*"
    return "\n\n".join([*kept, note]) + "\n"


def _over(difference: PolicyDifference) -> Iterator[str]:
    for sentence in difference.over:
        yield f"**Over a threshold:** {_safe(sentence)}."


def _overview(difference: PolicyDifference) -> str:
    rows = [
        (
            _safe(environment.name),
            _safe(f"{moment.snapshot}, {moment.taken_at:%Y-%m-%d %H:%M}"),
            count_words(_sum_of_nodes(moment)),
            count_words(_sum_of_gpus(moment)),
            cost_words(moment.usd_per_hour),
            count_words(moment.launches),
            count_words(moment.removals),
        )
        for environment in difference.environments
        for moment in environment.moments
    ]
    return _table(("environment", "recorded moment", ">nodes", ">GPUs", ">bill", ">launches", ">removals"), rows)


def _sum_of_nodes(moment: MomentDifference) -> Both[int]:
    return Both(sum(each.nodes.base for each in moment.pools), sum(each.nodes.head for each in moment.pools))


def _sum_of_gpus(moment: MomentDifference) -> Both[int]:
    return Both(sum(each.gpus.base for each in moment.pools), sum(each.gpus.head for each in moment.pools))


def _environment(environment: EnvironmentDifference) -> Iterator[str]:
    yield f"### {_safe(environment.name)}"
    yield _safe(environment_sentence(environment))
    for side, found in (("BASE", environment.invalid.base), ("HEAD", environment.invalid.head)):
        if found:
            yield _folded(
                f"{side} does not load: {counted(len(found), 'finding')}", _list(map(str, found)), is_open=True
            )
    for moment in environment.moments:
        yield from _moment(moment)
    yield from _limits_and_calendar(environment)
    yield from _definitions(environment.definitions)


def _moment(moment: MomentDifference) -> Iterator[str]:
    yield f"**{_safe(moment_sentence(moment))}**"
    yield f"At {_safe(place_words(moment))}." + (f" Note: {_safe(moment.note)}." if moment.note else "")
    pools = [pool for pool in moment.pools if pool.differs]
    if pools:
        rows = [tuple(map(_safe, pool_cells(pool))) for pool in pools]
        yield _table(("pool after the plan", ">nodes", ">GPUs", ">$/h"), rows)
        same = len(moment.pools) - len(pools)
        if same:
            yield f"{counted(same, 'other pool')} as before."
    yield from _blocked(moment)
    yield from _classes(moment.classes)
    yield from _machines(moment)
    if moment.headroom:
        yield _folded("Headroom changes", _list(map(headroom_change_words, moment.headroom)), is_open=True)
    yield from _rules(moment)


def _blocked(moment: MomentDifference) -> Iterator[str]:
    for is_new, title in ((True, "would get no node"), (False, "would no longer be blocked")):
        groups = [each for each in moment.blocked if each.is_new is is_new]
        if groups:
            pods = counted(sum(each.pods for each in groups), "pod")
            rows = [
                (str(g.pods), _safe(workloads_words(g.workloads)), "<br>".join(map(_safe, g.reasons))) for g in groups
            ]
            why = "because" if is_new else "was because"
            yield _folded(f"{pods} {title}", _table((">pods", "of", why), rows), is_open=is_new)


def _classes(classes: Sequence[ClassDifference]) -> Iterator[str]:
    if not classes:
        return
    rows = []
    for each in classes:
        changes = [("loses", change) for change in each.lost] + [("gains", change) for change in each.gained]
        told = [f"{verb} {_safe(types_change_words(change))}" for verb, change in changes]
        rows.append((f"{each.pods:,}", _safe(workloads_words(each.workloads)), class_words(each), "<br>".join(told)))
    pods = counted(sum(each.pods for each in classes), "pod")
    table = _table((">pods", "of", "types allowed", "what changes, and what decides"), rows)
    yield _folded(f"Instance types: {pods} may get others", table)


def _machines(moment: MomentDifference) -> Iterator[str]:
    if moment.removed:
        leaving = [
            (
                "leaves" if each.is_new else "stays",
                _safe(each.claim),
                _safe(each.node_pool),
                _safe(each.instance_type),
                str(each.usd_per_hour),
                _safe(each.reason),
                _safe(each.rule),
            )
            for each in moment.removed
        ]
        table = _table(("by HEAD it", "machine", "pool", "type", ">$/h", "reason", "rule"), leaving)
        yield _folded(f"Removals: {counted(len(moment.removed), 'machine')} otherwise", table)
    if moment.kept:
        staying = [
            (
                _safe(each.node_pool),
                f"{len(each.claims):,}: {_safe(examples(each.claims, shown=2))}",
                _safe(each.because.base),
                _safe(each.because.head),
            )
            for each in moment.kept
        ]
        count = counted(sum(len(each.claims) for each in moment.kept), "machine")
        table = _table(("pool", "machines", "stayed because", "stays because"), staying)
        yield _folded(f"Kept for another reason: {count}", table)


def _rules(moment: MomentDifference) -> Iterator[str]:
    lines = [f"ceiling of {ceiling_change_words(each)}" for each in moment.ceilings]
    lines += [*map(verdict_change_words, moment.verdicts), *map(errors_words, moment.errors)]
    if lines:
        yield _folded(f"Rules say otherwise: {len(lines):,}", _list(lines), is_open=True)


def _limits_and_calendar(environment: EnvironmentDifference) -> Iterator[str]:
    if environment.limits:
        yield _folded("Limits changed", _list(map(limit_words, environment.limits)), is_open=True)
    if environment.calendar:
        rows = [
            (
                _safe(row.node_pool),
                _safe(row.reasons),
                _safe(row.allowed.base),
                _safe(row.allowed.head),
                format_duration(row.lasts),
                _safe(examples(row.when, shown=_INTERVALS_SHOWN)),
            )
            for row in calendar_rows(environment.calendar)
        ]
        headings = ("pool", "reasons", "allowed by BASE", "allowed by HEAD", ">of the week", "when (UTC)")
        yield _folded("Disruption budgets: a week's calendar changes", _table(headings, rows))


def _definitions(definitions: Sequence[DefinitionChange]) -> Iterator[str]:
    if not definitions:
        return
    lines = []
    for each in definitions:
        place = f" ({_safe(each.place)})" if each.place else ""
        lines.append(f"- **{each.change.value}** {_safe(each.kind)} {_safe(each.name)}{place}")
        lines += [
            f"  - {_safe(part.name)}: {_code(part.text.base)} → {_code(part.text.head)}"
            + (f" ({_safe(part.place)})" if part.place not in ("", each.place) else "")
            for part in each.parts
            if part.text.base is not None or part.text.head is not None
        ]
    yield _folded(f"In the files: {counted(len(definitions), 'definition')} changed", _cut(lines))


def _findings(difference: PolicyDifference) -> Iterator[str]:
    for is_new, title in ((True, "New findings of check"), (False, "Findings of check that are gone")):
        found = [str(each.finding) for each in difference.findings if each.is_new is is_new]
        if found:
            yield _folded(f"{title}: {len(found):,}", _list(found), is_open=is_new)


def _folded(title: str, content: str, *, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{_safe(title)}</summary>\n\n{content}\n\n</details>"


def _list(lines: Iterable[str]) -> str:
    return _cut([f"- {_safe(line)}" for line in lines])


def _cut(lines: Sequence[str]) -> str:
    rest = len(lines) - _ROWS
    return "\n".join([*lines[:_ROWS], *([f"- and {rest:,} more"] if rest > 0 else [])])


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A heading that begins with ``>`` is of numbers. Cells are safe already."""
    if not rows:
        return ""
    names = [heading.lstrip(">") for heading in headings]
    marks = ["---:" if heading.startswith(">") else "---" for heading in headings]
    lines = [names, marks, *rows[:_ROWS]]
    rest = len(rows) - _ROWS
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return table + (f"\n\nand {counted(rest, 'more row')}" if rest > 0 else "")


def _code(text: str | None) -> str:
    return f"<code>{_safe(text)}</code>" if text is not None else "nothing"


def _safe(text: str) -> str:
    """The text as it is, in one line: what Markdown or GitHub would take for more is written as a character's number.

    A name may hold a number sign or a link, too.
    """
    one_line = " ".join(text.split())
    if len(one_line) > _CELL_CHARACTERS:
        one_line = f"{one_line[:_CELL_CHARACTERS]}…"
    return "".join(_escaped(one_line))


def _escaped(text: str) -> Iterator[str]:
    for at, character in enumerate(text):
        is_number_sign = character == "#" and text[at + 1 : at + 2].isdigit()
        is_link = character == ":" and text.startswith("//", at + 1)
        if character in _SPECIAL or is_number_sign or is_link:
            yield f"&#{ord(character)};"
        elif unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co"):
            yield character
