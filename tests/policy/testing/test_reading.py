"""What is wrong with a test file is told at its place, and nothing in one brings a traceback."""

from __future__ import annotations

import pytest

from tests.policy.rules.rule_texts import BUDGET, GUARDRAIL, LIMIT, REQUIREMENT
from tests.policy.testing.case_texts import HEAD, case, judged

RULES = (REQUIREMENT, LIMIT, BUDGET, GUARDRAIL)


@pytest.mark.parametrize(
    ("rule", "expect", "given", "told"),
    [
        (
            "slow-drain",
            "kept",
            "{windows: [bussiness]}",
            "9:25 unknown-window: there is no window 'bussiness'",
        ),
        ("slow-drain", "kept", "{node: {ages: 3h}}", "9:22 bad-fact: node.ages: node has no field ages"),
        (
            "slow-drain",
            "kept",
            "{node: {age: long}}",
            "9:22 bad-fact: node.age: expected duration, found the string 'long'",
        ),
        (
            "slow-drain",
            "kept",
            "{node: {pods: [{gpus: 1}, {gpus: x}]}}",
            "9:41 bad-fact: node.pods[1].gpus: expected int, found the string 'x'",
        ),
        (
            "slow-drain",
            "kept",
            "{node: {age: }}",
            "9:22 bad-fact: expected a value, found nothing: a fact is always there",
        ),
        ("slow-drain", "kept", "{reason: Tired}", "9:15 unknown-value: reason is none that a budget limits: 'Tired'"),
        ("slow-drain", "kept", "{nodePool: {use: gpus}}", "9:31 unknown-node-pool: there is no pool 'gpus'"),
        (
            "slow-drain",
            "kept",
            "{node: {nodePool: other}}",
            "9:15 contradiction: the node is of the pool other, and the case is about pool",
        ),
        (
            "slow-drain",
            "kept",
            "{pod: {gpus: 1}}",
            "9:15 no-effect: DisruptionBudget slow-drain does not read pod, so giving it proves nothing",
        ),
        ("slow-drain", "eligible", "{}", "8:15 bad-value: a DisruptionBudget never says eligible"),
        (
            "gold-on-nvlink",
            "excluded",
            "{instanceType: {use: p9.large}}",
            "9:35 unknown-instance-type: the catalog of test does not sell 'p9.large'",
        ),
        (
            "gold-on-nvlink",
            "excluded",
            "{instanceType: {use: p5.48xlarge, capacityType: rented}}",
            "9:35 unknown-instance-type: the catalog of test does not sell 'p5.48xlarge' as rented",
        ),
        (
            "gold-on-nvlink",
            "excluded",
            "{params: {minMem: 1}}",
            "9:24 bad-fact: params.minMem: params has no field minMem",
        ),
        ("team-cap", "ceiling 8", "{now: noon}", "9:15 bad-fact: now: expected timestamp, found the string 'noon'"),
        ("spend", "blocks", "[]", "9:14 wrong-type: spec.cases[0].given is a map, found a list"),
        (
            "spend",
            "blocks",
            "{cost: 5}",
            "9:21 wrong-type: spec.cases[0].given.cost: expected a map of fields, found the number 5",
        ),
        (
            "spend",
            "sometimes",
            "{}",
            "8:15 unknown-value: spec.cases[0].expect: 'sometimes' is nothing that a rule says",
        ),
        ("spend", "ceiling", "{}", "8:15 bad-value: spec.cases[0].expect: ceiling needs one number, found ''"),
        ("spend", "ceiling 1e9", "{}", "8:15 bad-value: spec.cases[0].expect: ceiling needs one number, found '1e9'"),
        (
            "spend",
            "blocks 3",
            "{}",
            "8:15 bad-value: spec.cases[0].expect: blocks stands alone, and here is '3' after it",
        ),
    ],
)
def test_what_is_wrong_with_a_case_is_told_at_its_place(rule: str, expect: str, given: str, told: str) -> None:
    found = judged(case(rule, expect, given), *RULES)
    assert found.told == [told]
    assert not any(result.passes for result in found.results)


def test_a_default_of_the_file_is_told_where_it_stands_once() -> None:
    tests = f"""{HEAD}spec:
  defaults:
    cost: {{hourlyAfter: dear}}
  cases:
    - {{name: one, rule: spend, expect: blocks}}
    - {{name: two, rule: spend, expect: passes, given: {{cost: {{hourlyBefore: 1}}}}}}
"""
    assert judged(tests, *RULES).told == ["6:12 bad-fact: cost.hourlyAfter: expected double, found the string 'dear'"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("spec: {}", "no-effect"),
        ("spec: {cases: []}", "no-effect"),
        ("spec: {cases: [{rule: a, expect: kept}]}", "missing-field"),
        (
            "spec: {cases: [{name: a, rule: spend, expect: blocks}, {name: a, rule: spend, expect: passes}]}",
            "duplicate-name",
        ),
        ("spec: {cases: [{name: a, rule: spend, expects: blocks}]}", "unknown-field"),
        ("spec: {cases: [{name: a, rule: spend, expect: blocks, message: ''}]}", "bad-value"),
        ("spec: {cases: [{name: a, rule: spend, expect: passes, message: too}]}", "no-effect"),
        ("spec: {cases: [{name: a, rule: spend, expect: blocks, alongside: [spend]}]}", "duplicate-value"),
        ("spec: {cases: [{name: a, rule: spend, expect: blocks, alongside: [team-cap]}]}", "bad-value"),
        ("spec: {scenarios: [{name: a, snapshot: s.json, expect: {}}]}", "no-effect"),
        ("spec: {scenarios: [{name: a, snapshot: s.json, expect: {messages: ['']}}]}", "bad-value"),
        ("spec: {scenarios: [{name: a, snapshot: s.json, expect: {addedUsdPerHour: -1}}]}", "bad-value"),
        ("spec: {scenarios: [{name: a, snapshot: s.json, at: noon, expect: {launches: 1}}]}", "bad-value"),
    ],
)
def test_a_test_that_cannot_prove_anything_is_refused(body: str, rule: str) -> None:
    assert [each.rule for each in judged(HEAD + body, *RULES).findings] == [rule]


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b"[]",
        b"a: &a [*a]",
        b"kind: [",
        b"kind: PolicyTest\nspec: 5",
        b"kind: NodePool",
        HEAD.encode() + b"spec: {cases: {name: a}}",
        HEAD.encode() + b"spec: {cases: [5, null, [], {}]}",
        HEAD.encode() + b"spec: {defaults: [], cases: [{name: a, rule: spend, expect: blocks}]}",
        case("spend", "blocks", '{cost: {"": 1, ".": 2, "hourlyAfter.": 3, ".hourlyAfter": 4}}').encode(),
        case(
            "team-cap", "ceiling 8", '{pod: {labels: [1], "labels.": x, labels.team: [a], "requests.cpu": .nan}}'
        ).encode(),
        case("gold-on-nvlink", "error", '{pod: {name: "\\ud800", labels: {"\\udfff": x}}}').encode(),
        case("gold-on-nvlink", "error", "{pod: {tolerations: [5, [], {key: {}}], waiting: 99999999999h}}").encode(),
        case("slow-drain", "kept", "{node: {age: 2562047h, pods: {a: b}}, windows: {a: b}}").encode(),
        case("slow-drain", "kept", "{windows: [[business], {a: b}, null, 5]}").encode(),
        case("slow-drain", "kept", "{nodePool: {use: [gpu]}, instanceType: {use: {}}}").encode(),
        case("no\\u0000rule", "kept").encode(),
        case("spend", "blocks", "{plan: {launches: [" + "{gpus: 1}, " * 2000 + "]}}").encode(),
        case("spend", "blocks", "{params: {mostPerHour: .inf}, cost: {hourlyAfter: .inf}}").encode(),
        case("spend", "blocks", "{cost: {hourlyAfter: 1" + "0" * 400 + "}}").encode(),
        case("spend", "blocks", '{now: "0001-01-01T00:00:00Z"}').encode(),
        case("team-cap", "ceiling 8", '{now: "9999-12-31T23:59:59Z"}').encode(),
        case("spend", "blocks", "{cluster: {nodes: 99999999999999999999}, now: 2026-01-01}").encode(),
    ],
)
def test_a_hostile_file_is_told_and_passes_nothing(content: bytes) -> None:
    found = judged(content, *RULES)
    assert not any(result.passes for result in found.results)
    assert found.findings or all(result.problem for result in found.results)
    assert found.findings or found.results
