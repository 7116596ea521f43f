"""The shape of the rule files: four kinds of nodewright.dev/v1alpha1, and the envelope that they share."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, ValidationInfo

from engine.model.constraint import Operator
from engine.model.reason import DisruptionReason
from engine.model.rule import ActionClass, Enforcement, Expression, LimitedResource
from engine.policy.fields import (
    Flag,
    LabelKey,
    LabelValue,
    ObjectName,
    Text,
    matching,
    one_of,
    one_text_of,
    read_text,
    refuse,
)
from engine.policy.located import Scalar, describe
from engine.policy.node_pool_schema import ObjectMetaPart
from engine.policy.rules.placing import read_expression
from engine.policy.schema import Part
from engine.policy.shapes import shaped, text_like

# What a person may choose to do to a node; what happens to it by itself asks no budget.
VOLUNTARY = (
    DisruptionReason.EMPTY,
    DisruptionReason.UNDERUTILIZED,
    DisruptionReason.DRIFTED,
    DisruptionReason.EXPIRED,
)
_IDENTIFIER = r"[A-Za-z][A-Za-z0-9_]{0,62}"
# CEL's own words (its specification, Syntax) cannot follow a dot in every engine.
_CEL_WORDS = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_MOST_WEIGHT = 1_000_000
_LONGEST_MESSAGE = 5_120


def is_identifier(name: str) -> bool:
    """Whether expressions could use the name after a dot."""
    return re.fullmatch(_IDENTIFIER, name) is not None and name not in _CEL_WORDS


@shaped(text_like(_IDENTIFIER))
def read_identifier(value: object, info: ValidationInfo) -> str:
    """A name that expressions use after a dot."""
    name = matching(_IDENTIFIER, "name for an expression to use", "maxNodes: letters, digits and _")(value, info)
    if name in _CEL_WORDS:
        refuse("bad-name", f"{name} is a word of CEL's own, so no expression could use it", "choose another name")
    return name


@shaped({"type": "string", "minLength": 1, "maxLength": _LONGEST_MESSAGE})
def _read_message(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info).strip()
    if not text:
        refuse("bad-value", "a rule's message tells people what it wants, and is empty", "write one sentence")
    if len(text) > _LONGEST_MESSAGE:
        refuse("too-long", f"the message has {len(text):,} characters; {_LONGEST_MESSAGE:,} are the most")
    return text


@shaped({"type": "number", "exclusiveMinimum": 0, "maximum": _MOST_WEIGHT})
def _read_weight(value: object) -> float:
    number = value.value if isinstance(value, Scalar) else None
    if not isinstance(number, int | float) or isinstance(number, bool):
        refuse("wrong-type", f"expected a number, found {describe(value)}")
    if number == 0:
        refuse("no-effect", "a weight of 0 lets the rule prefer nothing", "write 1, or remove the rule")
    if not 0 < number <= _MOST_WEIGHT:
        refuse("out-of-range", f"{number} is no weight", f"a weight is above 0, and {_MOST_WEIGHT:,} at most")
    return float(number)


@shaped({"enum": list(_SELECTOR_OPERATORS)})
def _read_selector_operator(value: object) -> Operator:
    return Operator(one_text_of(_SELECTOR_OPERATORS, "operator of a label selector", "unknown-operator")(value))


Identifier = Annotated[str, PlainValidator(read_identifier)]
ExpressionField = Annotated[Expression, PlainValidator(read_expression)]
EnforcementField = Annotated[Enforcement, PlainValidator(one_of(Enforcement, "enforcement", "unknown-value"))]
ReasonField = Annotated[
    str, PlainValidator(one_text_of([each.value for each in VOLUNTARY], "reason that a budget limits", "unknown-value"))
]


class MatchExpressionPart(Part):
    key: LabelKey
    operator: Annotated[Operator, PlainValidator(_read_selector_operator)]
    values: list[LabelValue] = Field(default_factory=list)


class SelectorPart(Part):
    match_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    match_expressions: list[MatchExpressionPart] = Field(default_factory=list)


class NodePoolMatchPart(Part):
    names: list[ObjectName] = Field(default_factory=list)
    selector: SelectorPart = SelectorPart()


class PodMatchPart(Part):
    namespaces: list[ObjectName] = Field(default_factory=list)
    selector: SelectorPart = SelectorPart()


class MatchPart(Part):
    hints_by_field: ClassVar[dict[str, str]] = {"reasons": "reasons stand under spec of a DisruptionBudget"}
    node_pools: NodePoolMatchPart = NodePoolMatchPart()
    pods: PodMatchPart = PodMatchPart()


class ConditionPart(Part):
    name: ObjectName
    expression: ExpressionField


class VariablePart(Part):
    name: Identifier
    expression: ExpressionField


class ParameterPart(Part):
    """``default``, ``min`` and ``max`` stay as they are written until the type is known."""

    type: Annotated[str, PlainValidator(one_text_of(("bool", "int", "double", "string"), "type", "unknown-value"))]
    default: Any = None
    min: Any = None
    max: Any = None


class RuleSpecPart(Part):
    """The envelope."""

    match: MatchPart = MatchPart()
    match_conditions: list[ConditionPart] = Field(default_factory=list)
    params: dict[Identifier, ParameterPart] = Field(default_factory=dict)
    variables: list[VariablePart] = Field(default_factory=list)
    enforcement: EnforcementField = Enforcement.DENY
    message: Annotated[str, PlainValidator(_read_message)]
    message_expression: ExpressionField | None = None
    remedy: Text = ""
    docs: Text = ""
    portable: Flag = True


class RequirementSpecPart(RuleSpecPart):
    require: ExpressionField | None = None
    prefer: ExpressionField | None = None
    weight: Annotated[float, PlainValidator(_read_weight)] | None = None
    time_sensitive: Flag = False


_MAY_READ_TIME: dict[str, str] = {"timeSensitive": "remove it: only a RequirementRule must ask before it reads time"}


class LimitSpecPart(RuleSpecPart):
    hints_by_field: ClassVar[dict[str, str]] = _MAY_READ_TIME
    resource: Annotated[LimitedResource, PlainValidator(one_of(LimitedResource, "resource", "unknown-value"))]
    group_by: ExpressionField | None = None
    ceiling: ExpressionField


class BudgetSpecPart(RuleSpecPart):
    hints_by_field: ClassVar[dict[str, str]] = _MAY_READ_TIME
    reasons: list[ReasonField] = Field(default_factory=list)
    windows: list[Identifier] = Field(default_factory=list)
    outside: Annotated[str, PlainValidator(one_text_of(("block", "ignore"), "choice", "unknown-value"))] | None = None
    candidate: ExpressionField | None = None
    budget: ExpressionField | None = None
    max_per_window: ExpressionField | None = None


class GuardrailSpecPart(RuleSpecPart):
    hints_by_field: ClassVar[dict[str, str]] = _MAY_READ_TIME
    blocks: list[Annotated[ActionClass, PlainValidator(one_of(ActionClass, "class of actions", "unknown-value"))]]
    expression: ExpressionField


class RuleDocumentPart(Part):
    api_version: Text
    kind: Text
    metadata: ObjectMetaPart


class RequirementRulePart(RuleDocumentPart):
    spec: RequirementSpecPart


class LimitRulePart(RuleDocumentPart):
    spec: LimitSpecPart


class DisruptionBudgetPart(RuleDocumentPart):
    spec: BudgetSpecPart


class GuardrailPart(RuleDocumentPart):
    spec: GuardrailSpecPart
