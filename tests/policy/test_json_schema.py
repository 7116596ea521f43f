"""The JSON Schemas for editors: they take what the check takes as it should be written, and mark slips of the pen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from engine.policy.json_schema import KINDS, PolicyKind, json_schema, json_schema_of_all, kind_named
from tests.policy.rules.rule_texts import BUDGET, CALENDAR, GUARDRAIL, LIMIT, REQUIREMENT
from tests.policy.test_node_classes import EVERYTHING as EVERY_CLASS_FIELD
from tests.policy.test_pool_values import EVERYTHING as EVERY_POOL_FIELD
from tests.policy.testing.case_texts import case
from tests.policy.texts import CLASS, POOL

TEXTS = {
    "RequirementRule": REQUIREMENT,
    "LimitRule": LIMIT,
    "DisruptionBudget": BUDGET,
    "Guardrail": GUARDRAIL,
    "Calendar": CALENDAR,
    "PolicyTest": case("gold-on-nvlink", "ceiling 8", "{pod: {labels.tier: gold}, windows: [business]}"),
    "NodePool": POOL,
    "EC2NodeClass": CLASS,
}
SHIPPED = sorted((Path(__file__).parents[2] / "policies").rglob("*.yaml"))


def schema_of(name: str) -> dict[str, Any]:
    kind = kind_named(name)
    assert kind is not None
    return json_schema(kind)


def problems(schema: dict[str, Any], text: str) -> list[str]:
    found = Draft202012Validator(schema).iter_errors(yaml.safe_load(text))
    return [f"{each.json_path}: {each.message}" for each in found]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_schema_is_one_of_draft_2020_12(kind: PolicyKind) -> None:
    Draft202012Validator.check_schema(json_schema(kind))


def test_every_kind_has_a_text_that_its_schema_takes() -> None:
    assert {kind.name for kind in KINDS} == set(TEXTS)


@pytest.mark.parametrize("kind", TEXTS)
def test_what_the_check_takes_the_schema_takes(kind: str) -> None:
    assert problems(schema_of(kind), TEXTS[kind]) == []
    assert problems(json_schema_of_all(), TEXTS[kind]) == []


@pytest.mark.parametrize(("kind", "text"), [("NodePool", EVERY_POOL_FIELD), ("EC2NodeClass", EVERY_CLASS_FIELD)])
def test_every_field_that_is_implemented_is_taken(kind: str, text: str) -> None:
    assert problems(schema_of(kind), text) == []


@pytest.mark.parametrize(
    ("kind", "right", "older"),
    [
        ("NodePool", "karpenter.sh/v1", "karpenter.sh/v1beta1"),
        ("NodePool", "  disruption:", "  disruption:\n    consolidationPolicy: WhenUnderutilized"),
        ("NodePool", "team: search", "team: 7"),
        ("NodePool", 'nvidia.com/gpu: "8"', 'nvidia.com/gpu: "8"\n  weight:'),
    ],
)
def test_older_spellings_and_oddities_that_the_check_reads_with_a_warning_are_marked(
    kind: str, right: str, older: str
) -> None:
    text = TEXTS[kind].replace(right, older)
    assert text != TEXTS[kind]
    assert problems(schema_of(kind), text) != []


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_the_schema_of_all_kinds_takes_what_the_project_ships(file: Path) -> None:
    documents = [each for each in yaml.safe_load_all(file.read_text()) if each]
    kinds = {kind.name for kind in KINDS}
    for document in documents:
        if document["kind"] in kinds:
            assert list(Draft202012Validator(json_schema_of_all()).iter_errors(document)) == []


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "place"),
    [
        ("RequirementRule", "  require: |-", "  requires: |-", "$.spec"),
        ("RequirementRule", "type: int", "type: integer", "$.spec.params.minMemory.type"),
        ("RequirementRule", "minMemory:", "min-memory:", "$.spec.params"),
        ("LimitRule", "resource: gpus", "resource: gpu", "$.spec.resource"),
        ("LimitRule", "nodewright.dev/v1alpha1", "nodewright.dev/v1", "$.apiVersion"),
        ("DisruptionBudget", "budget: 2", "budget: [2]", "$.spec.budget"),
        ("DisruptionBudget", "Underutilized", "UnderUtilized", "$.spec.reasons[0]"),
        ("Guardrail", "blocks: [add]", "blocks: add", "$.spec.blocks"),
        ("Guardrail", "  message: the plan costs too much\n", "", "$.spec"),
        ("PolicyTest", "ceiling 8", "ceiling", "$.spec.cases[0].expect"),
        ("Calendar", "duration: 8h", "duration: 8 hours", "$.spec.windows[0].duration"),
        ("NodePool", "consolidateAfter: 5m", "consolidateAfter: soon", "$.spec.disruption.consolidateAfter"),
        ("NodePool", "operator: In", "operator: in", "$.spec.template.spec.requirements[0].operator"),
        ("NodePool", "taints:", "taint:", "$.spec.template.spec"),
        ("EC2NodeClass", "al2023@latest", "al2023", "$.spec.amiSelectorTerms[0].alias"),
    ],
)
def test_a_slip_of_the_pen_is_marked_where_it_is(kind: str, right: str, wrong: str, place: str) -> None:
    assert right in TEXTS[kind]
    told = problems(schema_of(kind), TEXTS[kind].replace(right, wrong))
    assert place in {each.partition(": ")[0] for each in told}
    assert problems(json_schema_of_all(), TEXTS[kind].replace(right, wrong)) != []


def test_a_field_that_is_not_implemented_is_marked() -> None:
    text = CLASS + "  context: reserved\n"
    assert any("context" in each for each in problems(schema_of("EC2NodeClass"), text))


def test_both_spellings_of_a_selector_are_taken() -> None:
    spelt_out = REQUIREMENT.replace("nodePools: [gpu]", "nodePools: {names: [gpu], selector: {matchLabels: {a: b}}}")
    assert spelt_out != REQUIREMENT
    assert problems(schema_of("RequirementRule"), spelt_out) == []


def test_an_editor_is_told_what_an_expression_may_read() -> None:
    spec = schema_of("DisruptionBudget")["$defs"]["BudgetSpecPart"]["properties"]
    assert "gpusUsed int" in spec["candidate"]["description"]
    assert "node:" not in spec["budget"]["description"].replace("nodePool:", "")
    assert "windows:" in spec["budget"]["description"]


def test_an_unknown_kind_is_marked_by_the_schema_of_all() -> None:
    assert problems(json_schema_of_all(), POOL.replace("NodePool", "Nodepool")) != []


def test_schemas_are_json_and_always_the_same() -> None:
    assert json.dumps(json_schema_of_all()) == json.dumps(json_schema_of_all())
