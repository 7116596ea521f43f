"""Cases by number: a file changed at random, or a rule with an expression written at random."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import yaml
from attrs import frozen

from engine.catalog.build import build_catalog
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.policy import Policy
from engine.model.rule import ParameterValue, RuleKind
from engine.observe.catalog_source import read_catalog_data
from engine.policy.cel.types import Scalar
from engine.policy.facts.schema import variables_for
from engine.policy.load import load_policy
from engine.policy.stack_file import load_environment
from tools.fuzzing.documents import STACK, DocumentFuzz, Dumper, Shipped
from tools.fuzzing.expressions import ExpressionFuzz

DOCUMENT, EXPRESSION = "document", "expression"

Name = tuple[str, int]
"""A kind of case and its number."""


@frozen
class Case:
    """``changed`` is the file that is unlike what is shipped; ``beside`` are good ones."""

    kind: str
    changed: tuple[str, bytes]
    beside: tuple[tuple[str, bytes], ...] = ()


@cache
def shipped() -> Shipped:
    return Shipped()


@cache
def sandbox() -> Environment:
    return load_environment("sandbox", STACK, shipped().stack)


@cache
def catalog() -> Catalog:
    environment = sandbox()
    return build_catalog(environment.region, environment.network.zones, read_catalog_data(), environment.pricing)


@cache
def policy() -> Policy:
    return load_policy(list(shipped().policies.items()), sandbox())


def made_case(name: Name, seed: int) -> Case:
    """The case of that name. Pure: it depends on nothing else."""
    kind, number = name
    rng = Random(f"{seed} {kind} {number}")
    if kind == EXPRESSION:
        return _expression_case(rng)
    variables = variables_for(RuleKind.REQUIREMENT_RULE, "require", {}, ("business",), time_sensitive=True)
    fuzz = DocumentFuzz(rng, shipped(), lambda: ExpressionFuzz(rng, variables, 0.05).expression(Scalar.BOOL, 3))
    changed = fuzz.file()
    beside = shipped().beside(changed[0])
    return Case(kind, changed, tuple(beside.items()))


_PARAMS = {
    "count": {"type": "int", "default": 3},
    "share": {"type": "double", "default": 0.5},
    "word": {"type": "string", "default": "gold"},
    "on": {"type": "bool", "default": True},
}
_VALUES: Mapping[str, ParameterValue] = {"count": 3, "share": 0.5, "word": "gold", "on": True}
# Kind, part, what it comes to, what else the rule needs.
_SLOTS: Sequence[tuple[RuleKind, str, Scalar, dict[str, Any]]] = (
    (RuleKind.REQUIREMENT_RULE, "require", Scalar.BOOL, {}),
    (RuleKind.REQUIREMENT_RULE, "prefer", Scalar.DOUBLE, {}),
    (RuleKind.LIMIT_RULE, "groupBy", Scalar.STRING, {"resource": "gpus", "ceiling": "5"}),
    (RuleKind.LIMIT_RULE, "ceiling", Scalar.INT, {"resource": "gpus"}),
    (RuleKind.LIMIT_RULE, "ceiling", Scalar.DOUBLE, {"resource": "usdPerHour", "groupBy": "'a'"}),
    (RuleKind.DISRUPTION_BUDGET, "candidate", Scalar.BOOL, {}),
    (RuleKind.DISRUPTION_BUDGET, "budget", Scalar.INT, {}),
    (RuleKind.DISRUPTION_BUDGET, "maxPerWindow", Scalar.INT, {"windows": ["business"]}),
    (RuleKind.GUARDRAIL, "expression", Scalar.BOOL, {"blocks": ["add"]}),
    (RuleKind.REQUIREMENT_RULE, "matchConditions", Scalar.BOOL, {"require": "pod.gpus > 0"}),
    (RuleKind.REQUIREMENT_RULE, "messageExpression", Scalar.STRING, {"require": "pod.gpus > 0"}),
    (RuleKind.DISRUPTION_BUDGET, "messageExpression", Scalar.STRING, {"budget": "1"}),
)
_WINDOWS = ("business", "weeknights", "weekend")


_HERE = "EXPRESSION"


def _quoted(text: str, rng: Random) -> str:
    """The text as one YAML value: as a block of its own lines where it can be, else in quotes."""
    if rng.random() < 0.5 and text.isprintable():
        return f"'{text.replace(chr(39), chr(39) * 2)}'"
    if rng.random() < 0.5 and text.replace("\n", "").isprintable() and text.strip() and text[0] not in " \n":
        lines = text.split("\n")
        return "|-\n" + "\n".join(" " * 10 + line for line in lines)
    return json.dumps(text, ensure_ascii=rng.random() < 0.5 and all(ord(char) < 2**16 for char in text))


def _expression_case(rng: Random) -> Case:
    kind, part, result, needed = rng.choice(_SLOTS)
    spec: dict[str, Any] = {"message": "no", "params": _PARAMS, "portable": rng.random() < 0.7, **needed}
    time_sensitive = kind is RuleKind.REQUIREMENT_RULE and rng.random() < 0.5
    if time_sensitive:
        spec["timeSensitive"] = True
    grouped = "groupBy" in needed
    variables = variables_for(kind, part, _VALUES, _WINDOWS, time_sensitive=time_sensitive, grouped=grouped)
    fuzz = ExpressionFuzz(rng, variables, rng.choice((0.0, 0.0, 0.01, 0.03, 0.15)))
    text = fuzz.expression(result, rng.choice((1, 2, 3, 3, 4, 6)))
    here = _HERE
    if rng.random() < 0.15:
        spec["variables"] = [{"name": "it", "expression": here}]
        here = rng.choice(("variables.it", "variables.it // read", "(variables.it)"))
    spec[part] = [{"name": "one", "expression": here}] if part == "matchConditions" else here
    document = {
        "apiVersion": "nodewright.dev/v1alpha1",
        "kind": kind.value,
        "metadata": {"name": "fuzzed"},
        "spec": spec,
    }
    written = yaml.dump(document, Dumper=Dumper).replace(_HERE, _quoted(text, rng))
    calendar = "policies/calendars/office.yaml"
    return Case(
        EXPRESSION,
        ("fuzzed.yaml", written.encode("utf-8", "surrogatepass")),
        ((calendar, shipped().policies[calendar]),),
    )
