"""The one source of what rules may read, part by part of each kind of rule.

The checker, the JSON Schemas, the reference tables and the fixtures of policy tests are all made from what stands here
and in `records`, and `engine.policy.facts.values` fills it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from engine.model.rule import ParameterValue, RuleKind
from engine.policy.cel.types import CelType, Record, RecordField, Scalar
from engine.policy.facts.records import (
    CLUSTER,
    COST,
    INSTANCE_TYPE,
    LAUNCH,
    NODE,
    NODE_POOL,
    PLAN,
    POD,
    POOL_CHANGE,
    RECORDS,
    REMOVAL,
    TOLERATION,
)

__all__ = [
    "CLUSTER",
    "COST",
    "INSTANCE_TYPE",
    "LAUNCH",
    "NODE",
    "NODE_POOL",
    "PLAN",
    "POD",
    "POOL_CHANGE",
    "RECORDS",
    "REMOVAL",
    "RULE_PARTS",
    "TOLERATION",
    "VARIABLE_DOCS",
    "VARIABLE_TYPES",
    "RulePart",
    "params_record",
    "part_of",
    "variables_for",
    "windows_record",
]

_OF_PARAMETERS: Mapping[type, Scalar] = {
    bool: Scalar.BOOL,
    int: Scalar.INT,
    float: Scalar.DOUBLE,
    str: Scalar.STRING,
}
_EVERYWHERE = ("cluster", "params")
_TIME = ("windows", "now")
# A requirement rule reads the time only when it says so: else a node could turn unfit as the clock strikes.
_ONLY_IF_TIME_SENSITIVE = frozenset({RuleKind.REQUIREMENT_RULE})

# Every variable besides `params` and `windows`, whose fields are the rule's and the calendars' own.
VARIABLE_TYPES: Mapping[str, CelType] = {
    "pod": POD,
    "instanceType": INSTANCE_TYPE,
    "nodePool": NODE_POOL,
    "node": NODE,
    "reason": Scalar.STRING,
    "group": Scalar.STRING,
    "plan": PLAN,
    "cost": COST,
    "cluster": CLUSTER,
    "now": Scalar.TIMESTAMP,
}

VARIABLE_DOCS: Mapping[str, str] = {
    "pod": "The pod that wants a node.",
    "instanceType": "The instance type, at one capacity type, that it might get.",
    "nodePool": "The NodePool in question.",
    "node": "The node that might go.",
    "reason": "Why it might go: `Empty`, `Underutilized`, `Drifted` or `Expired`.",
    "group": "The group that the ceiling is for: what `groupBy` gave, the pool's name without it.",
    "plan": "The finished plan.",
    "cost": "What the plan costs.",
    "cluster": "The cluster and its environment.",
    "params": "The rule's own parameters, each with the type of its declaration.",
    "windows": "One bool for each window of the calendars: whether it is open.",
    "now": "The time of the pass. It stands still while the pass decides.",
}


@frozen
class RulePart:
    """A part of a rule's ``spec`` that holds CEL: its field, what its value must be, and what it may read.

    ``result`` is text for people; a ceiling's depends on the resource.
    """

    name: str
    result: str
    variables: tuple[str, ...]
    doc: str


_REQUIREMENT = ("pod", "instanceType", "nodePool", *_EVERYWHERE, *_TIME)
_CEILING = ("group", "nodePool", *_EVERYWHERE, *_TIME)
_BUDGET = ("nodePool", *_EVERYWHERE, *_TIME)
_CANDIDATE = ("node", "reason", *_BUDGET)
_GUARDRAIL = ("plan", "cost", *_EVERYWHERE, *_TIME)


def _conditions(variables: tuple[str, ...]) -> RulePart:
    return RulePart("matchConditions", "bool", variables, "Where one of them is false the rule says nothing.")


def _message(variables: tuple[str, ...]) -> RulePart:
    return RulePart("messageExpression", "string", variables, "A better message; where it errs, `message` is told.")


# A condition holds for all parts of its rule, so it reads what they all can read.
RULE_PARTS: Mapping[RuleKind, tuple[RulePart, ...]] = {
    RuleKind.REQUIREMENT_RULE: (
        RulePart("require", "bool", _REQUIREMENT, "Whether the pod may get the instance type."),
        RulePart(
            "prefer",
            "double",
            _REQUIREMENT,
            "How much the pod likes it, from 0.0 to 1.0. Scores times weights are summed; among pools of one weight the"
            " highest sum wins at any price, and price decides among equals. Spot that is dearer than on-demand of the"
            " same type in the same zone is not bought all the same, where on-demand is permitted.",
        ),
        _conditions(_REQUIREMENT),
        _message(_REQUIREMENT),
    ),
    RuleKind.LIMIT_RULE: (
        RulePart("groupBy", "string", ("pod", "nodePool", *_EVERYWHERE), "The group that a pod's capacity counts in."),
        RulePart(
            "ceiling",
            "int; double for `usdPerHour`",
            _CEILING,
            "The most that the group may have. `nodePool` is there without `groupBy` only: a group may span pools.",
        ),
        _conditions(_CEILING),
        _message(_CEILING),
    ),
    RuleKind.DISRUPTION_BUDGET: (
        RulePart("candidate", "bool", _CANDIDATE, "Whether the node may go for the reason."),
        RulePart("budget", "int", _BUDGET, "How many of the pool's nodes may be going at once."),
        RulePart("maxPerWindow", "int", _BUDGET, "How many of the pool's nodes may go in one opening of a window."),
        _conditions(_BUDGET),
        _message(_CANDIDATE),
    ),
    RuleKind.GUARDRAIL: (
        RulePart("expression", "bool", _GUARDRAIL, "Whether the plan is in order."),
        _conditions(_GUARDRAIL),
        _message(_GUARDRAIL),
    ),
}


def part_of(kind: RuleKind, name: str) -> RulePart:
    """The part of that name; ``variables[NAME]`` is no part. Raises KeyError: a mistake of ours."""
    found = next((part for part in RULE_PARTS[kind] if part.name == name), None)
    if found is None:
        raise KeyError(f"{kind.value} has no part {name} that holds CEL")
    return found


def variables_for(
    kind: RuleKind,
    part: str,
    params: Mapping[str, ParameterValue],
    windows: Sequence[str],
    *,
    time_sensitive: bool,
    grouped: bool = False,
) -> Mapping[str, CelType]:
    """The variables that a part of a rule may read, with their types.

    ``part`` is the YAML field, ``windows`` are the names of all windows of the calendars. ``time_sensitive`` counts for
    requirement rules only. ``grouped`` is for limit rules: with ``groupBy`` a ceiling has no node pool to read.
    Raises KeyError for a part that the kind does not have.
    """
    names = [
        name
        for name in part_of(kind, part).variables
        if (name not in _TIME or time_sensitive or kind not in _ONLY_IF_TIME_SENSITIVE)
        and not (name == "nodePool" and grouped and part != "groupBy")
    ]
    own = {"params": params_record(params), "windows": windows_record(windows)}
    return {name: own[name] if name in own else VARIABLE_TYPES[name] for name in names}


def params_record(params: Mapping[str, ParameterValue]) -> Record:
    """The type of ``params``: one field for each parameter of a rule."""
    fields = (RecordField(name, _OF_PARAMETERS[type(value)], "") for name, value in sorted(params.items()))
    return Record("params", tuple(fields), VARIABLE_DOCS["params"])


def windows_record(windows: Sequence[str]) -> Record:
    """The type of ``windows``: one bool for each window, so that a mistyped name does not compile."""
    fields = (RecordField(name, Scalar.BOOL, "Whether it is open.") for name in sorted(windows))
    return Record("windows", tuple(fields), VARIABLE_DOCS["windows"])
