"""What stands: node sets with their machines, state and cost, and the pods that wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.text import Text

from engine.model.catalog import Catalog
from engine.model.duration import format_duration
from engine.model.money import UsdPerHour, total
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.report.cluster_notes import karpenter_notes, paused_notes
from engine.report.going import going_section
from engine.report.standing import Standing, standings
from engine.report.status_milestones import milestones_section
from engine.report.tables import BAR, Rows, Screen, heading, in_table, indented, table, zones_in_short
from engine.report.words import a_month, counted

# Beyond this many machines only the node sets are shown.
_ONE_BY_ONE = 25
_STYLES = {"ready": "green", "draining": "yellow", "lost": "red", "node not ready": "red"}


def render_status(
    snapshot: Snapshot, policy: Policy, catalog: Catalog, plan: Plan | None = None, *, now: datetime | None = None
) -> RenderableType:
    """Node sets and instances, waiting pods, cost; ``plan`` adds what a pass would change. ``now``: the reader's."""
    read_at = now or datetime.now(UTC)
    ledger = plan.ledger if plan is not None else snapshot.ledger
    every = standings(snapshot, ledger)
    lines: list[RenderableType] = [_header(snapshot, read_at)]
    lines += [*paused_notes(snapshot, plan, policy), *karpenter_notes(snapshot)]
    if every:
        lines += [
            Text(""),
            heading("Node sets"),
            indented(node_sets_table(every, catalog.region)),
        ]
    if 0 < len(every) <= _ONE_BY_ONE:
        lines += [Text(""), heading("Instances"), indented(_instances(every))]
    leaving = list(going_section(plan, snapshot, most=_ONE_BY_ONE)) if plan is not None else []
    lines += [Text(""), *leaving] if leaving else []
    milestones = list(milestones_section(every, ledger, read_at, most=_ONE_BY_ONE))
    lines += [Text(""), *milestones] if milestones else []
    lines += _without_claim(snapshot)
    lines += _pools_without_nodes(policy, every)
    lines += [Text(f"could not be read: {problem}", style="yellow") for problem in snapshot.problems]
    lines += [Text(""), *_ending(snapshot, every, plan)]
    return Screen(*lines)


def node_sets_table(every: Sequence[Standing], region: str, *, keeps_bars: bool = False) -> Rows:
    """Machines that are alike in pool, type, capacity type and state, in one row with their GPUs, pods and cost.

    ``keeps_bars``: where the screen is narrow the capacity type gives way before the bars do.
    """
    groups: dict[tuple[str, str, str, str], list[Standing]] = defaultdict(list)
    for one in every:
        inputs = one.claim.inputs
        groups[one.claim.node_pool, inputs.instance_type, inputs.capacity_type, one.state].append(one)
    columns = ("node set", ">nodes", "type", region, "capacity", "state", BAR, ">GPUs", ">pods", ">$/h")
    rows = table(*columns, gives_way=(region, "capacity", BAR) if keeps_bars else (region, BAR))
    for alike in sorted(groups):
        pool, kind, capacity_type, state = alike
        group = groups[alike]
        used, whole = sum(one.accelerators_used for one in group), sum(one.accelerators for one in group)
        rows.add(
            pool,
            str(len(group)),
            kind,
            zones_in_short((one.claim.inputs.zone for one in group), region),
            capacity_type,
            Text(state, style=_STYLES.get(state, "")),
            _bar(used, whole),
            f"{used}/{whole}" if whole else Text("–", style="dim"),
            str(sum(one.pods for one in group)),
            in_table(total(one.claim.usd_per_hour for one in group)),
        )
    return rows


def _instances(every: Sequence[Standing]) -> Rows:
    rows = table("node", "instance", "zone", "state", "Kubernetes node", gives_way=("zone",))
    for one in every:
        rows.add(
            one.claim.name,
            one.instance_id or "–",
            one.claim.inputs.zone,
            Text(one.state, style=_STYLES.get(one.state, "")),
            one.node or "–",
        )
    return rows


def _bar(used: int, whole: int) -> Text:
    """``███░``, at most four cells."""
    if not whole:
        return Text()
    cells = min(whole, 4)
    full = min(cells, -(-used * cells // whole))
    return Text.assemble(("█" * full, "cyan"), ("░" * (cells - full), "dim"))


def _header(snapshot: Snapshot, now: datetime) -> Text:
    document = snapshot.document
    version = f"version {document.version}" if document is not None else "nothing published yet"
    return Text.assemble(
        (snapshot.environment, "bold"),
        f"  {version}, seen {format_duration(now - snapshot.taken_at)} ago",
    )


def _without_claim(snapshot: Snapshot) -> Iterator[Text]:
    """Instances that carry our tag and that nobody asked for any more: they cost until they are gone."""
    claims = {claim.name for claim in snapshot.document.claims} if snapshot.document is not None else set()
    strays = [each for each in snapshot.cloud.instances if each.is_alive and each.claim not in claims]
    if strays:
        named = ", ".join(f"{stray.id} ({stray.claim or 'no claim'})" for stray in strays[:3])
        more = f" and {len(strays) - 3} more" if len(strays) > 3 else ""
        yield Text(f"{counted(len(strays), 'instance')} of this environment without a claim: {named}{more}", "yellow")


def _pools_without_nodes(policy: Policy, every: Iterable[Standing]) -> Iterator[Text]:
    used = {one.claim.node_pool for one in every}
    unused = sorted(pool.name for pool in policy.node_pools if pool.name not in used)
    if unused:
        yield Text(f"Without nodes: {', '.join(unused)}", style="dim")


def _ending(snapshot: Snapshot, every: Sequence[Standing], plan: Plan | None) -> Iterator[Text]:
    waiting = sum(pod.is_waiting for pod in snapshot.pods)
    blocked = _blocked(waiting, len(plan.unplaced) if plan is not None else 0)
    running = sum(one.state == "ready" for one in every)
    cost: UsdPerHour = total(one.claim.usd_per_hour for one in every)
    foreign = len(snapshot.nodes) - sum(one.node is not None for one in every)
    others = f"; {counted(foreign, 'further node')} in the cluster" if foreign else ""
    yield Text(f"{counted(waiting, 'pod')} waiting{blocked}.")
    yield Text(
        f"{counted(len(every), 'node')} ({running} ready){others}. Cost {cost}, about {a_month(cost)} a month.",
        style="bold",
    )


def _blocked(waiting: int, blocked: int) -> str:
    if not blocked:
        return ""
    return f", {'all' if blocked == waiting else f'{blocked:,} of them'} blocked (nodewright plan says why)"
