"""The fuzzing of `make fuzz`, a small part of it; and that it would tell what is wrong if anything were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from engine.model.diagnostic import Diagnostic, Position, Severity
from engine.model.rule import RequirementRule
from engine.policy.cel.port import Answer
from engine.policy.load import load_policy
from engine.policy.rules.compiled import bundle_of
from tests.policy.rules.rule_texts import BESIDE, REQUIREMENT
from tools.fuzzing.answers import alike, check_answer
from tools.fuzzing.cases import DOCUMENT, EXPRESSION, Name, made_case
from tools.fuzzing.judging import Failure, minimised
from tools.fuzzing.oracles import Nonsense, check_findings
from tools.fuzzing.sense import check_nothing_lost, check_policy
from tools.fuzzing.workers import Fuzzing

ROOT = Path(__file__).parents[2]
FILES = [(f"f{number}.yaml", text.encode()) for number, text in enumerate((*BESIDE, REQUIREMENT))]


def test_two_thousand_files_and_expressions_load_with_sense_or_are_told() -> None:
    command = [sys.executable, "tools/fuzz_policy.py", "--cases", "2000", "--seed", "5", "--workers", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert "no crash, no hang, no accepted nonsense" in done.stdout
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line[0].isdigit()]
    counts = {what: int(count.replace(",", "")) for count, what in lines}
    assert sum(counts.values()) == 2_000
    # Were all refused at once, nothing would have been tried.
    assert counts["documents: loads"] > 100
    assert counts["expressions: loads"] > 500


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    names = [(kind, number) for kind in (DOCUMENT, EXPRESSION) for number in range(20)]
    made = [made_case(name, 7) for name in names]
    assert made == [made_case(name, 7) for name in reversed(names)][::-1]
    assert len({each.changed[1] for each in made}) > 30


@pytest.mark.parametrize(
    ("finding", "promise"),
    [
        (("no-effect", "nothing", 2, 1), "a finding's line is in its file"),
        (("no-effect", "nothing", 1, 9), "a finding's column is in its line"),
        (("made-up-of-a-file", "nothing", 1, 1), "a rule id is stable"),
        (("no-effect", " ", 1, 1), "a message says something"),
        (("no-effect", "KeyError: 'a'", 1, 1), "a message names no exception of Python"),
        (("no-effect", "<class 'int'>", 1, 1), "a message tells no insides"),
    ],
)
def test_a_finding_that_is_of_no_use_is_noticed(finding: tuple[str, str, int, int], promise: str) -> None:
    rule, message, line, column = finding
    found = Diagnostic(Severity.ERROR, rule, message, Position("f.yaml", line, column, "a: b"))
    with pytest.raises(Nonsense) as noticed:
        check_findings([found], [("f.yaml", b"a: b")])
    assert noticed.value.promise == promise


def test_policy_that_makes_no_sense_is_noticed() -> None:
    policy = load_policy(FILES)
    check_policy(policy)
    check_nothing_lost(policy, FILES)
    (rule,) = policy.rules
    assert isinstance(rule, RequirementRule)
    for broken in (evolve(rule, message=" "), evolve(rule, require=None), evolve(rule, params={"x": float("inf")})):
        with pytest.raises(Nonsense):
            check_policy(evolve(policy, rules=(broken,)))
    with pytest.raises(Nonsense, match="dropped"):
        check_nothing_lost(evolve(policy, rules=()), FILES)


def test_an_answer_that_is_no_answer_is_noticed() -> None:
    (rule,) = bundle_of(load_policy(FILES)).requirement_rules
    program = rule.programs["require"]
    check_answer(Answer(value=True), program)
    check_answer(Answer(error="no key"), program)
    for wrong in (Answer(), Answer(value=1), Answer(value=True, error="both"), Answer(error="x", error_at=10_000)):
        with pytest.raises(Nonsense):
            check_answer(wrong, program)


def test_engines_agree_only_on_the_same_value_of_the_same_type_or_on_errors_both() -> None:
    assert alike(Answer(value=1), Answer(value=1))
    assert alike(Answer(error="a"), Answer(error="b"))
    assert not alike(Answer(value=1), Answer(value=True))
    assert not alike(Answer(value=False), Answer(error="a"))


def test_the_least_file_that_fails_is_found() -> None:
    content = b"".join(b"line %d\n" % number for number in range(100))
    assert minimised(content, lambda file: b"line 13\n" in file and b"line 77\n" in file) == b"line 13\nline 77\n"


def test_what_hangs_or_crashes_is_told_and_the_others_go_on() -> None:
    def judge(name: Name, begins: Callable[[], None]) -> Failure | str:
        begins()
        match name[1]:
            case 3:
                while True:
                    pass
            case 5:
                os.kill(os.getpid(), signal.SIGKILL)
            case 7:
                return Failure(name, "it holds", "it does not", "x")
        return "loads"

    told: list[Failure] = []
    fuzzing = Fuzzing(judge, 2, told.append, most_seconds=0.2)
    fuzzing.run((DOCUMENT, number) for number in range(120))

    assert fuzzing.counts == {(DOCUMENT, "loads"): 117, (DOCUMENT, "fails"): 3}
    assert {each.name[1]: each.promise for each in told} == {
        3: "hangs: more than 0.2 seconds of CPU time",
        5: "crashes: the process ended with SIGKILL",
        7: "it holds",
    }
