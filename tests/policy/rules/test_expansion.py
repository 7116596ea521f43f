"""Variables are put into expressions as text, and every character leads back to where a person wrote it."""

from __future__ import annotations

import pytest

from engine.model.diagnostic import Position
from engine.model.rule import Expression, NamedExpression
from engine.policy.rules.expressions import Expanded, Expander
from engine.policy.rules.placing import position_in
from tests.policy.rules.rule_texts import FILE, GUARDRAIL, REQUIREMENT, rule_findings, told

Told = list[tuple[str, int, int]]


def at(text: str, line: int) -> Expression:
    return Expression(text, Position("f.yaml", line, 1, text))


def expander(*variables: tuple[str, str]) -> tuple[Expander, Told]:
    """The variables on the lines 1, 2, …; and what is told: rule, line, column."""
    found: Told = []
    named = [NamedExpression(name, at(text, line)) for line, (name, text) in enumerate(variables, 1)]
    return Expander(named, lambda where, rule, _message, _hint: found.append((rule, where.line, where.column))), found


def expanded(text: str, *variables: tuple[str, str]) -> str:
    made, found = expander(*variables)
    result = made.expanded(at(text, 100))
    assert found == []
    assert result is not None
    return result.text


def places(source: Expanded) -> list[tuple[int, int]]:
    positions = [source.position(offset) for offset in range(len(source.text))]
    return [(position.line, position.column) for position in positions]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("variables.a", "(1 + 2)"),
        ("variables.a * 2", "(1 + 2) * 2"),
        ("variables . a + variables\n.a", "(1 + 2) + (1 + 2)"),
        ("variables.b", "((1 + 2) > 0)"),
        ('"variables.a"', '"variables.a"'),
        (r'"\"variables.a"', r'"\"variables.a"'),
        (r'r"\" + variables.a', r'r"\" + (1 + 2)'),
        ("'''it's variables.a'''", "'''it's variables.a'''"),
        ("x // variables.a\n+ variables.a", "x // variables.a\n+ (1 + 2)"),
        ("pod.variables.a", "pod.variables.a"),
        ("myvariables.a", "myvariables.a"),
        ("variables.a.size()", "(1 + 2).size()"),
        ("variables.c", "(3 // three\n)"),
        ("f(variables.c, 4)", "f((3 // three\n), 4)"),
    ],
)
def test_variables_are_expanded_by_token_in_parentheses(text: str, result: str) -> None:
    assert expanded(text, ("a", "1 + 2"), ("b", "variables.a > 0"), ("c", "3 // three")) == result


def test_each_character_leads_back_to_its_own_text() -> None:
    made, _ = expander(("a", "1+2"), ("b", "-variables.a"))
    result = made.expanded(at("x*variables.b*y", 100))
    assert result is not None
    assert result.text == "x*(-(1+2))*y"
    assert places(result) == [
        *[(100, 1), (100, 2)],
        *[(2, 1), (2, 1)],
        *[(1, 1), (1, 1), (1, 2), (1, 3)],
        *[(1, 4), (2, 13)],
        *[(100, 14), (100, 15)],
    ]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ((("a", "variables.a + 1"),), ("variable-cycle", 1, 11)),
        ((("a", "variables.b"), ("b", "1")), ("variable-order", 1, 11)),
        ((("a", "variables.z"),), ("unknown-variable", 1, 11)),
        ((("a", "variables"),), ("unknown-variable", 1, 1)),
        ((("a", "variables['b']"),), ("unknown-variable", 1, 1)),
        ((("a", "1) + (2"),), ("cel-syntax", 1, 2)),
        ((("a", "(1"),), ("cel-syntax", 1, 1)),
        ((("a", "[1)"),), ("cel-syntax", 1, 3)),
        ((("a", 'x + "abc'),), ("cel-syntax", 1, 5)),
    ],
)
def test_a_variable_that_cannot_stand_alone_is_told_at_its_place(
    variables: tuple[tuple[str, str], ...], expected: tuple[str, int, int]
) -> None:
    made, found = expander(*variables)
    assert found == [expected]
    assert made.expanded(at("variables.a", 100)) is None
    assert found == [expected]


def test_variables_that_double_each_other_are_stopped() -> None:
    doubling = [("a0", "1")] + [(f"a{n + 1}", f"variables.a{n} + variables.a{n}") for n in range(60)]
    _, found = expander(*doubling)
    assert [rule for rule, _, _ in found] == ["too-long"]


def test_what_nothing_reads_is_known() -> None:
    made, _ = expander(("a", "1"), ("b", "2"), ("c", "variables.b"))
    made.expanded(at("1 + 1", 100))
    assert made.unused() == ("a", "c")


# --- places in files


@pytest.mark.parametrize(
    ("yaml", "line", "column"),
    [
        ("expression: cost.hourlyAfter <= oops", 8, 35),
        ("expression: 'cost.hourlyAfter <= oops'", 8, 36),
        ('expression: "cost.hourlyAfter <= oops"', 8, 36),
        ("expression: '''a'' != ''b'' && 1.0 <= oops'", 8, 41),
        (r'expression: "\"\x61\" != \"\u0062\" && 1.0 <= oops"', 8, 49),
        (r'expression: "1.0 <= cost.hourlyAfter &&\n\t oops"', 8, 47),
        ("expression:\n    cost.hourlyAfter <= oops", 9, 25),
        ("expression: &this cost.hourlyAfter <= oops", 8, 41),
        ("expression: !!str 'cost.hourlyAfter <= oops'", 8, 42),
        ("expression: |-\n    cost.hourlyAfter\n      <= oops", 10, 10),
        ("expression: |\n\n    cost.hourlyAfter\n      <= oops\n", 11, 10),
        ("expression: |2-\n      cost.hourlyAfter\n      <= oops", 10, 10),
        ("expression: |- # why\n    // é comment\n    cost.hourlyAfter // é\n    <= oops", 11, 8),
        ("expression: |-\n    'é' != '𝒳' && 1.0 <= oops", 9, 26),
    ],
)
def test_a_problem_is_told_at_its_line_and_column(yaml: str, line: int, column: int) -> None:
    text = GUARDRAIL.replace("  params:\n    mostPerHour: {type: double, default: 500}\n", "  remedy: x\n  docs: y\n")
    found = rule_findings(text.replace("expression: cost.hourlyAfter <= params.mostPerHour", yaml))
    (oops,) = [each for each in found if each.rule == "cel-unknown-name"]
    assert (oops.position.file, oops.position.line, oops.position.column) == (FILE, line, column)
    assert oops.position.source_line[column - 1 : column + 3] == "oops"


def test_a_problem_inside_a_variable_is_told_at_the_variable_once() -> None:
    wrong = REQUIREMENT.replace("pod.gpus == 1", "pod.gpu == 1").replace("pod.gpus > 0", "variables.alone")
    (found,) = rule_findings(wrong)
    assert (found.position.line, found.position.column, found.rule) == (18, 37, "cel-unknown-name")
    assert found.message == "pod has no field gpu, as require reads it"


@pytest.mark.parametrize(
    ("yaml", "rule"),
    [
        ("expression: >-\n    cost.hourlyAfter <= 1.0", "folded-expression"),
        ("expression: cost.hourlyAfter\n    <= 1.0", "folded-expression"),
        ("expression: 'cost.hourlyAfter\n    <= 1.0'", "folded-expression"),
        ("expression: ''", "empty-expression"),
        ("expression: |-\n    ", "empty-expression"),
        ("expression: [a]", "wrong-type"),
        ("expression: 0x10", "bad-value"),
        ("expression: 1.0e+3", "bad-value"),
        ("expression: '" + "a" * 10_001 + "'", "too-long"),
    ],
)
def test_an_expression_whose_places_could_not_be_told_is_refused(yaml: str, rule: str) -> None:
    found = rule_findings(GUARDRAIL.replace("expression: cost.hourlyAfter <= params.mostPerHour", yaml))
    assert [each.rule for each in found] == [rule]


def test_numbers_stand_for_themselves() -> None:
    assert told(GUARDRAIL.replace("blocks: [add]", "blocks: [add]\n  messageExpression: 5")) == [
        f"{FILE}:6:22 cel-result-type"
    ]


def test_the_end_of_an_expression_has_a_place() -> None:
    expression = Expression("a\n  b", Position("f.yaml", 3, 5, "    a"), 5)
    assert position_in(expression, 5) == Position("f.yaml", 4, 8, "      b")
    assert position_in(expression, 1) == Position("f.yaml", 3, 6, "    a")
