"""The shape of a NodePool file (karpenter.sh/v1, and v1beta1 once its spellings are made modern).

Bounds and defaults are those of Karpenter's own resource definition.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import Field, PlainValidator, ValidationInfo

from engine.model.constraint import Operator, TaintEffect
from engine.model.policy import ConsolidationPolicy
from engine.policy.fields import (
    Amount,
    AnnotationKey,
    Count,
    Duration,
    DurationOrNever,
    LabelKey,
    LabelValue,
    NotImplementedField,
    ObjectName,
    PassedOver,
    PointInTime,
    Text,
    one_of,
    one_text_of,
    read_duration,
    read_text,
    refuse,
    whole,
)
from engine.policy.located import Scalar
from engine.policy.schema import Part
from engine.policy.shapes import shaped, text_like

_MONTH = timedelta(hours=720)
_BUDGET_NODES = re.compile(r"(100|[0-9]{1,2})%|[0-9]{1,18}")
_WINDOW = re.compile(r"([0-9]{1,6}h([0-9]{1,7}m)?|[0-9]{1,7}m)(0s)?")
# The last one is beyond Karpenter: its API knows no budget for expiry.
_REASONS = ("Underutilized", "Empty", "Drifted", "Expired")


@shaped(text_like(_BUDGET_NODES.pattern))
def _read_budget_nodes(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    if not _BUDGET_NODES.fullmatch(text):
        refuse("bad-budget", f"{text!r} is no number of nodes", 'write "5", or "10%" of the pool, at most "100%"')
    return text


@shaped(text_like(_WINDOW.pattern))
def _read_window(value: object) -> timedelta:
    """How long a budget holds: hours and minutes, as Karpenter has it."""
    window = read_duration(value)
    text = value.text if isinstance(value, Scalar) else ""
    if not _WINDOW.fullmatch(text):
        refuse("bad-duration", f"{text!r} is no budget's duration", "write hours and minutes, such as 8h or 1h30m")
    return window


OperatorField = Annotated[Operator, PlainValidator(one_of(Operator, "operator", "unknown-operator"))]
EffectField = Annotated[TaintEffect, PlainValidator(one_of(TaintEffect, "taint effect", "unknown-effect"))]
ConsolidationPolicyField = Annotated[
    ConsolidationPolicy, PlainValidator(one_of(ConsolidationPolicy, "consolidation policy", "unknown-value"))
]

ReasonField = Annotated[str, PlainValidator(one_text_of(_REASONS, "reason that a budget limits", "unknown-value"))]


class ObjectMetaPart(Part):
    """A Kubernetes object's metadata; what the API server adds is passed over."""

    name: ObjectName
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    annotations: dict[AnnotationKey, Text] = Field(default_factory=dict)
    namespace: PassedOver = None
    uid: PassedOver = None
    resource_version: PassedOver = None
    generation: PassedOver = None
    creation_timestamp: PassedOver = None
    deletion_timestamp: PassedOver = None
    deletion_grace_period_seconds: PassedOver = None
    managed_fields: PassedOver = None
    owner_references: PassedOver = None
    finalizers: PassedOver = None
    self_link: PassedOver = None


class RequirementPart(Part):
    key: LabelKey
    operator: OperatorField
    values: list[LabelValue] = Field(default_factory=list)
    min_values: Annotated[int, PlainValidator(whole(1, 50))] | None = None


class TaintPart(Part):
    key: LabelKey
    value: LabelValue = ""
    effect: EffectField
    time_added: PointInTime | None = None


class NodeClassRefPart(Part):
    group: Text
    kind: Text
    name: ObjectName


class NodeTemplateMetaPart(Part):
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    annotations: dict[AnnotationKey, Text] = Field(default_factory=dict)


class NodeTemplateSpecPart(Part):
    hints_by_field: ClassVar[dict[str, str]] = {
        "disruption": "disruption stands beside template, as spec.disruption",
        "limits": "limits stand beside template, as spec.limits",
        "labels": "labels stand under spec.template.metadata",
        "kubelet": "in karpenter.sh/v1 the kubelet's settings stand in the EC2NodeClass, as spec.kubelet",
    }
    node_class_ref: NodeClassRefPart | None = None
    requirements: list[RequirementPart]
    taints: list[TaintPart] = Field(default_factory=list)
    startup_taints: list[TaintPart] = Field(default_factory=list)
    expire_after: DurationOrNever = _MONTH
    termination_grace_period: Duration | None = None
    resources: NotImplementedField = None


class NodeTemplatePart(Part):
    metadata: NodeTemplateMetaPart = NodeTemplateMetaPart()
    spec: NodeTemplateSpecPart


class BudgetPart(Part):
    nodes: Annotated[str, PlainValidator(_read_budget_nodes)] = "10%"
    reasons: list[ReasonField] = Field(default_factory=list)
    schedule: Text | None = None
    duration: Annotated[timedelta, PlainValidator(_read_window)] | None = None


class DisruptionPart(Part):
    hints_by_field: ClassVar[dict[str, str]] = {
        "budget": "did you mean budgets, a list?",
        "terminationGracePeriod": "it stands under spec.template.spec",
    }
    consolidation_policy: ConsolidationPolicyField = ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED
    consolidate_after: DurationOrNever = timedelta(0)
    budgets: list[BudgetPart] | None = None


class NodePoolSpecPart(Part):
    hints_by_field: ClassVar[dict[str, str]] = {
        "requirements": "requirements stand under spec.template.spec",
        "taints": "taints stand under spec.template.spec",
        "nodeClassRef": "nodeClassRef stands under spec.template.spec",
        "labels": "labels of nodes stand under spec.template.metadata",
    }
    template: NodeTemplatePart
    disruption: DisruptionPart = DisruptionPart()
    limits: dict[Text, Amount] = Field(default_factory=dict)
    weight: Annotated[int, PlainValidator(whole(1, 100))] | None = None
    replicas: Count | None = None


class NodePoolPart(Part):
    api_version: Text
    kind: Text
    metadata: ObjectMetaPart
    spec: NodePoolSpecPart
    status: PassedOver = None
