"""What rules say of a plan: what they block, what they would do if they did not only warn, and where they erred."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from engine.model.plan import Plan, Verdict, VerdictOutcome
from engine.model.rule import Enforcement
from engine.report.tables import heading, indented, table
from engine.report.words import counted


def rules_section(plan: Plan) -> Iterator[RenderableType]:
    """One line for each rule that has something to say; those that hold say nothing."""
    told = [each for each in plan.verdicts if each.outcome is not VerdictOutcome.HOLDS]
    if not told:
        return
    yield heading("Rules")
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
        return f"blocks {', '.join(each.value for each in verdict.blocked)}"
    return ""
