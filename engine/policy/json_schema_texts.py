"""What an editor shows over the fields of policy files."""

from __future__ import annotations

from collections.abc import Mapping

from engine.policy.cel.types import Record
from engine.policy.facts.schema import VARIABLE_DOCS, VARIABLE_TYPES, RulePart
from engine.policy.facts.spelling import spelled

# By the part and the field; the part is empty where a field means the same in all of them.
_TEXTS: Mapping[tuple[str, str], str] = {
    ("", "match"): "What the rule is about, told by names and labels. Nothing here is everything.",
    ("", "nodePools"): "Node pools, by name or by the labels of their nodes.",
    ("", "pods"): "Pods, by namespace or by their labels.",
    ("", "params"): "Typed parameters with defaults; a stack file may give others under nodewright:params.",
    ("", "variables"): "Named expressions that later ones of this rule read as variables.NAME.",
    ("", "enforcement"): "deny acts; warn tells what it would have done; audit only counts it.",
    ("", "message"): "What people are told where the rule decides. One sentence.",
    ("", "remedy"): "What to do about it.",
    ("", "docs"): "Where more is written.",
    ("", "portable"): "Whether the rule keeps to what both CEL engines know; true by default.",
    ("", "timeSensitive"): "Lets this rule read now and windows: a node may then turn unfit as the clock strikes.",
    (
        "",
        "resource",
    ): "What the ceiling is of: usdPerHour in dollars, memory in bytes, cpu in cores, others as a count.",
    ("", "blocks"): "What of the plan is not done where the expression is false or errs.",
    ("", "outside"): "While none of the windows is open: block lets nothing go, ignore says nothing.",
    ("BudgetSpecPart", "windows"): "Windows of the calendars in which this budget holds; none is always.",
    ("BudgetSpecPart", "reasons"): "The reasons that it is about; none is all of them.",
    ("RequirementSpecPart", "weight"): "How much this preference counts beside others; 1 by default.",
    ("CalendarSpecPart", "windows"): "Named windows; rules read windows.NAME.",
    ("WindowPart", "schedule"): "When it opens: a cron line of five fields, on the clock of timeZone.",
    ("WindowPart", "schedules"): "Several of them; openings that overlap are one.",
    ("WindowPart", "duration"): "How long it stays open, such as 8h.",
    ("CasePart", "rule"): "The rule that is asked, and that has to be what decides.",
    ("CasePart", "alongside"): "Other rules of its kind that are asked about the same.",
    ("CasePart", "given"): "Facts, laid over those of spec.defaults. What nobody gives is zero, empty or false.",
    ("CasePart", "expect"): "What the rule has to say; score, ceiling and allowed with their number.",
    ("CasePart", "message"): "A part of what the rule has to tell.",
    ("GivenPart", "instanceType"): "use: a type of the catalog, then fields over it.",
    ("GivenPart", "nodePool"): "use: a pool of the policy, then fields over it.",
    ("GivenPart", "windows"): "The windows that are open; without it those that are open at now.",
    ("GivenPart", "params"): "Parameters of the rule, over the stack's.",
    ("ScenarioPart", "snapshot"): "A recorded snapshot, told from the folder of this file.",
    ("ScenarioPart", "at"): "The time to decide at; the snapshot's own by default.",
    ("WindowPart", "timeZone"): "An IANA name such as Europe/Berlin; UTC by default.",
}


def text_of(part: str, field: str) -> str:
    """What is shown over a field of a part, named by its class; empty where its name says all."""
    return _TEXTS.get((part, field)) or _TEXTS.get(("", field), "")


def hover_text(part: RulePart) -> str:
    """What is shown over a field that holds CEL: what it comes to, and all that it may read."""
    readable = [f"- {name}: {_readable(name)}" for name in part.variables]
    return "\n".join([f"{part.doc} CEL, {part.result}.", "", "It may read:", *readable])


def _readable(variable: str) -> str:
    type_ = VARIABLE_TYPES.get(variable)
    if isinstance(type_, Record):
        return ", ".join(f"{each.name} {spelled(each.type)}" for each in type_.fields)
    return f"{spelled(type_)}. {VARIABLE_DOCS[variable]}" if type_ is not None else VARIABLE_DOCS[variable]
