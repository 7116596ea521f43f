"""What cases say of rules: every kind and every outcome, on both engines, and no pass without proof."""

from __future__ import annotations

import pytest

from engine.model.diagnostic import Position
from tests.builders import environment
from tests.policy.rules.rule_texts import BUDGET, GUARDRAIL, LIMIT, REQUIREMENT
from tests.policy.testing.case_texts import ENGINES, HEAD, case, judged

GOLD = "pod: {namespace: serving, labels.tier: gold, gpus: 2}, nodePool: {use: gpu}"
PREFER = """\
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: likes-spot}
spec:
  prefer: 'instanceType.capacityType == "spot" ? 0.1 + 0.2 : 0.0'
  weight: 5
  message: spot is liked
"""
NO_SMALL = """\
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: no-small}
spec:
  require: instanceType.gpuCount >= 8
  message: eight GPUs at least
"""
DOLLARS = """\
apiVersion: nodewright.dev/v1alpha1
kind: LimitRule
metadata: {name: dollars}
spec:
  match: {nodePools: [gpu]}
  resource: usdPerHour
  ceiling: 4.3 + 0.05
  message: a pool costs so much at most
"""
LABELLED = """\
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: labelled}
spec:
  require: pod.labels.tier == "gold"
  message: only gold
"""
ALL = (REQUIREMENT, LIMIT, BUDGET, GUARDRAIL, PREFER, NO_SMALL, DOLLARS, LABELLED)

PASSING = [
    ("gold-on-nvlink", "eligible", f"{{{GOLD}, instanceType: {{use: p5.48xlarge, nvlink: true}}}}", ""),
    ("gold-on-nvlink", "excluded", f"{{{GOLD}, instanceType: {{use: g5.12xlarge}}}}", "message: 80 GiB"),
    ("gold-on-nvlink", "excluded", f"{{{GOLD}, instanceType: {{gpuMemoryGiB: 90}}, params: {{minMemory: 91}}}}", ""),
    (
        "gold-on-nvlink",
        "eligible",
        f"{{{GOLD}, instanceType: {{use: g5.12xlarge, gpuMemoryGiB: 80, nvlink: true}}}}",
        "",
    ),
    ("gold-on-nvlink", "not-matched", "{pod: {namespace: serving, labels.tier: silver}, nodePool: {use: gpu}}", ""),
    ("gold-on-nvlink", "not-matched", "{pod: {labels: {tier: gold}, namespace: serving}, nodePool: {name: other}}", ""),
    ("labelled", "error", "{}", ""),
    ("labelled", "eligible", "{pod: {labels.tier: gold}}", ""),
    ("likes-spot", "score 0.3", "{instanceType: {use: p5.48xlarge, capacityType: spot}}", ""),
    ("likes-spot", "score 0", "{instanceType: {use: p5.48xlarge}}", ""),
    ("team-cap", "ceiling 8", "{windows: [business]}", ""),
    ("team-cap", "ceiling 32", "{windows: []}", "message: so many GPUs"),
    ("team-cap", "ceiling 8", '{now: "2026-11-30T15:00:00Z"}', ""),
    ("team-cap", "ceiling 32", '{now: "2026-11-29T15:00:00Z"}', ""),
    ("dollars", "ceiling 4.35", "{nodePool: {use: gpu}}", ""),
    ("slow-drain", "candidate", "{windows: [business], node: {age: 3h}}", ""),
    ("slow-drain", "kept", "{windows: [business], node: {age: 1h30m}}", "message: leave slowly"),
    ("slow-drain", "kept", "{node: {age: 3h}}", ""),
    ("slow-drain", "allowed 2", "{windows: [business]}", ""),
    ("slow-drain", "allowed 0", "{windows: [quiet]}", ""),
    ("slow-drain", "not-matched", "{reason: Empty}", ""),
    ("spend", "passes", "{cost: {hourlyAfter: 500}}", ""),
    ("spend", "blocks", "{cost: {hourlyAfter: 500.01}}", "message: too much"),
    ("spend", "blocks", "{cost: {hourlyAfter: 3}, params: {mostPerHour: 2}}", ""),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("rule", "expect", "given", "more"), PASSING)
def test_each_outcome_of_each_kind_of_rule_can_be_held(
    rule: str, expect: str, given: str, more: str, engine: str
) -> None:
    found = judged(case(rule, expect, given, more), *ALL, engine=engine)
    assert (found.told, found.problem) == ([], "")


@pytest.mark.parametrize(
    ("rule", "expect", "given", "more", "problem"),
    [
        (
            "gold-on-nvlink",
            "eligible",
            f"{{{GOLD}, instanceType: {{use: g5.12xlarge}}}}",
            "",
            "expected eligible, and gold-on-nvlink says excluded",
        ),
        (
            "labelled",
            "excluded",
            "{}",
            "",
            'expected excluded, and labelled says error: there is no key "tier"',
        ),
        ("team-cap", "ceiling 9", "{windows: [business]}", "", "expected ceiling 9, and team-cap says ceiling 8"),
        (
            "dollars",
            "ceiling 4.36",
            "{nodePool: {use: gpu}}",
            "",
            "expected ceiling 4.36, and dollars says ceiling 4.35",
        ),
        (
            "spend",
            "blocks",
            "{cost: {hourlyAfter: 501}}",
            "message: far too much",
            "the message lacks 'far too much': 'the plan costs too much'",
        ),
        (
            "slow-drain",
            "allowed 1",
            "{}",
            "",
            "expected allowed 1, and slow-drain says allowed 0: none of its windows is open: business",
        ),
    ],
)
def test_a_case_that_fails_says_what_was_expected_and_what_the_rule_says(
    rule: str, expect: str, given: str, more: str, problem: str
) -> None:
    found = judged(case(rule, expect, given, more), *ALL)
    assert (found.told, found.problem) == ([], problem)


@pytest.mark.parametrize(
    ("rule", "expect", "given", "problem"),
    [
        ("gold-on-nvlinks", "eligible", "{}", "there is no rule 'gold-on-nvlinks': did you mean gold-on-nvlink?"),
        ("gold-on-nvlinks", "not-matched", "{}", "there is no rule 'gold-on-nvlinks': did you mean gold-on-nvlink?"),
        (
            "gold-on-nvlink",
            "excluded",
            "{pod: {namespace: serving, labels.tier: silver}, nodePool: {use: gpu}}",
            "the rule gold-on-nvlink was not asked: match does not select the pod serving/pod"
            " with the labels tier=silver",
        ),
        (
            "gold-on-nvlink",
            "excluded",
            "{pod: {namespace: serving, labels.tier: gold}}",
            "the rule gold-on-nvlink was not asked: match does not select the pool pool; give nodePool: {use: gpu}",
        ),
        (
            "gold-on-nvlink",
            "eligible",
            "{pod: {namespace: serving, labels.tier: gold, gpus: 0}, nodePool: {use: gpu}}",
            "the rule gold-on-nvlink was not asked: one of its matchConditions is false",
        ),
        (
            "slow-drain",
            "candidate",
            "{reason: Empty, windows: [business]}",
            "the rule slow-drain was not asked: it is not about the reason Empty",
        ),
    ],
)
def test_a_case_whose_rule_is_not_there_or_not_asked_fails(rule: str, expect: str, given: str, problem: str) -> None:
    assert judged(case(rule, expect, given), *ALL).problem == problem


def test_a_budget_of_numbers_alone_says_how_they_are_asked() -> None:
    numbers = BUDGET.replace('  candidate: node.age > duration("2h")\n', "")
    found = judged(case("slow-drain", "kept", "{reason: Drifted, windows: [business]}"), numbers)
    assert found.problem == (
        "expected kept, and slow-drain says candidate: it has no candidate, and allowed N asks how many may go"
    )


def test_a_rule_that_was_not_asked_has_no_case_of_its_own() -> None:
    found = judged(case("gold-on-nvlink", "not-matched"), *ALL)
    assert (found.problem, found.coverage["gold-on-nvlink"].cases) == ("", 0)


@pytest.mark.parametrize(
    ("expect", "given", "alongside", "problem"),
    [
        ("excluded", "{instanceType: {use: g5.12xlarge}}", "labelled-2", ""),
        (
            "excluded",
            "{instanceType: {use: g5.12xlarge}, pod: {labels.tier: bronze}}",
            "labelled",
            "no-small is not what decides: labelled says excluded too",
        ),
        ("excluded", "{instanceType: {use: g5.12xlarge}, pod: {labels.tier: gold}}", "labelled", ""),
        (
            "eligible",
            "{instanceType: {use: p5.48xlarge}, pod: {labels.tier: bronze}}",
            "labelled",
            "no-small is not what decides: labelled says excluded",
        ),
        ("eligible", "{instanceType: {use: p5.48xlarge}, pod: {labels.tier: gold}}", "labelled", ""),
    ],
)
def test_of_several_rules_the_named_one_has_to_decide(expect: str, given: str, alongside: str, problem: str) -> None:
    second = LABELLED.replace("labelled", "labelled-2").replace('pod.labels.tier == "gold"', "pod.gpus >= 0")
    found = judged(case("no-small", expect, given, f"alongside: [{alongside}]"), *ALL, second)
    assert (found.told, found.problem) == ([], problem)


def test_a_case_lays_its_facts_over_those_of_the_file() -> None:
    tests = f"""{HEAD}spec:
  defaults:
    pod: {{namespace: serving, labels.tier: gold, labels.team: a, gpus: 2}}
    nodePool: {{use: gpu}}
    instanceType: {{use: p5.48xlarge, nvlink: false}}
    cost: {{hourlyAfter: 1}}
  cases:
    - {{name: of the file, rule: gold-on-nvlink, expect: excluded}}
    - {{name: another type, rule: gold-on-nvlink, expect: eligible, given: {{instanceType: {{nvlink: true}}}}}}
    - {{name: alone, rule: gold-on-nvlink, expect: eligible, given: {{pod: {{gpus: 1}}}}}}
    - {{name: other labels, rule: gold-on-nvlink, expect: not-matched, given: {{pod: {{labels: {{team: a}}}}}}}}
"""
    found = judged(tests, *ALL)
    assert found.told == []
    assert [each.problem for each in found.results] == ["", "", "", ""]


def test_a_case_that_fails_shows_the_values_that_decided() -> None:
    (result,) = judged(case("no-small", "eligible", "{instanceType: {use: g5.12xlarge}}"), *ALL).results
    assert result.values == (("instanceType.gpuCount >= 8", "false"), ("instanceType.gpuCount", "4"))


def test_a_case_that_fails_says_which_of_its_parameters_are_a_stack_files_and_where_that_sets_them() -> None:
    stack = environment(
        params={"team-cap": {"day": 4, "night": 6}},
        rule_positions={"params[team-cap][day]": Position("stacks/Pulumi.test.yaml", 14, 7)},
    )
    given = "{windows: [business], params: {night: 9}}"

    [failed] = judged(case("team-cap", "ceiling 8", given), LIMIT, stack=stack).results
    [passed] = judged(case("team-cap", "ceiling 4", given), LIMIT, stack=stack).results

    values = dict(failed.values)
    assert failed.problem == "expected ceiling 8, and team-cap says ceiling 4"
    assert values["params.day"] == "4 (from stacks/Pulumi.test.yaml:14)"
    assert "params.night" not in values
    assert passed.passes
