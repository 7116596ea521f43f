"""How long each machine took, or takes, from its launch to a pod that serves, beside what is usual for its pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.console import RenderableType
from rich.text import Text

from engine.model.duration import format_duration
from engine.model.ledger import Ledger
from engine.report.milestones import Expected, Stage, Step, expectations, steps
from engine.report.standing import NodePhase, Standing
from engine.report.tables import heading, indented, table
from engine.report.words import counted

_HEADINGS = {
    Stage.LAUNCHED: "launched",
    Stage.REGISTERED: "registered",
    Stage.INITIALIZED: "initialized",
    Stage.IMAGE_PULLED: "image",
    Stage.POD_READY: "pod ready",
}
_NOTHING = Text("–", style="dim")


def milestones_section(
    every: Sequence[Standing], ledger: Ledger, now: datetime, *, most: int
) -> Iterator[RenderableType]:
    """Each machine, those in flight first, and the pools' medians; of more than ``most`` the medians alone."""
    expected = expectations(ledger, every)
    in_flight = [one for one in every if one.is_in_flight]
    others = [one for one in every if not one.is_in_flight and one.phase is not NodePhase.LOST]
    told = [*in_flight, *others] if len(every) <= most else []
    pools = sorted({pool for pool, _ in expected})
    if not (told or pools or in_flight):
        return
    yield heading("From launch to service")
    columns = [f">{_HEADINGS[stage]}" for stage in Stage]
    rows = table("node", *columns, gives_way=(_HEADINGS[Stage.LAUNCHED], _HEADINGS[Stage.IMAGE_PULLED]))
    for one in told:
        rows.add(one.claim.name, *(_cell(step) for step in steps(one, expected, now)))
    for pool in pools:
        medians = [expected.get((pool, stage)) for stage in Stage]
        rows.add(
            Text(f"{pool}, median", style="dim"),
            *(Text(format_duration(each), style="dim") if each is not None else _NOTHING for each in medians),
        )
    if told or pools:
        yield indented(rows)
    if in_flight and not told:
        yield indented(_in_flight(in_flight, expected, now))


def _in_flight(every: Sequence[Standing], expected: Expected, now: datetime) -> Text:
    """All in one line, with the one that takes longest."""
    under_way = [step for one in every for step in steps(one, expected, now) if step.elapsed is not None]
    if not under_way:
        return Text(f"{counted(len(every), 'node')} in flight")
    slowest = max(under_way, key=lambda step: step.elapsed or timedelta())
    waited = _cell(slowest)
    return Text(f"{counted(len(every), 'node')} in flight, the slowest not {slowest.stage.value} after ").append(
        waited.plain.removeprefix(">"), waited.style
    )


def _cell(step: Step) -> Text:
    if step.took is not None:
        return Text(format_duration(step.took))
    if step.elapsed is None:
        return _NOTHING
    elapsed = format_duration(step.elapsed)
    if step.expected is None:
        return Text(f">{elapsed}", style="cyan")
    late = step.elapsed > 2 * step.expected
    return Text(f"{elapsed} of ~{format_duration(step.expected)}", style="yellow" if late else "cyan")
