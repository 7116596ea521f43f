"""What became of a plan, and what a destruction would take."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from engine.model.claim import Claim
from engine.model.document import DesiredDocument, Foundation
from engine.model.environment import NetworkMode
from engine.model.money import total
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.plan import Plan
from engine.report.tables import Screen, examples, heading, in_table, indented, table
from engine.report.words import a_month, counted

_WORDS = {
    OutcomeStatus.CREATED: ("created", "green"),
    OutcomeStatus.ADOPTED: ("adopted", "green"),
    OutcomeStatus.DELETED: ("deleted", "green"),
    OutcomeStatus.SKIPPED: ("skipped", "yellow"),
    OutcomeStatus.FAILED_CAPACITY: ("refused for capacity", "yellow"),
    OutcomeStatus.FAILED_OTHER: ("failed", "red"),
    OutcomeStatus.UNKNOWN: ("unknown", "red"),
}
_TROUBLE = (OutcomeStatus.FAILED_CAPACITY, OutcomeStatus.FAILED_OTHER, OutcomeStatus.UNKNOWN, OutcomeStatus.SKIPPED)
_GROUPS_SHOWN = 8
_NAMED = 3
# An instance, a spot request, a network interface or a volume; or the id of a request to AWS.
_OF_ONE = re.compile(r"\b(?:i|sir|eni|vol)-[0-9a-z]{8,17}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def render_outcome(outcome: Outcome, plan: Plan | None = None) -> RenderableType:
    """Launches that were refused, each with AWS's own words, and the sum in a line."""
    lines: list[RenderableType] = []
    trouble = [each for each in outcome.claims if each.status in _TROUBLE]
    if trouble:
        lines.append(heading("Not as planned"))
        lines += _troubles(trouble, plan)
    if outcome.foundation_failures:
        lines.append(heading("Foundation"))
        lines += [indented(Text(failure, "red")) for failure in outcome.foundation_failures]
    if any(each.status is OutcomeStatus.FAILED_CAPACITY for each in trouble):
        lines.append(Text("What was refused for capacity is out for a while; the next pass plans around it.", "dim"))
    return Screen(*lines, Text(outcome_line(outcome), style="bold green" if outcome.is_settled else "bold yellow"))


def outcome_line(outcome: Outcome) -> str:
    """``Outcome: 12 created, 1 adopted, 2 refused for capacity; version 5 is settled``."""
    counts = Counter(each.status for each in outcome.claims)
    parts = [f"{counts[status]:,} {words}" for status, (words, _) in _WORDS.items() if counts[status]]
    if outcome.foundation_failures:
        parts.append(counted(len(outcome.foundation_failures), "foundation failure"))
    settled = "settled" if outcome.is_settled else "not settled yet"
    return f"Outcome: {', '.join(parts) or 'nothing to change'}; version {outcome.version} is {settled}"


def render_destruction(
    environment: str, document: DesiredDocument | None, instances: Iterable[Instance]
) -> RenderableType:
    """What goes when an environment is destroyed, before anybody is asked."""
    alive = sorted((each for each in instances if each.is_alive), key=lambda each: each.id)
    lines: list[RenderableType] = [heading(f"Destroy {environment}")]
    if document is None and not alive:
        return Screen(
            *lines, Text("Nothing is published and no instance runs; what the stack holds goes all the same.")
        )
    if document is not None:
        rows = table("node set", ">nodes", ">$/h")
        for node_set in document.node_sets:
            cost = total(claim.usd_per_hour for claim in node_set.claims)
            rows.add(node_set.node_pool, str(len(node_set.claims)), in_table(cost))
        if document.node_sets:
            lines.append(indented(rows))
        claims = {claim.name for claim in document.claims}
        strays = [each.id for each in alive if each.claim not in claims]
        if strays:
            lines.append(Text(f"and {counted(len(strays), 'instance')} without a claim: {', '.join(strays)}"))
        cost = total(claim.usd_per_hour for claim in document.claims)
        if foundation := _foundation_words(document.foundation):
            lines.append(Text(f"The foundation goes too: {foundation}."))
        lines.append(Text(f"Saves {cost}, about {a_month(cost)} a month."))
    lines.append(Text(f"{counted(len(alive), 'instance')} will be terminated, with all that runs there.", "bold red"))
    return Screen(*lines)


def _foundation_words(foundation: Foundation) -> str:
    """``5 launch templates, 1 role and the stack's network``; a network that is only looked up stays."""
    templates, roles = len(foundation.launch_templates), len(foundation.roles)
    parts = [
        *([counted(templates, "launch template")] if templates else []),
        *([counted(roles, "role")] if roles else []),
        *([f"the queue {foundation.interruption_queue}"] if foundation.interruption_queue else []),
        *(["the stack's network"] if foundation.network_mode is NetworkMode.OWNED else []),
    ]
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def _troubles(trouble: Iterable[ClaimOutcome], plan: Plan | None) -> Iterator[RenderableType]:
    """Claims that met the same, together: a few by name, many by node set."""
    planned = {launch.claim.name: launch.claim for launch in plan.launches} if plan is not None else {}
    groups = _alike(trouble)
    for group in groups[:_GROUPS_SHOWN]:
        words, style = _WORDS[group[0].status]
        names = [each.claim for each in group]
        is_short = len(names) <= _NAMED
        who = ", ".join(names) if is_short else _by_node_set(names, planned)
        met = Text.assemble(who, "  ", (words, style))
        # What was merely left out fails by no offering.
        where = _offerings(group, planned) if group[0].status is not OutcomeStatus.SKIPPED else ""
        if where:
            met.append(f"  {where}")
        yield indented(met)
        if why := _why(group):
            yield indented(Text(why), 4)
        if not is_short:
            yield indented(Text(examples(names, shown=2), style="dim"), 4)
    rest = groups[_GROUPS_SHOWN:]
    if rest:
        left = counted(sum(map(len, rest)), "node")
        yield indented(Text(f"and {left} for {counted(len(rest), 'other reason')}", style="dim"))


def _alike(trouble: Iterable[ClaimOutcome]) -> list[list[ClaimOutcome]]:
    """By status, code and message; what failed before what was merely left out, the many before the few."""
    groups: dict[tuple[OutcomeStatus, str, str], list[ClaimOutcome]] = defaultdict(list)
    for each in trouble:
        groups[each.status, each.code, _for_any(each)].append(each)
    return sorted(groups.values(), key=lambda group: (group[0].status is OutcomeStatus.SKIPPED, -len(group)))


def _by_node_set(names: Iterable[str], planned: Mapping[str, Claim]) -> str:
    """``gpu-core 300, gpu-elastic 12``. A claim that the plan does not launch is named after its pool as well."""
    pools = (planned[name].node_pool if name in planned else name.rpartition("-")[0] or name for name in names)
    return ", ".join(f"{pool} {count:,}" for pool, count in sorted(Counter(pools).items()))


def _offerings(group: Iterable[ClaimOutcome], planned: Mapping[str, Claim]) -> str:
    """The offering that was asked for, or how many they were."""
    every = set()
    for each in group:
        claim = planned.get(each.claim)
        if each.offering:
            every.add(each.offering)
        elif claim is not None:
            every.add(claim.inputs.offering_key)
    return counted(len(every), "offering") if len(every) > 1 else "".join(every)


def _why(group: Sequence[ClaimOutcome]) -> str:
    """AWS's words; for several machines without what names one of them."""
    message = group[0].message if len(group) == 1 else _for_any(group[0])
    return ": ".join(part for part in (group[0].code, " ".join(message.split())) if part)


def _for_any(each: ClaimOutcome) -> str:
    """A message without the names of one machine or one request."""
    return _OF_ONE.sub("…", each.message.replace(each.claim, "…"))
