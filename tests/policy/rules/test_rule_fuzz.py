"""Whatever a rule file holds, loading it ends in rules that make sense or in findings: never in a traceback."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.model.diagnostic import InvalidInput, Severity
from engine.model.policy import Policy
from engine.model.rule import Guardrail, LimitRule, RequirementRule
from engine.policy.rules.compiled import bundle_of, expressions_of
from tests.policy.rules.rule_texts import CALENDAR, RULES, load_rules
from tests.policy.test_fuzz import mutated

QUICK = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
TEXTS = [*RULES.values(), CALENDAR.replace("office", "fuzzed").replace("business", "day").replace("quiet", "night")]
FRAGMENTS = [
    *["pod.gpus", "pod.labels", "instanceType.price", "params.minMemory", "variables.alone", "windows.business", "now"],
    *["&&", "||", "!", "==", "<", "+", "?", ":", "(", ")", "[", "]", "{", "}", ".", ",", "in", "has(", ".all(x, "],
    *[".map(pod, ", "1", "2.5", "9" * 30, '"a"', "'", '"', "`", "//", "\n", "é", "variables", "variables.", "true"],
]


def load(text: str) -> Policy | None:
    """The policy, where the text loads; of findings only that they are told at a place of a file."""
    try:
        return load_rules(text)
    except InvalidInput as caught:
        invalid = caught
    assert any(each.severity is Severity.ERROR for each in invalid.diagnostics)
    for each in invalid.diagnostics:
        assert each.position.line >= 1
        assert each.position.column >= 1
        assert each.message
        assert each.position.file
    return None


def assert_makes_sense(policy: Policy) -> None:
    """What every rule that loads has."""
    bundle = bundle_of(policy)
    compiled = [*bundle.requirement_rules, *bundle.limit_rules, *bundle.disruption_budgets, *bundle.guardrails]
    assert [each.rule for each in sorted(compiled, key=lambda each: each.rule.name)] == list(policy.rules)
    for each in compiled:
        rule = each.rule
        assert rule.name
        assert rule.message.strip()
        assert set(each.programs) == {part for part, _, _ in expressions_of(rule)}
        assert not isinstance(rule, RequirementRule) or (rule.require is None) != (rule.prefer is None)
        assert not isinstance(rule, Guardrail) or rule.blocks
        assert not isinstance(rule, LimitRule) or "ceiling" in each.programs
        assert set(rule.match.node_pools) <= {pool.name for pool in policy.node_pools}


@QUICK
@given(st.sampled_from([yaml.safe_load(text) for text in TEXTS]).flatmap(mutated))
def test_a_rule_with_parts_changed_at_random_loads_whole_or_not_at_all(text: str) -> None:
    policy = load(text)
    if policy is not None:
        assert_makes_sense(policy)


@QUICK
@given(st.sampled_from(TEXTS), st.data())
def test_a_rule_file_with_characters_changed_at_random_loads_whole_or_not_at_all(
    text: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 5))
    into = data.draw(st.text(alphabet="ab:-{}[]&*!|>'\"%@`#,?()=.<\\/ \n\t01é", max_size=5))
    policy = load(text[:at] + into + text[at + length :])
    if policy is not None:
        assert_makes_sense(policy)


@QUICK
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=8).map(" ".join), st.booleans())
def test_an_expression_of_random_words_loads_whole_or_not_at_all(expression: str, in_variable: bool) -> None:
    document: dict[str, Any] = yaml.safe_load(RULES["RequirementRule"])
    if in_variable:
        document["spec"]["variables"][0]["expression"] = expression
    else:
        document["spec"]["require"] = expression
    policy = load(yaml.safe_dump(document, width=10_000, allow_unicode=True))
    if policy is not None:
        assert_makes_sense(policy)
