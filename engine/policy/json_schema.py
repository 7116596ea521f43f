"""JSON Schemas of the kinds of policy, for editors: made from the very parts that read the files.

A schema knows shapes, one field at a time. What hangs together over several fields, and all that is inside of CEL, only
``nodewright check`` knows.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping

from attrs import frozen
from pydantic import BeforeValidator, PlainValidator

from engine.model.rule import RuleKind
from engine.policy.facts.schema import RULE_PARTS, RulePart
from engine.policy.json_schema_texts import hover_text, text_of
from engine.policy.node_class_schema import NodeClassPart
from engine.policy.node_pool_schema import NodePoolPart
from engine.policy.rules.calendar import CalendarPart
from engine.policy.rules.parts import (
    DisruptionBudgetPart,
    GuardrailPart,
    LimitRulePart,
    NodePoolMatchPart,
    RequirementRulePart,
    SelectorPart,
)
from engine.policy.schema import Part
from engine.policy.shapes import Shape, shape_of
from engine.policy.testing.parts import PolicyTestPart

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# The schema of a file that holds any of the kinds.
ALL = "all"

Json = dict[str, typing.Any]

_DEFINITIONS = "#/$defs/"
# Parts that may be written in short: a list of pools is their names, a plain map of labels is matchLabels.
_IN_SHORT: Mapping[type[Part], Json] = {
    NodePoolMatchPart: {"type": "array", "items": {"type": "string"}},
    SelectorPart: {
        "type": "object",
        "propertyNames": {"not": {"enum": ["matchLabels", "matchExpressions"]}},
        "additionalProperties": {"type": "string"},
    },
}
_PLAIN_TYPES: Mapping[object, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


@frozen
class PolicyKind:
    """A kind of policy document and the part that reads it; ``says`` is one line for people."""

    name: str
    api_version: str
    part: type[Part]
    says: str


_OURS = "nodewright.dev/v1alpha1"
KINDS = (
    PolicyKind("RequirementRule", _OURS, RequirementRulePart, "which instance types a pod may get, or likes"),
    PolicyKind("LimitRule", _OURS, LimitRulePart, "a ceiling for GPUs, nodes, CPU, memory or dollars an hour"),
    PolicyKind("DisruptionBudget", _OURS, DisruptionBudgetPart, "which nodes may go, when, and how many"),
    PolicyKind("Guardrail", _OURS, GuardrailPart, "what a finished plan must hold to"),
    PolicyKind("Calendar", _OURS, CalendarPart, "named windows that rules read"),
    PolicyKind("PolicyTest", _OURS, PolicyTestPart, "tests beside rules: what each says of given facts"),
    PolicyKind("NodePool", "karpenter.sh/v1", NodePoolPart, "Karpenter's, with the fields that Nodewright implements"),
    PolicyKind("EC2NodeClass", "karpenter.k8s.aws/v1", NodeClassPart, "Karpenter's, likewise"),
)


def kind_named(name: str) -> PolicyKind | None:
    """The kind of that name, in whatever case it is written."""
    return next((kind for kind in KINDS if kind.name.lower() == name.lower()), None)


def json_schema(kind: PolicyKind) -> Json:
    """The kind's schema, draft 2020-12."""
    definitions: Json = {}
    document = _document(kind, definitions)
    return {"$schema": DIALECT, "title": kind.name, **document, "$defs": dict(sorted(definitions.items()))}


def json_schema_of_all() -> Json:
    """One schema for files that hold documents of any kind: ``kind`` tells which of them holds."""
    definitions: Json = {}
    for kind in KINDS:
        definitions[kind.name] = _document(kind, definitions)
    branches = [
        {
            "if": {"properties": {"kind": {"const": kind.name}}, "required": ["kind"]},
            "then": {"$ref": f"{_DEFINITIONS}{kind.name}"},
        }
        for kind in KINDS
    ]
    return {
        "$schema": DIALECT,
        "title": "Nodewright policy",
        "type": "object",
        "properties": {"kind": {"enum": [kind.name for kind in KINDS]}},
        "required": ["apiVersion", "kind"],
        "allOf": branches,
        "$defs": dict(sorted(definitions.items())),
    }


def _document(kind: PolicyKind, definitions: Json) -> Json:
    shape = _of_part(kind.part, definitions)
    shape["properties"]["apiVersion"] = {"const": kind.api_version}
    shape["properties"]["kind"] = {"const": kind.name}
    rule_kind = next((each for each in RuleKind if each.value == kind.name), None)
    if rule_kind is not None:
        spec = definitions[shape["properties"]["spec"]["$ref"].removeprefix(_DEFINITIONS)]
        _tell_variables(spec["properties"], RULE_PARTS[rule_kind])
    return {"description": f"{kind.name}: {kind.says}.", **shape}


def _tell_variables(properties: Json, parts: Iterable[RulePart]) -> None:
    """What an editor shows over a field that holds CEL: what it is to come to, and all that it may read."""
    for part in parts:
        properties[part.name] = {**properties[part.name], "description": hover_text(part)}


def _of_part(part: type[Part], definitions: Json) -> Json:
    properties: Json = {}
    required: list[str] = []
    for name, field in part.model_fields.items():
        shape = _of(field.annotation, field.metadata, definitions)
        if shape is None:
            continue
        written = field.alias or name
        told = text_of(part.__name__, written)
        properties[written] = {**shape, "description": told} if told else shape
        if field.is_required():
            required.append(written)
    always = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **always, "additionalProperties": False}


def _of(annotation: object, metadata: Iterable[object], definitions: Json) -> Json | None:
    """The shape of one field; None for a field that is known and not implemented, so that an editor marks it."""
    for each in metadata:
        if isinstance(each, PlainValidator):
            return dict(_marked(each.func))
        if isinstance(each, BeforeValidator):
            return None
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _of(inner[0], inner[1:], definitions)
    if origin in (typing.Union, types.UnionType):
        (option,) = [each for each in inner if each is not type(None)]
        return _of(option, (), definitions)
    if origin is list:
        return {"type": "array", "items": _of(inner[0], (), definitions)}
    if origin is dict:
        return {
            "type": "object",
            "propertyNames": _of(inner[0], (), definitions),
            "additionalProperties": _of(inner[1], (), definitions),
        }
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return _referred(annotation, definitions)
    return {"type": _PLAIN_TYPES[annotation]} if annotation in _PLAIN_TYPES else {}


def _referred(part: type[Part], definitions: Json) -> Json:
    name = part.__name__
    if name not in definitions:
        definitions[name] = {}
        whole = _of_part(part, definitions)
        definitions[name] = {"anyOf": [whole, _IN_SHORT[part]]} if part in _IN_SHORT else whole
    return {"$ref": f"{_DEFINITIONS}{name}"}


def _marked(read: object) -> Shape:
    shape = shape_of(read)
    if shape is None:
        raise LookupError(f"{read} does not say what it takes: mark it as shaped")
    return shape
