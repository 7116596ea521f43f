"""What a plan does: machines that come, machines that go, and machines that stay, each with its reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from engine.model.duration import format_duration
from engine.model.money import total
from engine.model.plan import Kept, Launch, LaunchReason, Plan, Removal, RemovalPhase
from engine.model.replacement import MovedLately, NewlyUp, NotQuiet
from engine.model.stay import BelowConsolidateAfter, InUse
from engine.report.pending_words import kept_words, pending_counts
from engine.report.relaxed_words import relaxed_lines
from engine.report.removal_words import removal_lines, replacing_lines, targets_of
from engine.report.stay_words import stay_words
from engine.report.tables import Rows, examples, heading, in_table, indented, table, zones_in_short
from engine.report.waste_words import waste_lines
from engine.report.words import counted, next_best_words, signed

_SERVES = {LaunchReason.BASE_CAPACITY: "base", LaunchReason.HEADROOM: "spare", LaunchReason.REPLACEMENT: "replaces"}
_PHASES = {RemovalPhase.MARK: "drain", RemovalPhase.RELEASE: "remove"}

# So many sentences stand for a group of nodes.
_SENTENCES = 3


def launches_section(plan: Plan, region: str, *, details: bool) -> Iterator[RenderableType]:
    """Launches grouped by pool, type, capacity type and price, zones together, with the next best offering."""
    if not plan.launches:
        return
    cost = total(launch.claim.usd_per_hour for launch in plan.launches)
    yield heading(f"Launch {counted(len(plan.launches), 'node')}", signed(cost))
    yield indented(_launch_table(plan.launches, region))
    yield from (indented(Text(line, style="dim")) for line in replacing_lines(plan, every=details))
    yield from (indented(Text(line, style="dim")) for line in relaxed_lines(plan.launches))
    yield from (indented(Text(line, style="yellow")) for line in waste_lines(plan.launches))
    if details:
        yield indented(_launched_one_by_one(plan.launches))


def removals_section(plan: Plan, now: datetime, *, details: bool = False) -> Iterator[RenderableType]:
    """Removals one by one, since each takes a running machine away: what it saves, the rule and the budget that let it
    go, and where its pods go; ``details`` names every pod."""
    if not plan.removals:
        return
    saving = total(removal.record.usd_per_hour for removal in plan.removals if removal.phase is RemovalPhase.RELEASE)
    draining = sum(removal.phase is RemovalPhase.MARK for removal in plan.removals)
    going = len(plan.removals) - draining
    titles = [
        *([f"Remove {counted(going, 'node')}"] if going else []),
        *([f"drain {counted(draining, 'node')}"] if draining else []),
    ]
    title = ", ".join(titles)
    yield heading(title[0].upper() + title[1:], f"-{saving}" if going else "")
    rows = table("node", "step", "reason", ">since", ">$/h", ">saves", "~rule, budget and pods", gives_way=("since",))
    targets = targets_of(plan)
    for removal in sorted(plan.removals, key=_removal_order):
        record = removal.record
        rows.add(
            Text(record.claim, style="red" if removal.phase is RemovalPhase.RELEASE else "yellow"),
            _PHASES[removal.phase],
            record.reason.value,
            format_duration(now - record.since),
            in_table(record.usd_per_hour),
            in_table(removal.saving) if removal.saving is not None else Text("–", style="dim"),
            "\n".join(removal_lines(removal, targets, now, every=details)),
        )
    yield indented(rows)


def kept_section(plan: Plan, now: datetime, *, details: bool) -> Iterator[RenderableType]:
    """Machines that stay, grouped by node set and reason."""
    if not plan.kept:
        return
    cost = total(kept.usd_per_hour for kept in plan.kept)
    yield heading(f"Keep {counted(len(plan.kept), 'node')}", str(cost))
    rows = table("node set", ">nodes", ">$/h", "~because")
    for group in _kept_groups(plan.kept):
        rows.add(
            group[0].node_pool,
            str(len(group)),
            in_table(total(kept.usd_per_hour for kept in group)),
            "; ".join(filter(None, (_group_words(group, now), pending_counts(group)))),
        )
    yield indented(rows)
    if details:
        one_by_one = table("node", "type", "zone", "capacity", ">$/h", "~because")
        for kept in plan.kept:
            one_by_one.add(
                kept.claim,
                kept.instance_type,
                kept.zone,
                kept.capacity_type,
                in_table(kept.usd_per_hour),
                kept_words(kept, now),
            )
        yield indented(one_by_one)


def _launch_table(launches: Sequence[Launch], region: str) -> Rows:
    columns = ("node set", ">new", "type", region, "capacity", ">pods", ">$/h", ">sum", "next best")
    rows = table(*columns, gives_way=("sum", region, "next best"))
    for group in _launch_groups(launches):
        claim = group[0].claim
        rows.add(
            claim.node_pool,
            Text(f"+{len(group)}", style="green"),
            claim.inputs.instance_type,
            zones_in_short((launch.claim.inputs.zone for launch in group), region),
            claim.inputs.capacity_type,
            _SERVES.get(group[0].reason) or str(sum(len(launch.pods) for launch in group)),
            in_table(claim.usd_per_hour),
            in_table(total(launch.claim.usd_per_hour for launch in group)),
            next_best_words(claim.inputs.offering_key, group[0].lost) or "only one",
        )
    return rows


def _launch_groups(launches: Sequence[Launch]) -> Iterable[list[Launch]]:
    groups: dict[tuple[object, ...], list[Launch]] = defaultdict(list)
    for launch in launches:
        claim = launch.claim
        inputs = claim.inputs
        alike = (claim.node_pool, inputs.instance_type, inputs.capacity_type, claim.usd_per_hour, launch.reason)
        groups[alike].append(launch)
    return [
        groups[alike] for alike in sorted(groups, key=lambda alike: (alike[0], alike[4], -len(groups[alike]), alike))
    ]


def _launched_one_by_one(launches: Sequence[Launch]) -> Rows:
    rows = table("node", "type", "zone", "capacity", ">$/h", "~pods")
    for launch in launches:
        inputs = launch.claim.inputs
        rows.add(
            launch.claim.name,
            inputs.instance_type,
            inputs.zone,
            " ".join(filter(None, (inputs.capacity_type, inputs.capacity_reservation_id))),
            in_table(launch.claim.usd_per_hour),
            examples([str(pod) for pod in (*launch.pods, *launch.displaced)], every=True) or "base capacity",
        )
    return rows


def _removal_order(removal: Removal) -> tuple[object, ...]:
    return (removal.phase is RemovalPhase.MARK, removal.record.node_pool, removal.record.claim)


def _kept_groups(every: Sequence[Kept]) -> Iterable[list[Kept]]:
    groups: dict[tuple[str, str], list[Kept]] = defaultdict(list)
    for kept in every:
        groups[kept.node_pool, kept.reason.code].append(kept)
    return [groups[alike] for alike in sorted(groups)]


def _group_words(group: Sequence[Kept], now: datetime) -> str:
    """One sentence for nodes that stay for the same kind of reason."""
    reasons = [kept.reason for kept in group]
    in_use = [reason for reason in reasons if isinstance(reason, InUse)]
    if in_use:
        return stay_words(
            InUse(pods=sum(each.pods for each in in_use), planned=sum(each.planned for each in in_use)), now
        )
    waiting = [reason for reason in reasons if isinstance(reason, BelowConsolidateAfter)]
    if waiting:
        return stay_words(min(waiting, key=lambda each: each.until), now) + (", the first" if len(waiting) > 1 else "")
    timed = [reason for reason in reasons if isinstance(reason, NotQuiet | NewlyUp | MovedLately)]
    if timed:
        first = stay_words(min(timed, key=lambda each: each.until), now)
        return first + (", the first" if len({each.until for each in timed}) > 1 else "")
    said = sorted({stay_words(reason, now) for reason in reasons})
    more = f"; and {len(said) - _SENTENCES} more such" if len(said) > _SENTENCES else ""
    return "; ".join(said[:_SENTENCES]) + more
