"""``nodewright schema``: for editors JSON, for people tables, for the docs the reference page word for word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.cli.main import app
from engine.policy.json_schema import KINDS, json_schema
from engine.report.schema_markdown import reference_markdown

REFERENCE = Path(__file__).parents[2] / "docs" / "policy-reference.md"


def schema(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["schema", *arguments], env={"NO_COLOR": "1"})


def test_the_reference_page_is_what_the_schema_says() -> None:
    assert REFERENCE.read_text() == reference_markdown(), "run: nodewright schema --markdown > docs/policy-reference.md"
    assert schema("--markdown").stdout == reference_markdown()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kinds_schema_is_printed_as_json_in_whatever_case_it_is_asked_for(kind: object) -> None:
    ended = schema(kind.name.lower())  # type: ignore[attr-defined]
    assert ended.exit_code == 0
    assert json.loads(ended.stdout) == json_schema(kind)  # type: ignore[arg-type]


def test_all_kinds_have_one_schema_together() -> None:
    assert set(json.loads(schema("all").stdout)["properties"]["kind"]["enum"]) == {kind.name for kind in KINDS}


def test_without_a_kind_the_kinds_are_listed_and_what_rules_may_read() -> None:
    ended = schema()
    assert ended.exit_code == 0
    assert all(kind.name in ended.stdout for kind in KINDS)
    assert "gpuMemoryGiB" in ended.stdout


def test_the_variables_are_told_to_programs_as_well() -> None:
    told = json.loads(schema("variables", "-o", "json").stdout)
    assert told["schema"] == "nodewright.dev/variables/v1"
    assert told["records"]["pod"]["tolerations"]["type"] == "list<toleration>"
    assert "node" in told["parts"]["DisruptionBudget"]["candidate"]["variables"]


def test_a_kind_that_is_not_there_is_told_with_the_one_that_was_meant() -> None:
    ended = schema("guardrails")
    assert ended.exit_code == 1
    assert "did you mean Guardrail?" in ended.stderr
