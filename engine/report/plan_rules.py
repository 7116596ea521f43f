"""What rules say of a plan: what they block, what they would do if they did not only warn, and where they erred."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from engine.model.plan import Plan, Verdict, VerdictOutcome
from engine.model.rule import ActionClass, Enforcement
from engine.report.tables import heading, indented, table
from engine.report.words import counted

_BLOCKED = {
    ActionClass.ADD: "launches",
    ActionClass.REMOVE: "removals by choice",
    ActionClass.REPLACE: "replacements by choice",
}


def rules_section(plan: Plan) -> Iterator[RenderableType]:
    """One line for each rule that has something to say; those that hold are only counted."""
    told = [each for each in plan.verdicts if each.outcome is not VerdictOutcome.HOLDS]
    if not told:
        return
    holding = len(plan.verdicts) - len(told)
    yield heading("Rules", f"{counted(holding, 'guardrail')} hold{'s' if holding == 1 else ''}" if holding else "")
    rows = table("rule", "enforcement", "~says")
    for each in told:
        style = "yellow" if each.enforcement is not Enforcement.AUDIT else "dim"
        rows.add(Text(each.rule, style=style), each.enforcement.value, verdict_words(each))
    yield indented(rows)


def verdict_words(verdict: Verdict) -> str:
    """What a rule did to the plan, or would have done, and its message or what it came to."""
    why = verdict.message
    if verdict.outcome is VerdictOutcome.ERROR:
        why = f"it could not be evaluated: {verdict.error}"
    did = _did(verdict)
    return f"{did}: {why}" if did else why


def _did(verdict: Verdict) -> str:
    acts = verdict.enforcement is Enforcement.DENY
    if verdict.pods:
        return (
            f"{'keeps' if acts else 'would keep'} {counted(verdict.pods, 'pod')} from {counted(verdict.types, 'type')}"
        )
    if verdict.blocked:
        return f"blocks {' and '.join(_BLOCKED[each] for each in verdict.blocked)}"
    return ""


def verdict_counts(plan: Plan) -> Iterator[str]:
    """For a plan in one line: ``1 rule blocks``, ``2 rules warn``."""
    blocking = sum(bool(each.blocked) for each in plan.verdicts)
    warning = sum(
        each.enforcement is Enforcement.WARN and each.outcome is not VerdictOutcome.HOLDS for each in plan.verdicts
    )
    if blocking:
        yield f"{counted(blocking, 'rule')} block{'s' if blocking == 1 else ''}"
    if warning:
        yield f"{counted(warning, 'rule')} warn{'s' if warning == 1 else ''}"
