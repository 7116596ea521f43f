"""What becomes of a case, and the least file that shows what is wrong with it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from random import Random

from attrs import evolve, frozen

from engine.model.diagnostic import InvalidInput
from engine.model.environment import Environment
from engine.policy.findings import Findings
from engine.policy.stack_file import load_environment
from engine.policy.testing.judge import Judge
from engine.policy.testing.read import read_policy_tests
from engine.policy.testing.tests_run import PolicyTestsRun
from engine.report.policy_test_report import render_policy_tests
from tools.fuzzing.answers import check_rules_on_facts
from tools.fuzzing.cases import EXPRESSION, Case, Name, catalog, made_case, policy, sandbox, shipped
from tools.fuzzing.documents import STACK
from tools.fuzzing.oracles import Nonsense, check_findings, loaded, promise, shown
from tools.fuzzing.sense import check_policy_files


@frozen
class Failure:
    name: Name
    promise: str
    told: str
    content: str


def judged(case: Case, rng: Random) -> str:
    """What became of a case: ``loads`` or ``is refused``. Raises whatever is wrong, Nonsense above all."""
    name, _ = case.changed
    if case.kind == EXPRESSION:
        return _judged_expression(case, rng)
    if name == STACK:
        return _judged_stack(case, rng)
    if name.endswith(".test.yaml"):
        return _judged_tests(case)
    files = [case.changed, *case.beside]
    return (
        "loads"
        if check_policy_files(files, None if rng.random() < 0.5 else _plain_environment(), catalog(), rng)
        else "is refused"
    )


def _plain_environment() -> Environment:
    """Without what it says of pools and rules that a case may not have."""
    return evolve(sandbox(), params={}, enforcement={}, limits={})


def _judged_expression(case: Case, rng: Random) -> str:
    files = [case.changed, *case.beside]
    policy, findings = loaded(files, None)
    check_findings(findings, files)
    if policy is None:
        return "is refused"
    check_rules_on_facts(policy, rng, rounds=2)
    return "loads"


def _judged_stack(case: Case, rng: Random) -> str:
    name, content = case.changed
    try:
        environment = load_environment("sandbox", name, content)
    except InvalidInput as invalid:
        check_findings(invalid.diagnostics, [case.changed])
        return "is refused"
    files = list(shipped().policies.items())
    policy, findings = loaded(files, environment)
    check_findings(findings, [*files, case.changed])
    if policy is not None:
        check_rules_on_facts(policy, rng)
    return "loads"


def _judged_tests(case: Case) -> str:
    findings = Findings()
    tests = read_policy_tests([case.changed], findings)
    check_findings(findings.in_file_order, [case.changed])
    judge = Judge(policy(), catalog(), sandbox(), findings)
    results = tuple(judge.result(each, test.file, test.name) for test in tests for each in test.cases)
    coverage = judge.coverage()
    run = PolicyTestsRun("sandbox", "cel-expr", 1, results, coverage, (), findings.in_file_order)
    check_findings(findings.in_file_order, [case.changed])
    shown(render_policy_tests(run))
    promise(all(each.asked >= each.seen for each in coverage), "no more is covered than there is")
    return "loads" if run.is_valid else "is refused"


def failure_of(name: Name, seed: int, begins: Callable[[], None] = lambda: None) -> Failure | str:
    """What is wrong with the case of that name, with the least file that shows it; else what became of it.

    ``begins`` is called before each file that is tried.
    """
    begins()
    case = made_case(name, seed)
    found = _wrong(case, name, seed)
    if isinstance(found, str):
        return found

    def still_fails(content: bytes) -> bool:
        begins()
        again = _wrong(evolve(case, changed=(case.changed[0], content)), name, seed)
        return not isinstance(again, str) and again.promise == found.promise

    least = minimised(case.changed[1], still_fails)
    again = _wrong(evolve(case, changed=(case.changed[0], least)), name, seed)
    told = found if isinstance(again, str) else again
    return evolve(told, content=f"# {case.changed[0]}\n{least.decode('utf-8', 'backslashreplace')}")


def _wrong(case: Case, name: Name, seed: int) -> Failure | str:
    try:
        return judged(case, Random(f"{seed} facts {name}"))
    except Nonsense as nonsense:
        return Failure(name, nonsense.promise, str(nonsense), "")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = "".join(traceback.format_exception(error)[-12:])
        return Failure(name, f"{type(error).__name__} at {os.path.basename(where.filename)}:{where.name}", told, "")


def minimised(content: bytes, still_fails: Callable[[bytes], bool]) -> bytes:
    """The file without each run of lines that its failure does not need; halves first, single lines last."""
    lines = content.splitlines(keepends=True)
    size, tries = max(len(lines) // 2, 1), 150
    while size:
        start = 0
        while start < len(lines) and tries:
            shorter = lines[:start] + lines[start + size :]
            tries -= 1
            if still_fails(b"".join(shorter)):
                lines = shorter
            else:
                start += size
        size //= 2
    return b"".join(lines)
