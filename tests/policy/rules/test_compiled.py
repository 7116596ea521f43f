"""Compiled rules: what they match, when they apply, what they tell, and that an error never stands for a value."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from engine.model.constraint import Operator, Requirement
from engine.model.diagnostic import InvalidInput
from engine.model.policy import Policy
from engine.model.rule import Expression, Guardrail, RuleKind, Selection
from engine.policy.cel.port import Answer
from engine.policy.cel.types import Scalar
from engine.policy.facts.schema import params_record
from engine.policy.rules.compiled import CompiledRule, bundle_of, expressions_of
from tests import builders
from tests.policy.rules.rule_texts import BUDGET, GUARDRAIL, LIMIT, REQUIREMENT, RULES, load_rules


class Fixed:
    """A program that always comes to the same."""

    source, result, reads = "", Scalar.BOOL, frozenset[str]()

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def evaluate(self, facts: object) -> Answer:
        return self._answer


TRUE, FALSE, ERROR = Fixed(Answer(True)), Fixed(Answer(False)), Fixed(Answer(error="no such key"))


def compiled(text: str) -> CompiledRule:
    bundle = bundle_of(load_rules(text))
    (rule,) = (*bundle.requirement_rules, *bundle.limit_rules, *bundle.disruption_budgets, *bundle.guardrails)
    return rule


def with_programs(**programs: Any) -> CompiledRule:
    return CompiledRule(load_rules(GUARDRAIL).rules[0], (), programs, {})


def conditioned(*programs: Any) -> CompiledRule:
    return CompiledRule(load_rules(GUARDRAIL).rules[0], tuple(("c", each) for each in programs), {}, {})


def matching(**match: Any) -> CompiledRule:
    return CompiledRule(evolve(load_rules(GUARDRAIL).rules[0], match=Selection(**match)), (), {}, {})


def test_a_bundle_holds_each_kind_in_name_order() -> None:
    second = GUARDRAIL.replace("name: spend", "name: another")
    bundle = bundle_of(load_rules(*RULES.values(), second))
    assert [each.rule.name for each in bundle.requirement_rules] == ["gold-on-nvlink"]
    assert [each.rule.name for each in bundle.limit_rules] == ["team-cap"]
    assert [each.rule.name for each in bundle.disruption_budgets] == ["slow-drain"]
    assert [each.rule.name for each in bundle.guardrails] == ["another", "spend"]
    assert bundle.engine.name == "cel-expr"


def test_every_rule_compiles_on_either_engine_alike() -> None:
    second = builders.environment(cel_engine="cel-python", tags={"karpenter.sh/discovery": "prod"})
    first, other = load_rules(*RULES.values()), load_rules(*RULES.values(), environment=second)
    assert (first.rules, first.cel_engine, other.cel_engine) == (other.rules, "cel-expr", "cel-python")
    assert first.digest != other.digest
    one, two = bundle_of(first), bundle_of(other)
    assert two.engine.name == "cel-python"
    for mine, theirs in zip(
        one.requirement_rules + one.guardrails, two.requirement_rules + two.guardrails, strict=True
    ):
        assert {name: program.reads for name, program in mine.programs.items()} == {
            name: program.reads for name, program in theirs.programs.items()
        }


def test_programs_are_by_yaml_field() -> None:
    assert {name: program.result for name, program in compiled(REQUIREMENT).programs.items()} == {
        "require": Scalar.BOOL,
        "messageExpression": Scalar.STRING,
    }
    assert {name: program.result for name, program in compiled(LIMIT).programs.items()} == {
        "groupBy": Scalar.STRING,
        "ceiling": Scalar.INT,
    }
    assert {name: program.result for name, program in compiled(BUDGET).programs.items()} == {
        "candidate": Scalar.BOOL,
        "budget": Scalar.INT,
        "maxPerWindow": Scalar.INT,
    }
    assert list(compiled(GUARDRAIL).programs) == ["expression"]


@pytest.mark.parametrize(("ceiling", "result"), [("100", Scalar.INT), ("100.5", Scalar.DOUBLE)])
def test_a_ceiling_of_dollars_may_be_either_kind_of_number(ceiling: str, result: Scalar) -> None:
    text = LIMIT.replace("resource: gpus", "resource: usdPerHour")
    text = text[: text.index("  params:")] + f"  ceiling: {ceiling}\n  message: dollars\n"
    assert compiled(text).programs["ceiling"].result is result


def test_a_condition_may_read_what_the_rule_reads_and_is_a_bool() -> None:
    rule = compiled(REQUIREMENT)
    assert [(name, program.result) for name, program in rule.conditions] == [("asks-for-a-gpu", Scalar.BOOL)]


def test_offsets_of_a_program_lead_back_to_the_file() -> None:
    rule = compiled(REQUIREMENT)
    source, program = rule.sources["require"], rule.programs["require"]
    assert source.text == program.source
    inside, outside = program.source.index("pod.gpus"), program.source.index("instanceType.nvlink")
    assert [(source.position(at).line, source.position(at).column) for at in (inside, outside)] == [(18, 33), (21, 30)]


def test_a_bundle_is_compiled_once_for_each_policy_and_engine() -> None:
    policy = load_rules(*RULES.values())
    assert bundle_of(policy) is bundle_of(load_rules(*RULES.values()))
    assert bundle_of(load_rules(GUARDRAIL)) is not bundle_of(policy)


def test_policies_made_by_hand_are_not_mixed_up() -> None:
    policy = load_rules(GUARDRAIL)
    one = Policy((), (), rules=policy.rules)
    other = Policy((), (), rules=tuple(evolve(rule, message="another") for rule in policy.rules))
    assert [each.rule.message for each in bundle_of(one).guardrails] == ["the plan costs too much"]
    assert [each.rule.message for each in bundle_of(other).guardrails] == ["another"]


def test_rules_that_do_not_compile_are_no_bundle() -> None:
    (rule,) = load_rules(GUARDRAIL).rules
    assert isinstance(rule, Guardrail)
    broken = evolve(rule, expression=Expression("cost.oops", rule.position))
    with pytest.raises(InvalidInput) as caught:
        bundle_of(Policy((), (), rules=(broken,)))
    assert [each.rule for each in caught.value.diagnostics] == ["cel-unknown-name"]


# --- match


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({}, True),
        ({"namespaces": ("serving", "batch")}, True),
        ({"namespaces": ("batch",)}, False),
        ({"pod_labels": (Requirement("tier", Operator.IN, ("gold",)),)}, True),
        ({"pod_labels": (Requirement("tier", Operator.NOT_IN, ("gold",)),)}, False),
        ({"pod_labels": (Requirement("team", Operator.EXISTS),)}, False),
        ({"pod_labels": (Requirement("team", Operator.DOES_NOT_EXIST),)}, True),
        ({"pod_labels": (Requirement("tier", Operator.EXISTS), Requirement("team", Operator.EXISTS))}, False),
        ({"node_pools": ("elsewhere",)}, True),
    ],
)
def test_a_pod_is_matched_by_namespace_and_labels_alone(match: dict[str, Any], expected: bool) -> None:
    pod = evolve(builders.pod(namespace="serving"), labels={"tier": "gold"})
    assert matching(**match).matches_pod(pod) is expected


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({}, True),
        ({"node_pools": ("gpu", "other")}, True),
        ({"node_pools": ("other",)}, False),
        ({"node_pool_labels": (Requirement("team", Operator.IN, ("search",)),)}, True),
        ({"node_pool_labels": (Requirement("team", Operator.IN, ("ads",)),)}, False),
        ({"node_pools": ("other",), "node_pool_labels": (Requirement("team", Operator.EXISTS),)}, False),
        ({"namespaces": ("elsewhere",)}, True),
    ],
)
def test_a_pool_is_matched_by_name_and_labels_alone(match: dict[str, Any], expected: bool) -> None:
    (pool,) = load_rules().node_pools
    assert matching(**match).matches_pool(pool) is expected


# --- errors


def test_conditions_must_all_hold_and_one_that_errs_counts_as_matched() -> None:
    assert conditioned().applies({})
    assert conditioned(TRUE, ERROR).applies({})
    assert conditioned(ERROR).applies({})
    assert not conditioned(TRUE, FALSE).applies({})
    assert not conditioned(ERROR, FALSE).applies({})


def test_a_message_that_errs_is_empty_or_too_long_falls_back_to_the_text() -> None:
    static = "the plan costs too much"
    assert with_programs().told({}) == static
    assert with_programs(messageExpression=Fixed(Answer("it costs 12"))).told({}) == "it costs 12"
    for answer in (Answer(error="no such key"), Answer(""), Answer("x" * 5_121), Answer("é" * 2_561), Answer(5)):
        assert with_programs(messageExpression=Fixed(answer)).told({}) == static


def test_a_message_tells_the_values_that_decided() -> None:
    bundle = bundle_of(load_rules(REQUIREMENT))
    (rule,) = bundle.requirement_rules
    params = bundle.engine.bind(params_record(rule.rule.params), {"minMemory": 80})
    assert rule.told({"params": params}) == "needs GPUs of 80 GiB"


def test_every_kind_tells_its_expressions() -> None:
    rules = load_rules(*RULES.values()).rules
    assert {rule.kind: [part for part, _, _ in expressions_of(rule)] for rule in rules} == {
        RuleKind.REQUIREMENT_RULE: ["require", "messageExpression"],
        RuleKind.LIMIT_RULE: ["groupBy", "ceiling"],
        RuleKind.DISRUPTION_BUDGET: ["candidate", "budget", "maxPerWindow"],
        RuleKind.GUARDRAIL: ["expression"],
    }
