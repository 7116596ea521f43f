"""Expressions that compile and still cannot mean what they say are told, and others are left in peace."""

from __future__ import annotations

import pytest

from engine.model.diagnostic import Severity
from engine.policy.cel.types import CelType, ListOf, MapOf, Record, RecordField, Scalar
from engine.policy.rules.loops import Structure
from engine.policy.rules.tokens import tokens_of
from tests.policy.rules.rule_texts import BUDGET, GUARDRAIL, LIMIT, REQUIREMENT, rule_findings

HEAD = REQUIREMENT[: REQUIREMENT.index("  matchConditions:")]
POD = Record("pod", (RecordField("name", Scalar.STRING, ""), RecordField("labels", MapOf(Scalar.STRING, 20), "")))
VARIABLES: dict[str, CelType] = {"pods": ListOf(POD, 30), "pod": POD, "name": Scalar.STRING}


def requiring(expression: str, more: str = "") -> str:
    return f"{HEAD}{more}  message: x\n  require: |-\n    {expression}\n"


def lints(expression: str) -> list[tuple[str, str]]:
    """Rule, and the text at which it points."""
    return [
        (each.rule, each.position.source_line[each.position.column - 1 :])
        for each in rule_findings(requiring(expression))
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "pod.gpus > 0",
        'pod.labels.tier == "gold"',
        'has(pod.labels.tier) && pod.labels.tier == "gold"',
        'pod.tolerations.exists(t, t.key == "spot")',
        'pod.tolerations.exists(t, pod.tolerations.exists(u, u.key == t.key && u.value != ""))',
        'pod.name.matches("llm-[0-9]+") && pod.waiting > duration("90s")',
        'instanceType.zones.filter(z, z != "us-east-1a").size() > 0',
    ],
)
def test_an_expression_that_means_something_is_left_in_peace(expression: str) -> None:
    assert lints(expression) == []


@pytest.mark.parametrize(
    ("expression", "rule", "at"),
    [
        ("true", "constant-expression", "true"),
        ("[1, 2].all(x, x > 0)", "constant-expression", "[1, 2].all(x, x > 0)"),
        ("has(pod.gpus)", "cel-always-there", "has(pod.gpus)"),
        ("pod.tolerations.all(t, has(t.key))", "cel-always-there", "has(t.key))"),
        ("pod.tolerations.all(variables, pod.gpus > 0)", "unknown-variable", "variables, pod.gpus > 0)"),
        (
            'pod.tolerations.all(t, pod.tolerations.all(t, t.key != ""))',
            "shadowed-name",
            't, t.key != ""))',
        ),
        (
            "pod.tolerations.all(t, pod.tolerations.all(u, pod.tolerations.all(v, u.key == t.key || v.key == u.key)))",
            "too-many-steps",
            "all(t, pod.tolerations.all(u, pod.tolerations.all(v, u.key == t.key || v.key == u.key)))",
        ),
        ('pod.waiting > duration("1d")', "cel-always-errs", 'duration("1d")'),
        ('pod.name.matches("(llm")', "cel-always-errs", '"(llm")'),
        (r'pod.name.matches(r"(?=llm)")', "cel-always-errs", r'r"(?=llm)")'),
    ],
)
def test_an_expression_that_cannot_mean_what_it_says_is_an_error(expression: str, rule: str, at: str) -> None:
    assert lints(expression) == [(rule, at)]


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ('now < timestamp("2026-12-24")', "cel-always-errs"),
        ('now.getHours("America/New_Yrok") < 9', "unknown-time-zone"),
        ('now.getHours("America/New_York") < 9', "time-by-hand"),
        ("now.getDayOfWeek() < 5", "time-by-hand"),
        ('now < timestamp("2026-12-24T00:00:00Z")', ""),
    ],
)
def test_time_is_read_through_windows(expression: str, rule: str) -> None:
    found = rule_findings(GUARDRAIL.replace("cost.hourlyAfter <=", f"{expression} || cost.hourlyAfter <="))
    found = found or rule_findings(BUDGET.replace('node.age > duration("2h")', expression))
    assert rule in {each.rule for each in found} or (rule == "" and found == ())
    by_hand = [each for each in found if each.rule == "time-by-hand"]
    assert all(each.severity is Severity.WARNING for each in by_hand)


def test_numbers_may_be_constant_and_decisions_may_not() -> None:
    assert rule_findings(LIMIT[: LIMIT.index("  params:")] + "  ceiling: 100\n  message: x\n") == ()
    everywhere = LIMIT.replace("""'"team" in pod.labels ? pod.labels.team : "unowned"'""", """'"all"'""")
    assert rule_findings(everywhere) == ()
    (found,) = rule_findings(BUDGET.replace('node.age > duration("2h")', "false"))
    assert (found.rule, found.severity) == ("constant-expression", Severity.ERROR)
    (found,) = rule_findings(requiring("pod.gpus > 0", "  matchConditions: [{name: a, expression: 1 < 2}]\n"))
    assert found.rule == "constant-expression"


@pytest.mark.parametrize(
    ("old", "new", "rule", "column"),
    [
        ("budget: 2", "budget: -2", "out-of-range", 11),
        ("budget: 2", "budget: 2 - 3", "out-of-range", 11),
        ("maxPerWindow: 4", "maxPerWindow: 4 / (2 - 2)", "constant-expression", 19),
    ],
)
def test_a_number_that_can_never_be_used_is_an_error(old: str, new: str, rule: str, column: int) -> None:
    (found,) = rule_findings(BUDGET.replace(old, new))
    assert (found.severity, found.rule, found.position.column) == (Severity.ERROR, rule, column)
    assert rule_findings(BUDGET.replace(old, f"{old.partition(':')[0]}: 0")) == ()


def test_a_lint_inside_a_variable_is_told_at_the_variable() -> None:
    text = requiring("variables.all || variables.all", "  variables:\n    - {name: all, expression: has(pod.gpus)}\n")
    (found,) = rule_findings(text)
    assert (found.rule, found.position.line, found.position.column) == ("cel-always-there", 13, 31)


def test_loops_of_variables_multiply_with_those_around_them() -> None:
    inner = "pod.tolerations.exists(u, pod.tolerations.exists(v, u.key != v.key))"
    variables = f"  variables:\n    - name: pairs\n      expression: {inner}\n"
    assert rule_findings(requiring("variables.pairs", variables)) == ()
    found = rule_findings(requiring('pod.tolerations.all(t, t.key == "" || variables.pairs)', variables))
    assert [each.rule for each in found] == ["too-many-steps"]


def test_time_in_a_requirement_must_be_asked_for() -> None:
    (found,) = rule_findings(requiring('now > timestamp("2026-12-24T00:00:00Z")'))
    assert (found.rule, found.hint) == (
        "cel-unknown-name",
        "a RequirementRule reads time only with timeSensitive: true",
    )
    asked = requiring('now > timestamp("2026-12-24T00:00:00Z") || windows.quiet', "  timeSensitive: true\n")
    assert rule_findings(asked) == ()


def test_a_portable_rule_keeps_to_what_both_engines_know() -> None:
    text = requiring("math.greatest(pod.gpus, 2) > 3")
    (found,) = rule_findings(text)
    assert (found.severity, found.rule, found.position.line) == (Severity.ERROR, "cel-not-portable", 14)
    assert "portable: false" in found.hint
    assert rule_findings(text.replace("spec:\n", "spec:\n  portable: false\n")) == ()


# --- loops


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        ("name == 'a'", 0),
        ("pods.all(p, p.name != '')", 30),
        ("pods.all(p, p.name != '') && pods.exists(p, p.name == '')", 60),
        ("pods.all(p, p.labels.all(k, k != ''))", 30 * (1 + 20)),
        ("pods.filter(p, p.name != '').all(p, p.name != '')", 60),
        ("pods.map(p, p.labels).all(m, m.all(k, k != ''))", 30 + 30 * (1 + 64)),
        ("(pods).all(p, true)", 30),
        ("(pods + pods).all(p, true)", 64),
        ("pods[0].labels.all(k, true)", 20),
        ("[1, 2, 3].exists(x, x > 2)", 3),
        ("[].exists(x, x > 2)", 0),
        ("pod.labels.exists(k, v, v == '')", 20),
        ("pods.exists(i, p, p.labels.exists(k, v, v == ''))", 30 * (1 + 20)),
        ("f(name).all(x, true)", 64),
        ("pods.size() > 3", 0),
        ("'pods.all(p, p)' == name", 0),
    ],
)
def test_steps_of_loops_are_reckoned_from_how_long_lists_can_be(source: str, steps: int) -> None:
    assert Structure(tokens_of(source), VARIABLES).steps(VARIABLES) == steps


@pytest.mark.parametrize(
    ("expression", "at"),
    [
        ("pod.labels['team'] == 'ml'", "pod.labels['team'] == 'ml'"),
        ('pod.gpus > 1 || pod.labels.team == "ml"', 'pod.labels.team == "ml"'),
        ("pod.nodeSelector['zone'] != 'a'", "pod.nodeSelector['zone'] != 'a'"),
        ("nodePool.labels['team'] == 'ml'", "nodePool.labels['team'] == 'ml'"),
        ("'owner' in pod.labels && pod.labels['team'] == 'ml'", "pod.labels['team'] == 'ml'"),
    ],
)
def test_a_key_that_may_be_missing_is_warned_of_where_it_is_read(expression: str, at: str) -> None:
    (found,) = rule_findings(requiring(expression))
    assert (found.rule, found.severity) == ("unguarded-key", Severity.WARNING)
    assert found.position.source_line[found.position.column - 1 :] == at
    assert "makes require err, and then such a pod gets no instance type" in found.message


@pytest.mark.parametrize(
    "expression",
    [
        "'team' in pod.labels && pod.labels['team'] == 'ml'",
        "'team' in pod.labels && pod.labels.team == 'ml'",
        "has(pod.labels.team) && pod.labels['team'] == 'ml'",
        "pod.labels.exists(key, key.startsWith('team'))",
        "pod.labels.size() > 2",
        "pod.labels['tier'] == 'gold'",
    ],
)
def test_a_key_that_the_author_thought_of_is_no_finding(expression: str) -> None:
    assert rule_findings(requiring(expression)) == ()


def test_a_condition_or_a_variable_may_ask_for_the_key_too() -> None:
    condition = "  matchConditions: [{name: has-a-team, expression: \"'team' in pod.labels\"}]\n"
    assert rule_findings(requiring("pod.labels.team == 'ml'", condition)) == ()
    variable = "  variables: [{name: team, expression: \"pod.labels['team']\"}]\n"
    (found,) = rule_findings(requiring("variables.team == 'ml'", variable))
    assert (found.rule, found.position.line, found.position.column) == ("unguarded-key", 12, 41)


def test_a_group_that_some_pods_have_not_is_warned_of_with_another_way_to_write_it() -> None:
    (found,) = rule_findings(LIMIT.replace('"team" in pod.labels ? pod.labels.team : "unowned"', "pod.labels.team"))
    assert found.hint == "write 'team' in pod.labels ? pod.labels['team'] : 'none'"


@pytest.mark.parametrize(
    ("expression", "at", "hint"),
    [
        ("instanceType.gpuName != 'H100'", "'H100'", "write 'h100'"),
        ("'H100' == instanceType.gpuName", "'H100' == instanceType.gpuName", "write 'h100'"),
        ("instanceType.gpuName in ['h100', 'H200']", "'H200']", "write 'h200'"),
        ("instanceType.capacityType == 'ondemand'", "'ondemand'", "did you mean on-demand?"),
        ("instanceType.arch == 'x86_64'", "'x86_64'", "it is one of amd64, arm64"),
    ],
)
def test_a_text_that_a_fact_never_is_is_warned_of(expression: str, at: str, hint: str) -> None:
    (found,) = rule_findings(requiring(expression))
    assert (found.rule, found.severity, found.hint) == ("never-equal", Severity.WARNING, hint)
    assert found.position.source_line[found.position.column - 1 :] == at


def test_a_reason_that_no_node_ever_leaves_for_is_warned_of() -> None:
    (found,) = rule_findings(BUDGET.replace("node.age >", "reason == 'empty' || node.age >"))
    assert (found.rule, found.hint) == ("never-equal", "did you mean Empty?")


@pytest.mark.parametrize(
    "expression",
    [
        "instanceType.gpuName != 'h100' || pod.namespace == 'Research'",
        "instanceType.capacityType in ['spot', 'reserved'] && pod.name != 'X'",
        "instanceType.gpuName == ''",
        "pod.tolerations.all(t, t.value != 'ondemand') && instanceType.capacityType == 'on-demand'",
    ],
)
def test_texts_that_a_fact_may_be_are_no_finding(expression: str) -> None:
    assert rule_findings(requiring(expression)) == ()
