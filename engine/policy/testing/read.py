"""Files of policy tests to values, with every finding of every file told at once."""

from __future__ import annotations

from collections.abc import Sequence

from engine.policy.findings import Findings, ObjectFindings
from engine.policy.located import Fields, Path, fields_at, text_at
from engine.policy.rules.gather import POLICY_TEST
from engine.policy.schema import validated
from engine.policy.testing.cases import Case, PlanExpectation, PolicyTest, Scenario
from engine.policy.testing.parts import CasePart, PolicyTestPart, ScenarioPart
from engine.policy.yaml_reader import read_documents

API_VERSION = "nodewright.dev/v1alpha1"


def read_policy_tests(files: Sequence[tuple[str, bytes]], findings: Findings) -> tuple[PolicyTest, ...]:
    """The tests that can be read of the files, ``(display path, content)``; all that is wrong goes to ``findings``."""
    read: list[PolicyTest] = []
    for file, content in files:
        documents = [each for each in read_documents(file, content, findings) if each.root is not None]
        for document in documents:
            if isinstance(document.root, Fields):
                test = _test(ObjectFindings(findings, document.source, document.root), file)
                read += [test] if test is not None else []
            elif document.root is not None:
                message = "a policy test is a map with apiVersion, kind, metadata and spec"
                findings.error(document.source.position(document.root.place), "wrong-type", message)
    return tuple(read)


def _test(item: ObjectFindings, file: str) -> PolicyTest | None:
    kind = text_at(item.root, ("kind",))
    if kind is not None and kind != POLICY_TEST:
        message = f"a file of this name holds tests, and {kind[:60]!r} is none"
        item.error(("kind",), "wrong-kind", message, f"write kind: {POLICY_TEST}, or move it to a file of another name")
        return None
    document = validated(PolicyTestPart, item)
    if document is None:
        return None
    if document.api_version != API_VERSION:
        message = f"{POLICY_TEST} is of {API_VERSION}, not of {document.api_version[:60]}"
        item.error(("apiVersion",), "wrong-api-version", message, f"write apiVersion: {API_VERSION}")
    spec = document.spec
    if not spec.cases and not spec.scenarios and not item.lacks_part(("spec",)):
        item.error_at_key(("spec",), "no-effect", "this test has neither cases nor scenarios", "add a case")
    # What is wrong was taken out of the tree, so the numbers of what is left are the tree's.
    cases = [_case(part, ("spec", "cases", number), item) for number, part in enumerate(spec.cases)]
    scenarios = [_scenario(part, ("spec", "scenarios", number), item) for number, part in enumerate(spec.scenarios)]
    _check_names([*cases, *scenarios], item)
    return PolicyTest(document.metadata.name, file, tuple(cases), tuple(scenarios))


def _case(part: CasePart, path: Path, item: ObjectFindings) -> Case:
    if part.rule in part.alongside:
        message = f"{part.rule[:60]} is the rule that the case is about, so it is asked anyway"
        item.error((*path, "alongside"), "duplicate-value", message, "name other rules only")
    return Case(
        name=part.name,
        rule=part.rule,
        alongside=tuple(part.alongside),
        expectation=part.expect,
        message=part.message or "",
        path=path,
        item=item,
    )


def _scenario(part: ScenarioPart, path: Path, item: ObjectFindings) -> Scenario:
    expect = part.expect
    wanted = PlanExpectation(
        launches=expect.launches,
        removals=expect.removals,
        unplaced=expect.unplaced,
        added_usd_per_hour=expect.added_usd_per_hour,
        messages=tuple(expect.messages),
    )
    if wanted == PlanExpectation() and not item.lacks_part(path):
        message = "this scenario expects nothing, so it cannot fail"
        item.error_at_key((*path, "expect"), "no-effect", message, "add launches, removals, unplaced or messages")
    return Scenario(
        name=part.name,
        snapshot=part.snapshot,
        at=part.at,
        environment=part.environment,
        expectation=wanted,
        path=path,
        item=item,
    )


def _check_names(cases: Sequence[Case | Scenario], item: ObjectFindings) -> None:
    first: dict[str, Case | Scenario] = {}
    for case in cases:
        if case.name in first:
            message = f"the name {case.name!r} is here twice; the first is in line {first[case.name].position.line}"
            item.findings.error(case.position, "duplicate-name", message, "rename or remove one of them")
        first.setdefault(case.name, case)


def given_fields(case: Case) -> tuple[Fields, ...]:
    """The maps of the defaults and of the case itself, as far as there are any."""
    found = (fields_at(case.item.root, path) for path in case.given)
    return tuple(each for each in found if each is not None)
