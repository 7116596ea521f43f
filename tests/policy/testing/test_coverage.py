"""Coverage asks both outcomes of each bool part of a rule, and shows where one is missing."""

from __future__ import annotations

import pytest

from tests.policy.testing.case_texts import ENGINES, HEAD, judged

THREE = """\
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: three}
spec:
  require: instanceType.nvlink && instanceType.efa || pod.bound
  message: one of three
"""
TWICE = """\
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: twice}
spec:
  variables:
    - {name: big, expression: instanceType.gpuCount > 4}
  require: |-
    (variables.big || pod.bound)
      && (!variables.big || pod.gpus > 1)
  message: big ones for big pods
"""
LOOP = """\
apiVersion: nodewright.dev/v1alpha1
kind: DisruptionBudget
metadata: {name: quiet-pods}
spec:
  matchConditions:
    - {name: has-nodes, expression: nodePool.nodes > 0}
  candidate: node.pods.all(p, p.priority < 1000)
  message: no node of important pods
"""
NO_BOOL = """\
apiVersion: nodewright.dev/v1alpha1
kind: LimitRule
metadata: {name: plain}
spec:
  resource: gpus
  ceiling: 8
  message: eight
"""


def cases(rule: str, *each: tuple[str, str]) -> str:
    """``(expect, given)`` each."""
    lines = (
        f"    - {{name: c{number}, rule: {rule}, expect: {expect}, given: {given}}}"
        for number, (expect, given) in enumerate(each)
    )
    return f"{HEAD}spec:\n  cases:\n" + "\n".join(lines) + "\n"


def of(a: bool, b: bool, c: bool) -> tuple[str, str]:
    """The case in which ``a && b || c`` reads these."""
    expect = "eligible" if (a and b) or c else "excluded"
    return expect, f"{{instanceType: {{nvlink: {a}, efa: {b}}}, pod: {{bound: {c}}}}}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("given", "seen", "gaps"),
    [
        # Parts: the whole, a && b, a, b, c; ten outcomes.
        (
            [(True, True, False)],
            4,
            ["12 never false", "12 never false", "12 never false", "35 never false", "55 nothing"],
        ),
        (
            [(False, False, False)],
            4,
            ["12 never true", "12 never true", "12 never true", "35 nothing", "55 never true"],
        ),
        ([(True, True, True), (False, True, False)], 8, ["35 never false", "55 never true"]),
        ([(True, True, True), (False, True, False), (True, False, True)], 10, []),
    ],
)
def test_the_parts_that_no_case_made_true_or_false_are_shown(
    given: list[tuple[bool, bool, bool]], seen: int, gaps: list[str], engine: str
) -> None:
    found = judged(cases("three", *(of(*each) for each in given)), THREE, engine=engine)
    coverage = found.coverage["three"]
    assert [result.problem for result in found.results] == [""] * len(given)
    assert (coverage.seen, coverage.asked, int(coverage.percent)) == (seen, 10, seen * 10)
    words = {(True,): "never true", (False,): "never false", (True, False): "nothing"}
    assert [f"{gap.position.column} {words[gap.missing]}" for gap in coverage.gaps] == gaps


@pytest.mark.parametrize("engine", ENGINES)
def test_a_variable_is_one_text_wherever_it_is_read(engine: str) -> None:
    small = ("excluded", "{instanceType: {gpuCount: 1}}")
    found = judged(cases("twice", small), TWICE, engine=engine).coverage["twice"]
    assert [(gap.position.line, gap.position.column, gap.missing) for gap in found.gaps] == [
        (6, 31, (True,)),  # the variable, which both lines read
        (8, 5, (True,)),  # the whole
        (8, 6, (True,)),  # variables.big || pod.bound, where the variable is read
        (8, 23, (True,)),  # pod.bound
        (9, 11, (True, False)),  # !variables.big, and the line's whole
        (9, 11, (True, False)),
        (9, 29, (True, False)),  # pod.gpus > 1
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_turn_of_a_loop_counts_and_conditions_do_too(engine: str) -> None:
    pods = "{node: {pods: [{priority: 1}, {priority: 1000}]}, nodePool: {nodes: 1}}"
    one = judged(cases("quiet-pods", ("kept", pods)), LOOP, engine=engine).coverage["quiet-pods"]
    more = [("kept", pods), ("candidate", "{nodePool: {nodes: 1}}"), ("not-matched", "{}")]
    all_three = judged(cases("quiet-pods", *more), LOOP, engine=engine).coverage["quiet-pods"]
    assert [(gap.text, gap.missing) for gap in one.gaps] == [
        ("nodePool.nodes > 0", (False,)),
        ("node.pods.all(p, p.priority < 1000)", (True,)),
    ]
    assert (all_three.percent, all_three.gaps, all_three.cases) == (100.0, (), 2)


def test_a_rule_without_a_bool_is_covered_by_any_case_and_by_none_without() -> None:
    tested = judged(cases("plain", ("ceiling 8", "{}")), NO_BOOL).coverage["plain"]
    untested = judged(cases("other", ("ceiling 8", "{}")), NO_BOOL).coverage["plain"]
    assert (tested.percent, tested.reaches(100)) == (100.0, True)
    assert (untested.percent, untested.reaches(1)) == (0.0, False)
