"""The numbers of simulated runs as rows of text, one cell for each run: what all reports of them show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta

from attrs import frozen

from engine.model.duration import format_duration
from engine.model.quantity import format_amount
from engine.model.rule import LimitedResource
from engine.report.words import counted
from engine.simulate.record import LimitSeen, Run

_SHARES = (0.5, 0.95)


@frozen
class Row:
    """``cells`` are one for each run, in their order."""

    name: str
    cells: tuple[str, ...]


@frozen
class Section:
    title: str
    rows: tuple[Row, ...]


def sections(runs: Sequence[Run]) -> tuple[Section, ...]:
    """Everything that is told of runs beside each other; a section without rows is left out."""
    made = (
        Section("Cost", tuple(_cost(runs))),
        Section("Waiting", tuple(_waiting(runs))),
        Section("Churn", tuple(_churn(runs))),
        Section("Disruption budgets, at their fullest", tuple(_budgets(runs))),
        Section("Limits, at their fullest", tuple(_limits(runs))),
    )
    return tuple(each for each in made if each.rows)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share of them does not pass; ``values`` in ascending order, and at least one."""
    return values[min(len(values) - 1, max(0, -(-int(share * 1000) * len(values) // 1000) - 1))]


def usd(amount: float) -> str:
    """Dollars in a table."""
    return f"${amount:,.2f}"


def saving(run: Run, against: Run) -> str:
    """How much less a run costs than another, in percent of that."""
    if not against.usd:
        return "-"
    return f"{100 * (run.usd - against.usd) / against.usd:+.1f} %"


def title_of(runs: Sequence[Run]) -> str:
    """What was simulated, in one line."""
    first = runs[0]
    return f"{format_duration(first.length)} from {first.began:%Y-%m-%d %H:%M} UTC"


def _cost(runs: Sequence[Run]) -> Iterator[Row]:
    yield _row("in all", runs, lambda run: usd(run.usd))
    if len(runs) > 1:
        yield _row(f"against {runs[0].name}", runs, lambda run: "" if run is runs[0] else saving(run, runs[0]))
    yield _row("an hour, on average", runs, lambda run: usd(run.usd / (run.length.total_seconds() / 3600)))
    yield _row("an hour, at most", runs, lambda run: usd(max(each.usd_per_hour.micros for each in run.samples) / 1e6))
    yield _row("an hour, at the end", runs, lambda run: usd(run.samples[-1].usd_per_hour.micros / 1e6))
    if any(run.gpu_hours for run in runs):
        yield _row("GPU hours", runs, lambda run: f"{run.gpu_hours:,.0f}")
        yield _row("of them in use", runs, _in_use)
    yield _row("nodes, at most", runs, lambda run: f"{max(each.nodes for each in run.samples):,}")


def _in_use(run: Run) -> str:
    return f"{100 * run.gpu_hours_used / run.gpu_hours:.0f} %" if run.gpu_hours else "-"


def _waiting(runs: Sequence[Run]) -> Iterator[Row]:
    yield _row("pods that got a node", runs, lambda run: f"{len(run.waits.first):,}")
    for share in _SHARES:
        yield Row(f"  {share:.0%} of them within", tuple(_within(run.waits.first, share) for run in runs))
    yield _row("  the last within", runs, lambda run: _within(run.waits.first, 1.0))
    if any(run.waits.again for run in runs):
        yield _row("pods that came again", runs, lambda run: f"{len(run.waits.again):,}")
        yield _row("  95% of them within", runs, lambda run: _within(run.waits.again, 0.95))
    yield _row("still waiting at the end", runs, lambda run: f"{len(run.waits.still):,}")
    yield from _refusals(runs)


def _refusals(runs: Sequence[Run]) -> Iterator[Row]:
    """By reason; under one that rules of policy are, by rule."""
    for code in sorted({code for run in runs for code in run.refusals}):
        yield from _by_name("  refused for: ", runs, [{code: run.refusals.get(code, 0)} for run in runs])
        of_rules = [{each.rule: each.pods for each in run.refusing_rules if each.code == code} for run in runs]
        yield from _by_name("    by rule ", runs, of_rules)


def _within(seconds: Sequence[float], share: float) -> str:
    return format_duration(timedelta(seconds=percentile(seconds, share))) if seconds else "-"


def _churn(runs: Sequence[Run]) -> Iterator[Row]:
    yield _row("machines launched", runs, lambda run: f"{sum(run.launches.values()):,}")
    yield from _by_name("launches refused: ", runs, [run.refused for run in runs])
    yield from _by_name("machines removed: ", runs, [run.removals for run in runs])
    yield from _by_name("pods evicted: ", runs, [run.evictions for run in runs])
    yield _row("pods lost with a machine", runs, lambda run: f"{run.lost_pods:,}")
    if any(run.refused_evictions for run in runs):
        yield _row("evictions refused", runs, lambda run: f"{run.refused_evictions:,}")
    if any(run.jobs_done for run in runs):
        yield _row("jobs done", runs, lambda run: f"{run.jobs_done:,}")
        yield _row("work of jobs lost", runs, lambda run: format_duration(run.work_lost))


def _by_name(before: str, runs: Sequence[Run], found: Sequence[Mapping[str, int]]) -> Iterator[Row]:
    for name in sorted({name for each in found for name in each}):
        yield Row(f"{before}{name}", tuple(f"{each.get(name, 0):,}" for each in found))


def _budgets(runs: Sequence[Run]) -> Iterator[Row]:
    found = [{(each.node_pool, each.budget): each for each in run.budgets} for run in runs]
    for pool, budget in sorted({key for each in found for key in each}):
        cells = []
        for each in found:
            seen = each.get((pool, budget))
            cells.append(f"{seen.used} of {seen.allowed}, {counted(seen.removals, 'removal')}" if seen else "unused")
        yield Row(f"{pool}: {budget}", tuple(cells))


def _limits(runs: Sequence[Run]) -> Iterator[Row]:
    found = [{_limit_name(each): each for each in run.limits} for run in runs]
    for name in sorted({name for each in found for name, seen in each.items() if seen.used}):
        cells = [each.get(name) for each in found]
        yield Row(name, tuple("-" if seen is None else _limit_use(seen) for seen in cells))


def _limit_name(seen: LimitSeen) -> str:
    of = seen.node_pool or seen.group
    return f"{of}: {seen.resource}" + (f" by {seen.rule}" if seen.rule else "")


def _limit_use(seen: LimitSeen) -> str:
    if seen.resource == LimitedResource.USD_PER_HOUR.value:
        return f"{usd(seen.used / 1e6)} of {usd(seen.limit / 1e6)}/h"
    return f"{format_amount(seen.resource, seen.used)} of {format_amount(seen.resource, seen.limit)}"


def _row(name: str, runs: Sequence[Run], cell: Callable[[Run], str]) -> Row:
    return Row(name, tuple(cell(run) for run in runs))
