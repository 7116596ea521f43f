"""A rule's parameters are typed where it declares them, and get their values from the stack."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.model.diagnostic import InvalidInput
from engine.model.environment import Environment
from engine.model.rule import Enforcement
from engine.policy.stack_file import load_environment
from tests.policy.rules.rule_texts import FILE, GUARDRAIL, LIMIT, REQUIREMENT, load_rules, rule_findings, rule_of, told
from tests.policy.test_stack_file import SMALL

STACK = "stacks/Pulumi.prod.yaml"


def stack(more: str) -> Environment:
    """The environment of a stack file that says ``more``, with the tags that the node class selects."""
    environment = load_environment("prod", STACK, (SMALL + more).encode())
    return evolve(environment, tags={"karpenter.sh/discovery": "prod"})


def declared(declaration: str, expression: str = "cost.hourlyAfter <= 1.0 || params.x == params.x") -> str:
    text = GUARDRAIL.replace("mostPerHour: {type: double, default: 500}", f"x: {{{declaration}}}")
    return text.replace("cost.hourlyAfter <= params.mostPerHour", expression)


def values(more: str) -> dict[str, object]:
    return dict(rule_of(REQUIREMENT, stack(more)).params)


def test_a_value_of_the_stack_wins_over_the_default() -> None:
    assert rule_of(REQUIREMENT).params == {"minMemory": 80}
    assert values("") == {"minMemory": 80}
    assert values("  nodewright:params: {gold-on-nvlink: {minMemory: 24}}\n") == {"minMemory": 24}


def test_values_have_the_declared_type() -> None:
    double = rule_of(GUARDRAIL, stack("  nodewright:params: {spend: {mostPerHour: 12}}\n")).params["mostPerHour"]
    assert (double, type(double)) == (12.0, float)
    for declaration, value in (
        ("type: bool, default: true", True),
        ("type: int, default: -3", -3),
        ("type: double, default: 0.5", 0.5),
        ('type: string, default: "12"', "12"),
    ):
        found = rule_of(declared(declaration)).params["x"]
        assert (found, type(found)) == (value, type(value))


def test_values_change_the_digest() -> None:
    before = load_rules(REQUIREMENT, environment=stack("")).digest
    assert load_rules(REQUIREMENT, environment=stack("  nodewright:enforcement: {}\n")).digest == before
    same = stack("  nodewright:params: {gold-on-nvlink: {minMemory: 80}}\n")
    assert load_rules(REQUIREMENT, environment=same).digest == before
    other = stack("  nodewright:params: {gold-on-nvlink: {minMemory: 81}}\n")
    assert load_rules(REQUIREMENT, environment=other).digest != before
    warning = stack("  nodewright:enforcement: {gold-on-nvlink: warn}\n")
    assert load_rules(REQUIREMENT, environment=warning).digest != before


def test_a_stack_overrides_enforcement() -> None:
    environment = stack("  nodewright:enforcement: {gold-on-nvlink: audit}\n")
    policy = load_rules(REQUIREMENT, GUARDRAIL, environment=environment)
    assert [rule.enforcement for rule in policy.rules] == [Enforcement.AUDIT, Enforcement.DENY]


def test_a_stack_names_the_engine() -> None:
    assert load_rules().cel_engine == "cel-expr"
    assert stack("").cel_engine == "cel-expr"
    assert stack("  nodewright:celEngine: cel-python\n").cel_engine == "cel-python"
    with pytest.raises(InvalidInput) as caught:
        stack("  nodewright:celEngine: cel-pyhton\n")
    (found,) = caught.value.diagnostics
    assert (found.rule, found.position.line, found.hint) == ("unknown-value", 11, "did you mean cel-python?")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("  nodewright:params: {gold-on-nvlink: {minMemory: 15}}\n", "11:51 param-out-of-range"),
        ("  nodewright:params: {gold-on-nvlink: {minMemory: 142}}\n", "11:51 param-out-of-range"),
        ("  nodewright:params: {gold-on-nvlink: {minMemory: 80.0}}\n", "11:51 param-type"),
        ('  nodewright:params: {gold-on-nvlink: {minMemory: "80"}}\n', "11:51 param-type"),
        ("  nodewright:params: {gold-on-nvlink: {minMemory: true}}\n", "11:51 param-type"),
        ("  nodewright:params: {gold-on-nvlink: {minMemroy: 80}}\n", "11:51 unknown-param"),
        ("  nodewright:params: {gold-on-nvlnk: {}}\n", "11:23 unknown-rule"),
        ("  nodewright:params: {gold-on-nvlnk: {minMemory: 80}}\n", "11:23 unknown-rule"),
        ("  nodewright:enforcement: {gold: warn}\n", "11:28 unknown-rule"),
    ],
)
def test_a_value_that_does_not_fit_is_told_where_the_stack_file_has_it(more: str, expected: str) -> None:
    found = rule_findings(REQUIREMENT, environment=stack(more))
    assert [f"{each.position.file}:{each.position.line}:{each.position.column} {each.rule}" for each in found] == [
        f"{STACK}:{expected}"
    ]


def test_an_enforcement_that_there_is_not_does_not_load() -> None:
    with pytest.raises(InvalidInput) as caught:
        stack("  nodewright:enforcement: {gold-on-nvlink: warm}\n")
    assert [(each.rule, each.hint) for each in caught.value.diagnostics] == [("unknown-value", "did you mean warn?")]


def test_a_parameter_without_any_value_is_told_where_it_is_declared() -> None:
    bare = REQUIREMENT.replace("default: 80, ", "")
    assert told(bare) == [f"{FILE}:16:5 missing-param"]
    (found,) = rule_findings(bare, environment=stack(""))
    assert found.hint == "add default, or set nodewright:params: {gold-on-nvlink: {minMemory: …}}"
    given = stack("  nodewright:params: {gold-on-nvlink: {minMemory: 24}}\n")
    assert rule_of(bare, given).params == {"minMemory": 24}


@pytest.mark.parametrize(
    ("declaration", "rules"),
    [
        ("type: integer, default: 1", ["unknown-value"]),
        ("default: 1", ["missing-field"]),
        ("type: int, default: 1.5", ["param-type"]),
        ("type: int, default: yes", ["param-type"]),
        ("type: int, default: 9223372036854775808", ["param-type"]),
        ("type: int, default: [1]", ["param-type"]),
        ("type: double, default: .inf", ["param-type"]),
        ("type: string, default: 12", ["param-type"]),
        ("type: bool, default: 'true'", ["param-type"]),
        ("type: int, default: 1, min: 2", ["param-out-of-range"]),
        ("type: int, default: 3, max: 2", ["param-out-of-range"]),
        ("type: int, default: 3, min: 4, max: 2", ["contradiction"]),
        ("type: int, default: 3, min: a", ["param-type"]),
        ("type: string, default: a, min: 1", ["contradiction"]),
        ("type: bool, default: true, max: true", ["contradiction"]),
        ("type: int, default: 3, minimum: 1", ["unknown-field"]),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(declaration: str, rules: list[str]) -> None:
    found = rule_findings(declared(declaration))
    assert [each.rule for each in found] == rules
    assert {each.position.line for each in found} == {7}


def test_a_parameter_that_nothing_reads_is_a_warning() -> None:
    (found,) = rule_findings(declared("type: int, default: 1", "cost.hourlyAfter <= 1.0"))
    assert (found.severity.value, found.rule, found.position.line) == ("warning", "unused-param", 3)


def test_an_expression_knows_its_parameters_types() -> None:
    (found,) = rule_findings(LIMIT.replace("night: {type: int", "night: {type: double"))
    assert found.rule == "cel-no-overload"
    (found,) = rule_findings(LIMIT.replace("params.night", "params.nigth"))
    assert (found.rule, found.hint) == ("cel-unknown-name", "did you mean night?")
