"""Karpenter's own resource definitions, and every demand that they make, found by reading them with a program.

The definitions stand beside the checkout where they are at hand; they are no part of this project.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from attrs import field, frozen

FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "karpenter-crds"
POOL, CLASS = "NodePool", "EC2NodeClass"
_FILES = {POOL: "karpenter.sh_nodepools.yaml", CLASS: "karpenter.k8s.aws_ec2nodeclasses.yaml"}
# In a path: the items of a list, and the values of a map.
ITEM, VALUE = "[]", "{}"
Path_ = tuple[str, ...]

_KEYWORDS = (
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "format",
)


@frozen
class Demand:
    """One thing that the definition asks of the part at ``path``: ``keyword`` is the schema's, ``value`` its value.

    Beside the schema's own keywords: ``unknown`` (no field but the known ones), ``set`` (no item twice), and ``rule``,
    whose value is the message of a CEL validation.
    """

    kind: str
    path: Path_
    keyword: str
    value: Any = field(hash=False)
    schema: Mapping[str, Any] = field(eq=False, repr=False)

    def __str__(self) -> str:
        return f"{self.kind} {'.'.join(self.path)} {self.keyword} {self.value}"


def definition(kind: str) -> dict[str, Any]:
    """The whole CustomResourceDefinition."""
    read: dict[str, Any] = yaml.safe_load((FOLDER / _FILES[kind]).read_text())
    return read


def demands(kind: str) -> list[Demand]:
    """Every demand that the definition makes of an object's spec."""
    whole = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return list(_demands(kind, whole["properties"]["spec"], ("spec",)))


def _demands(kind: str, schema: Mapping[str, Any], path: Path_) -> Iterator[Demand]:
    def demand(keyword: str, value: Any) -> Demand:
        return Demand(kind, path, keyword, value, schema)

    if "type" in schema:
        yield demand("type", schema["type"])
    yield from (
        demand(keyword, schema[keyword]) for keyword in _KEYWORDS if keyword in schema and _holds(keyword, schema)
    )
    if schema.get("type") == "string" and "maxLength" in schema:
        yield demand("maxLength", schema["maxLength"])
    properties = schema.get("properties", {})
    # A default is filled in before anything is missed.
    yield from (demand("required", name) for name in schema.get("required", ()) if "default" not in properties[name])
    if schema.get("x-kubernetes-list-type") == "set":
        yield demand("set", True)
    if properties and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield demand("unknown", True)
    yield from (demand("rule", rule["message"]) for rule in schema.get("x-kubernetes-validations", ()))
    for name, part in properties.items():
        yield from _demands(kind, part, (*path, name))
    for step, key in ((ITEM, "items"), (VALUE, "additionalProperties")):
        if isinstance(schema.get(key), Mapping):
            yield from _demands(kind, schema[key], (*path, step))


def _holds(keyword: str, schema: Mapping[str, Any]) -> bool:
    """A pattern on a list says nothing: the definition has one, on a requirement's values."""
    return keyword != "pattern" or schema.get("type") != "array"


def at(value: Any, path: Path_) -> Any:
    """The part at a path, of a list its first item and of a map its first value; None where there is none."""
    for step in path:
        value = _inside(value, step)
        if value is None:
            return None
    return value


def _inside(value: Any, step: str) -> Any:
    if step == ITEM:
        return value[0] if isinstance(value, list) and value else None
    if not isinstance(value, dict):
        return None
    return next(iter(value.values()), None) if step == VALUE else value.get(step)


class Absent:
    """What ``put`` takes for: remove the part."""


def put(base: Mapping[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    """A copy with the part at the path replaced, or removed; what is missing above it is made."""
    made: dict[str, Any] = copy.deepcopy(dict(base))
    above: Any = made
    for step in path[:-1]:
        inside = _inside(above, step)
        if inside is None:
            assert isinstance(above, dict), f"nothing stands at {path}"
            inside = above[step] = {}
        above = inside
    last: Any = 0 if path[-1] == ITEM else next(iter(above)) if path[-1] == VALUE else path[-1]
    if value is Absent:
        del above[last]
    else:
        above[last] = copy.deepcopy(value)
    return made
