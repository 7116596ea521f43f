"""Rule files become rules as values, and every mistake in them is told at its place."""

from __future__ import annotations

import pytest

from engine.model.constraint import Operator, Requirement
from engine.model.diagnostic import InvalidInput, Severity
from engine.model.reason import DisruptionReason
from engine.model.rule import (
    ActionClass,
    DisruptionBudget,
    Enforcement,
    Expression,
    Guardrail,
    LimitedResource,
    LimitRule,
    NamedExpression,
    RequirementRule,
    Selection,
)
from tests.policy.rules.rule_texts import (
    BUDGET,
    CALENDAR,
    FILE,
    GUARDRAIL,
    LIMIT,
    REQUIREMENT,
    RULES,
    load_rules,
    rule_findings,
    rule_of,
    told,
)
from tests.policy.texts import CLASS, POOL, edited, findings_of, policy_of, rules


def text(source: str) -> Expression:
    """Equal to any expression of that text, wherever it stands."""
    return Expression(source, rule_of(GUARDRAIL).position)


def test_a_requirement_rule_is_read_whole() -> None:
    rule = rule_of(REQUIREMENT)
    assert rule == RequirementRule(
        name="gold-on-nvlink",
        position=rule.position,
        match=Selection(
            node_pools=("gpu",), namespaces=("serving",), pod_labels=(Requirement("tier", Operator.IN, ("gold",)),)
        ),
        match_conditions=(NamedExpression("asks-for-a-gpu", text("pod.gpus > 0")),),
        params={"minMemory": 80},
        variables=(NamedExpression("alone", text("pod.gpus == 1")),),
        message="gold inference needs one large GPU, or several joined by NVLink",
        message_expression=text('"needs GPUs of " + string(params.minMemory) + " GiB"'),
        remedy="ask for fewer GPUs",
        docs="https://example.com/gold",
        labels={"owner": "platform"},
        require=text("instanceType.gpuMemoryGiB >= params.minMemory\n  && (variables.alone || instanceType.nvlink)"),
    )
    assert (rule.position.file, rule.position.line, rule.position.column) == (FILE, 4, 9)


def test_a_preference_has_its_weight_and_may_read_time() -> None:
    changed = edited(
        REQUIREMENT, "  require: |-\n", "  weight: 2.5\n  timeSensitive: true\n  portable: false\n  prefer: |-\n"
    )
    body = "    instanceType.gpuMemoryGiB >= params.minMemory\n      && (variables.alone || instanceType.nvlink)\n"
    other = '    variables.alone && now > timestamp("2026-12-01T00:00:00Z") ? 1.0 : 0.5\n'
    rule = rule_of(changed.text.replace(body, other))
    assert isinstance(rule, RequirementRule)
    assert (rule.weight, rule.is_time_sensitive, rule.is_portable, rule.require) == (2.5, True, False, None)
    assert rule.prefer == text('variables.alone && now > timestamp("2026-12-01T00:00:00Z") ? 1.0 : 0.5')


def test_a_guardrail_may_block_replacements() -> None:
    policy = load_rules(GUARDRAIL.replace("blocks: [add]", "blocks: [remove, replace]"))
    assert [each for each in policy.warnings if each.rule == "no-effect"] == []
    (rule,) = policy.rules
    assert isinstance(rule, Guardrail)
    assert rule.blocks == (ActionClass.REMOVE, ActionClass.REPLACE)


def test_a_limit_rule_is_read_whole() -> None:
    rule = rule_of(LIMIT)
    assert rule == LimitRule(
        name="team-cap",
        position=rule.position,
        params={"day": 8, "night": 32},
        message="a team has so many GPUs at most",
        resource=LimitedResource.GPUS,
        ceiling=text("windows.business ? params.day : params.night"),
        group_by=text('"team" in pod.labels ? pod.labels.team : "unowned"'),
    )


def test_a_disruption_budget_blocks_outside_its_windows_unless_it_says_otherwise() -> None:
    rule = rule_of(BUDGET)
    assert rule == DisruptionBudget(
        name="slow-drain",
        position=rule.position,
        message="nodes leave slowly, and in the daytime",
        reasons=(DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED),
        windows=("business",),
        candidate=text('node.age > duration("2h")'),
        budget=text("2"),
        max_per_window=text("4"),
    )
    assert rule.blocks_outside
    ignoring = rule_of(BUDGET.replace("  candidate", "  outside: ignore\n  candidate"))
    assert isinstance(ignoring, DisruptionBudget)
    assert not ignoring.blocks_outside


def test_a_budget_without_reasons_is_for_all_of_them() -> None:
    rule = rule_of(BUDGET.replace("  reasons: [Underutilized, Drifted]\n", ""))
    assert isinstance(rule, DisruptionBudget)
    assert rule.reasons == ()
    named = rule_of(BUDGET.replace("[Underutilized, Drifted]", "[Expired, Empty]"))
    assert isinstance(named, DisruptionBudget)
    assert named.reasons == (DisruptionReason.EXPIRED, DisruptionReason.EMPTY)


def test_a_guardrail_is_read_whole() -> None:
    rule = rule_of(GUARDRAIL)
    assert rule == Guardrail(
        name="spend",
        position=rule.position,
        params={"mostPerHour": 500.0},
        message="the plan costs too much",
        expression=text("cost.hourlyAfter <= params.mostPerHour"),
        blocks=(ActionClass.ADD,),
    )
    assert isinstance(rule.params["mostPerHour"], float)


def test_rules_come_in_name_order_and_their_tests_are_passed_over() -> None:
    test = "apiVersion: nodewright.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: t}\nspec: {anything: [goes]}\n"
    policy = load_rules(*RULES.values(), test)
    assert [rule.name for rule in policy.rules] == ["gold-on-nvlink", "slow-drain", "spend", "team-cap"]
    assert policy.warnings == ()


@pytest.mark.parametrize(
    ("match", "selection"),
    [
        ("nodePools: gpu", Selection(node_pools=("gpu",))),
        ("nodePools: {names: [gpu]}", Selection(node_pools=("gpu",))),
        (
            "nodePools: {selector: {team: search}}",
            Selection(node_pool_labels=(Requirement("team", Operator.IN, ("search",)),)),
        ),
        (
            "pods: {selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists},"
            " {key: d, operator: NotIn, values: [e, f]}]}}",
            Selection(
                pod_labels=(
                    Requirement("a", Operator.IN, ("b",)),
                    Requirement("c", Operator.EXISTS),
                    Requirement("d", Operator.NOT_IN, ("e", "f")),
                )
            ),
        ),
        ("pods: {}", Selection()),
    ],
)
def test_match_takes_pools_and_labels_in_each_spelling(match: str, selection: Selection) -> None:
    found = edited(LIMIT, "spec:\n", f"spec:\n  match:\n    {match}\n")
    assert rule_of(found.text).match == selection


def test_enforcement_is_deny_unless_the_rule_says_otherwise() -> None:
    assert rule_of(GUARDRAIL).enforcement is Enforcement.DENY
    assert rule_of(GUARDRAIL.replace("spec:", "spec:\n  enforcement: audit")).enforcement is Enforcement.AUDIT


def test_the_digest_is_of_the_meaning() -> None:
    digest = load_rules(*RULES.values()).digest
    assert load_rules(*reversed(RULES.values())).digest == digest
    assert load_rules(*(f"# a comment\n\n{rule}" for rule in RULES.values())).digest == digest
    for kind, old, new in (
        ("Guardrail", "<= params", "< params"),
        ("Guardrail", "500", "600"),
        ("LimitRule", "resource: gpus", "resource: nodes"),
        ("DisruptionBudget", "budget: 2", "budget: 3"),
        ("RequirementRule", "tier: gold", "tier: silver"),
    ):
        changed = {**RULES, kind: edited(RULES[kind], old, new).text}
        assert load_rules(*changed.values()).digest != digest
    assert policy_of(POOL, CLASS, CALENDAR.replace("8h", "9h"), *RULES.values()).digest != digest
    assert policy_of(POOL, CLASS).digest != policy_of(POOL, CLASS, CALENDAR).digest


# --- mistakes


@pytest.mark.parametrize(
    ("rule", "old", "new", "expected"),
    [
        (REQUIREMENT, "  require: |-", "  requires: |-", "unknown-field"),
        (REQUIREMENT, "spec:\n", "spec:\n  massage: x\n", "unknown-field"),
        (REQUIREMENT, "gold inference needs one large GPU, or several joined by NVLink", '" "', "bad-value"),
        (REQUIREMENT, "selector: {tier: gold}", "selector: {tier: -gold}", "bad-label"),
        (REQUIREMENT, "selector: {tier: gold}", "selector: {matchLabels: {a: b}, tier: gold}", "unknown-field"),
        (REQUIREMENT, "name: asks-for-a-gpu", "name: Asks for", "bad-name"),
        (REQUIREMENT, "name: alone", "name: in", "bad-name"),
        (REQUIREMENT, "  require:", "  weight: 1\n  require:", "contradiction"),
        (REQUIREMENT, "  require:", "  prefer: 'pod.gpus > 1 ? 1.0 : 0.0'\n  require:", "contradiction"),
        (LIMIT, "resource: gpus", "resource: gpu", "unknown-value"),
        (LIMIT, "  resource: gpus", "  resource: gpus\n  timeSensitive: true", "unknown-field"),
        (LIMIT, "name: team-cap", "name: Team Cap", "bad-name"),
        (BUDGET, "Drifted]", "Drift]", "unknown-value"),
        (BUDGET, "Drifted]", "Interrupted]", "unknown-value"),
        (BUDGET, "Drifted]", "Underutilized]", "duplicate-value"),
        (BUDGET, "windows: [business]", "windows: [busines]", "unknown-window"),
        (BUDGET, "spec:", "spec:\n  match: {pods: {namespaces: [a]}}", "no-effect"),
        (BUDGET, "spec:", "spec:\n  match: {reasons: [Empty]}", "unknown-field"),
        (GUARDRAIL, "blocks: [add]", "blocks: []", "no-effect"),
        (GUARDRAIL, "blocks: [add]", "blocks: [launch]", "unknown-value"),
        (GUARDRAIL, "spec:", "spec:\n  match: {nodePools: [gpu]}", "no-effect"),
        (GUARDRAIL, "spec:", "spec:\n  enforcement: block", "unknown-value"),
        (GUARDRAIL, "v1alpha1", "v1", "wrong-api-version"),
        (GUARDRAIL, "kind: Guardrail", "kind: Guard", "unknown-kind"),
    ],
)
def test_a_mistake_is_told_in_its_line(rule: str, old: str, new: str, expected: str) -> None:
    changed = edited(rule, old, new)
    (found,) = rule_findings(changed.text)
    assert (found.severity, found.rule, found.position.file) == (Severity.ERROR, expected, FILE)
    assert changed.line - 1 <= found.position.line <= changed.line + new.count("\n")


def test_a_rule_that_wants_nothing_is_refused() -> None:
    neither = REQUIREMENT[: REQUIREMENT.index("  require:")] + "  message: nothing\n"
    assert told(neither) == [f"{FILE}:6:1 missing-field"]
    idle = BUDGET[: BUDGET.index("  windows:")] + "  message: nothing\n"
    assert told(idle) == [f"{FILE}:4:1 no-effect"]
    outside = BUDGET[: BUDGET.index("  candidate:")] + "  outside: ignore\n  message: nothing\n"
    assert told(outside) == [f"{FILE}:7:3 no-effect"]


def test_what_speaks_of_windows_needs_windows() -> None:
    assert told(BUDGET.replace("  windows: [business]\n", "")) == [f"{FILE}:8:3 no-effect"]


def test_a_message_is_never_left_out() -> None:
    without = REQUIREMENT.replace("  message: gold inference needs one large GPU, or several joined by NVLink\n", "")
    assert told(without) == [f"{FILE}:6:1 missing-field"]


def test_a_weight_of_zero_prefers_nothing() -> None:
    changed = REQUIREMENT.replace("  require: |-\n", "  weight: 0\n  prefer: |-\n")
    assert f"{FILE}:19:11 no-effect" in told(changed)


def test_names_are_unique_among_all_kinds() -> None:
    (found,) = rule_findings(GUARDRAIL, LIMIT.replace("team-cap", "spend"))
    assert (found.rule, found.position.file) == ("duplicate-name", "f4.yaml")
    assert found.message == f"the rule spend is here twice; the first is in {FILE} line 3"


def test_a_pool_that_no_file_defines_is_told_with_the_one_that_was_meant() -> None:
    (found,) = rule_findings(REQUIREMENT.replace("nodePools: [gpu]", "nodePools: [gpus]"))
    assert (found.rule, found.hint) == ("unknown-node-pool", "did you mean gpu?")
    assert found.position.source_line[found.position.column - 1 :] == "gpus]"


def test_a_pool_that_could_not_be_read_is_not_called_missing() -> None:
    found = findings_of(POOL.replace("spec:\n  template:", "spec:\n  templates:"), CLASS, CALENDAR, REQUIREMENT)
    assert "unknown-node-pool" not in rules(found)
    assert found


def test_labels_that_no_pool_has_are_a_warning() -> None:
    changed = LIMIT.replace("spec:\n", "spec:\n  match: {nodePools: {selector: {team: serch}}}\n")
    (found,) = rule_findings(changed)
    assert (found.severity, found.rule) == (Severity.WARNING, "matches-nothing")


def test_a_window_that_could_not_be_read_is_not_called_missing() -> None:
    found = findings_of(POOL, CLASS, CALENDAR.replace("duration: 8h", "duration: 8 hours"), BUDGET, LIMIT)
    assert rules(found) == ["bad-duration"]


def test_all_mistakes_of_all_files_are_told_at_once() -> None:
    found = told(
        REQUIREMENT.replace("pod.gpus > 0", "pod.gpu > 0").replace("instanceType.nvlink", "instanceType.nvlinks"),
        LIMIT.replace("resource: gpus", "resource: gpuses"),
        BUDGET.replace("budget: 2", "budget: node.age"),
    )
    assert found == [
        "f3.yaml:14:23 cel-unknown-name",
        "f3.yaml:21:43 cel-unknown-name",
        "f4.yaml:5:13 unknown-value",
        "f5.yaml:8:11 cel-unknown-name",
    ]


def test_policy_with_a_broken_rule_does_not_load() -> None:
    with pytest.raises(InvalidInput) as caught:
        load_rules(GUARDRAIL.replace("<=", "=<"))
    assert [each.rule for each in caught.value.diagnostics] == ["cel-syntax"]
