"""What became of a plan, and what a destruction would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from engine.model.document import DesiredDocument
from engine.model.money import total
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.plan import Plan
from engine.report.tables import add_row, examples, heading, in_table, indented, table
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


def render_outcome(outcome: Outcome, plan: Plan | None = None) -> RenderableType:
    """Launches that were refused, each with AWS's own words, and the sum in a line."""
    lines: list[RenderableType] = []
    trouble = [each for each in outcome.claims if each.status in _TROUBLE]
    if trouble:
        lines.append(heading("Not as planned"))
        offerings = _planned_offerings(plan)
        for group in _alike(trouble, offerings):
            words, style = _WORDS[group[0].status]
            names = examples([each.claim for each in group])
            lines.append(indented(Text.assemble(names, "  ", (words, style), f"  {_offering(group[0], offerings)}")))
            if why := _why(group[0]):
                lines.append(indented(Text(why), 4))
    if outcome.foundation_failures:
        lines.append(heading("Foundation"))
        lines += [indented(Text(failure, "red")) for failure in outcome.foundation_failures]
    if any(each.status is OutcomeStatus.FAILED_CAPACITY for each in trouble):
        lines.append(Text("What was refused for capacity is out for a while; the next pass plans around it.", "dim"))
    return Group(*lines, Text(outcome_line(outcome), style="bold green" if outcome.is_settled else "bold yellow"))


def outcome_line(outcome: Outcome) -> str:
    """``Outcome: 12 created, 1 adopted, 2 refused for capacity; version 5 is settled``."""
    counts = Counter(each.status for each in outcome.claims)
    parts = [f"{counts[status]} {words}" for status, (words, _) in _WORDS.items() if counts[status]]
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
        return Group(*lines, Text("Nothing is published and no instance runs; what the stack holds goes all the same."))
    if document is not None:
        rows = table("node set", ">nodes", ">$/h")
        for node_set in document.node_sets:
            cost = total(claim.usd_per_hour for claim in node_set.claims)
            add_row(rows, node_set.node_pool, str(len(node_set.claims)), in_table(cost))
        if document.node_sets:
            lines.append(indented(rows))
        claims = {claim.name for claim in document.claims}
        strays = [each.id for each in alive if each.claim not in claims]
        if strays:
            lines.append(Text(f"and {counted(len(strays), 'instance')} without a claim: {', '.join(strays)}"))
        cost = total(claim.usd_per_hour for claim in document.claims)
        foundation = counted(len(document.foundation.launch_templates), "launch template")
        lines.append(
            Text(
                f"With them go {foundation}, {counted(len(document.foundation.roles), 'role')} and the stack's network."
            )
        )
        lines.append(Text(f"Saves {cost}, about {a_month(cost)} a month."))
    lines.append(Text(f"{counted(len(alive), 'instance')} will be terminated, with all that runs there.", "bold red"))
    return Group(*lines)


def _planned_offerings(plan: Plan | None) -> dict[str, str]:
    if plan is None:
        return {}
    inputs = {launch.claim.name: launch.claim.inputs for launch in plan.launches}
    return {name: f"{each.instance_type}/{each.zone}/{each.capacity_type}" for name, each in inputs.items()}


def _offering(each: ClaimOutcome, planned: Mapping[str, str]) -> str:
    return each.offering or planned.get(each.claim, "")


def _alike(trouble: Iterable[ClaimOutcome], planned: Mapping[str, str]) -> Iterable[list[ClaimOutcome]]:
    """Those of one offering that met the same, together."""
    groups: dict[tuple[str, str, str], list[ClaimOutcome]] = {}
    for each in trouble:
        groups.setdefault((each.status.value, each.code, _offering(each, planned)), []).append(each)
    return groups.values()


def _why(each: ClaimOutcome) -> str:
    return ": ".join(part for part in (each.code, " ".join(each.message.split())) if part)
