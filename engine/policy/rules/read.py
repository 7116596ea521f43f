"""A rule file's object as a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from engine.model.constraint import Operator, Requirement
from engine.model.diagnostic import Position
from engine.model.reason import DisruptionReason
from engine.model.rule import (
    AnyRule,
    DisruptionBudget,
    Guardrail,
    LimitRule,
    NamedExpression,
    RequirementRule,
    RuleKind,
    Selection,
)
from engine.policy.findings import ObjectFindings
from engine.policy.located import Fields, Items, Path, Scalar, fields_at
from engine.policy.rules.parameters import Parameter, declared
from engine.policy.rules.parts import (
    BudgetSpecPart,
    ConditionPart,
    DisruptionBudgetPart,
    GuardrailPart,
    GuardrailSpecPart,
    LimitRulePart,
    LimitSpecPart,
    PodMatchPart,
    RequirementRulePart,
    RequirementSpecPart,
    RuleSpecPart,
    SelectorPart,
    VariablePart,
)
from engine.policy.schema import validated

_SPEC: Path = ("spec",)
_MATCH: Path = ("spec", "match")
VARIABLES: Path = ("spec", "variables")


@frozen
class RuleRead:
    """A rule whose parameters have no values yet."""

    rule: AnyRule
    parameters: tuple[Parameter, ...]
    findings: ObjectFindings


def read_rule(findings: ObjectFindings, kind: RuleKind) -> RuleRead | None:
    """The rule, or None when too much of it is wrong; all that is wrong goes to ``findings``."""
    _spell_out_match(findings)
    document = validated(_PARTS[kind], findings)
    if document is None:
        return None
    spec: RuleSpecPart = document.spec
    _check_match(spec, kind, findings)
    _check_names(spec.variables, VARIABLES, "variable", findings)
    _check_names(spec.match_conditions, ("spec", "matchConditions"), "condition", findings)
    envelope: dict[str, Any] = {
        "name": document.metadata.name,
        "position": findings.at(("metadata", "name")),
        "match": _selection(spec, findings),
        "match_conditions": _named(spec.match_conditions),
        "variables": _named(spec.variables),
        "enforcement": spec.enforcement,
        "message": spec.message,
        "message_expression": spec.message_expression,
        "remedy": spec.remedy,
        "docs": spec.docs,
        "labels": document.metadata.labels,
        "is_portable": spec.portable,
    }
    return RuleRead(_rule(spec, envelope, findings), declared(spec.params, findings), findings)


_PARTS: dict[
    RuleKind, type[RequirementRulePart] | type[LimitRulePart] | type[DisruptionBudgetPart] | type[GuardrailPart]
] = {
    RuleKind.REQUIREMENT_RULE: RequirementRulePart,
    RuleKind.LIMIT_RULE: LimitRulePart,
    RuleKind.DISRUPTION_BUDGET: DisruptionBudgetPart,
    RuleKind.GUARDRAIL: GuardrailPart,
}


def _rule(spec: RuleSpecPart, envelope: dict[str, Any], findings: ObjectFindings) -> AnyRule:
    match spec:
        case RequirementSpecPart():
            return _requirement(spec, envelope, findings)
        case LimitSpecPart():
            return LimitRule(resource=spec.resource, ceiling=spec.ceiling, group_by=spec.group_by, **envelope)
        case BudgetSpecPart():
            return _budget(spec, envelope, findings)
        case GuardrailSpecPart():
            return _guardrail(spec, envelope, findings)
    raise AssertionError(f"no kind of rule has the spec {type(spec).__name__}")


def _requirement(spec: RequirementSpecPart, envelope: dict[str, Any], findings: ObjectFindings) -> RequirementRule:
    if not findings.lacks_part(_SPEC):
        if spec.require is None and spec.prefer is None:
            message = "a RequirementRule says what it wants: require or prefer is missing"
            findings.error_at_key(_SPEC, "missing-field", message, "add require: with an expression that is a bool")
        if spec.require is not None and spec.prefer is not None:
            message = "a RequirementRule has require or prefer, not both"
            findings.error_at_key((*_SPEC, "prefer"), "contradiction", message, "make a rule of its own of this one")
        if spec.weight is not None and spec.prefer is None:
            message = "weight is for prefer, and this rule prefers nothing"
            findings.error_at_key((*_SPEC, "weight"), "contradiction", message, "remove it")
    return RequirementRule(
        require=spec.require,
        prefer=spec.prefer,
        weight=1.0 if spec.weight is None else spec.weight,
        is_time_sensitive=spec.time_sensitive,
        **envelope,
    )


def _budget(spec: BudgetSpecPart, envelope: dict[str, Any], findings: ObjectFindings) -> DisruptionBudget:
    if not findings.lacks_part(_SPEC):
        if spec.candidate is None and spec.budget is None and spec.max_per_window is None and not spec.windows:
            message = "this budget limits nothing: it has no windows, candidate, budget or maxPerWindow"
            findings.error_at_key(_SPEC, "no-effect", message, "add one of them")
        if not spec.windows:
            for key, given in (("outside", spec.outside), ("maxPerWindow", spec.max_per_window)):
                if given is not None:
                    message = f"{key} speaks of windows, and this budget names none"
                    findings.error_at_key((*_SPEC, key), "no-effect", message, "add windows, or remove it")
        elif spec.outside == "ignore" and not (spec.candidate or spec.budget or spec.max_per_window):
            message = "with outside: ignore this budget limits nothing, neither in its windows nor outside"
            findings.error_at_key((*_SPEC, "outside"), "no-effect", message, "write outside: block")
    _check_twice(spec.reasons, "reasons", findings)
    _check_twice(spec.windows, "windows", findings)
    return DisruptionBudget(
        reasons=tuple(DisruptionReason(reason) for reason in spec.reasons),
        windows=tuple(spec.windows),
        blocks_outside=spec.outside != "ignore",
        candidate=spec.candidate,
        budget=spec.budget,
        max_per_window=spec.max_per_window,
        **envelope,
    )


def _guardrail(spec: GuardrailSpecPart, envelope: dict[str, Any], findings: ObjectFindings) -> Guardrail:
    if not spec.blocks and not findings.lacks_part((*_SPEC, "blocks")):
        message = "this guardrail blocks nothing"
        findings.error((*_SPEC, "blocks"), "no-effect", message, "name what it blocks: add, remove, replace")
    _check_twice([each.value for each in spec.blocks], "blocks", findings)
    return Guardrail(expression=spec.expression, blocks=tuple(spec.blocks), **envelope)


def _check_twice(values: Sequence[str], key: str, findings: ObjectFindings) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            path = (*_SPEC, key, index)
            findings.error(path, "duplicate-value", f"{value} is here twice", "keep one of them")


def _named(parts: Sequence[ConditionPart | VariablePart]) -> tuple[NamedExpression, ...]:
    return tuple(NamedExpression(part.name, part.expression) for part in parts)


def _check_names(
    parts: Sequence[ConditionPart | VariablePart], path: Path, what: str, findings: ObjectFindings
) -> None:
    names: list[str] = []
    for index, part in enumerate(parts):
        if part.name in names:
            message = f"the {what} {part.name} is here twice"
            findings.error((*path, index, "name"), "duplicate-name", message, "rename or remove one of them")
        names.append(part.name)


# --- match


def _spell_out_match(findings: ObjectFindings) -> None:
    """A list of pools is their names; a selector that is a plain map is matchLabels."""
    match = fields_at(findings.root, _MATCH)
    if match is None:
        return
    pools = match.fields.get("nodePools")
    if isinstance(pools, Scalar) and pools.value is not None:
        pools = Items(pools.place, [pools])
    if isinstance(pools, Items):
        match.fields["nodePools"] = Fields(pools.place, {"names": pools}, {"names": match.key_places["nodePools"]})
    for key in ("nodePools", "pods"):
        selector = fields_at(match, (key, "selector"))
        if selector is not None and not {"matchLabels", "matchExpressions"} & selector.fields.keys():
            labels = Fields(selector.place, selector.fields, selector.key_places)
            selector.fields, selector.key_places = {"matchLabels": labels}, {"matchLabels": selector.place}


def _check_match(spec: RuleSpecPart, kind: RuleKind, findings: ObjectFindings) -> None:
    """What a kind does not decide about, it cannot be narrowed to."""
    if kind is RuleKind.GUARDRAIL and fields_at(findings.root, _MATCH) is not None:
        message = "a Guardrail judges the plan as a whole, so match selects nothing"
        findings.error_at_key(_MATCH, "no-effect", message, "remove it, and let the expression choose")
    elif kind is RuleKind.DISRUPTION_BUDGET and spec.match.pods != PodMatchPart():
        message = "a DisruptionBudget is about nodes, so match.pods selects nothing"
        findings.error_at_key((*_MATCH, "pods"), "no-effect", message, "remove it, and let candidate read node.pods")


def _selection(spec: RuleSpecPart, findings: ObjectFindings) -> Selection:
    match = spec.match
    return Selection(
        node_pools=tuple(match.node_pools.names),
        node_pool_labels=_requirements(match.node_pools.selector, (*_MATCH, "nodePools", "selector"), findings),
        namespaces=tuple(match.pods.namespaces),
        pod_labels=_requirements(match.pods.selector, (*_MATCH, "pods", "selector"), findings),
    )


def _requirements(selector: SelectorPart, path: Path, findings: ObjectFindings) -> tuple[Requirement, ...]:
    demanded = [Requirement(key, Operator.IN, (value,)) for key, value in selector.match_labels.items()]
    for index, part in enumerate(selector.match_expressions):
        at = (*path, "matchExpressions", index)
        needs_values = part.operator in (Operator.IN, Operator.NOT_IN)
        if needs_values != bool(part.values) and not findings.lacks_part(at):
            wants = "needs a value at least" if needs_values else "takes no values"
            findings.error(at, "bad-selector", f"{part.key} {part.operator.value} {wants}", "correct the values")
        demanded.append(Requirement(part.key, part.operator, tuple(part.values)))
    return tuple(demanded)


def pool_position(read: RuleRead, index: int) -> Position:
    """Where the rule names a node pool."""
    return read.findings.at((*_MATCH, "nodePools", "names", index))


def pool_selector_position(read: RuleRead) -> Position:
    """Where the rule selects node pools by label."""
    return read.findings.at_key((*_MATCH, "nodePools", "selector"))
