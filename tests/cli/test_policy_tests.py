"""``nodewright test`` and ``nodewright check -o github``: exit codes, and what each output holds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from attrs import evolve, frozen
from typer.testing import CliRunner, Result

from engine.cli.main import app
from engine.model.canonical import canonical_json
from engine.model.snapshot import CloudFacts
from tests.builders import NOON, pod, snapshot, toleration
from tests.engine.workspaces import NODE_POOL, REPOSITORY

RULE = """\
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: no-small}
spec:
  params:
    least: {type: int, default: 4}
  require: instanceType.gpuCount >= params.least && instanceType.arch == "amd64"
  message: whole machines only
"""
SECOND = RULE.replace("no-small", "no-tiny").replace("default: 4", "default: 1")
GUARDRAIL = """\
apiVersion: nodewright.dev/v1alpha1
kind: Guardrail
metadata: {name: few}
spec:
  blocks: [add]
  expression: plan.launchCount <= 0
  message: nothing may be launched
"""
ENGINES = ("cel-expr", "cel-python")
TEST = """\
apiVersion: nodewright.dev/v1alpha1
kind: PolicyTest
metadata: {name: small}
spec:
  cases:
    - name: four GPUs will do
      rule: no-small
      given: {instanceType: {use: g6e.12xlarge}}
      expect: eligible
    - name: one GPU will not
      rule: no-small
      given: {instanceType: {use: g6e.xlarge}}
      expect: excluded
      message: whole machines
"""
FAILING = TEST.replace("use: g6e.xlarge", "use: g6e.24xlarge")


@frozen
class Project:
    root: Path

    def write(self, name: str, text: str) -> Path:
        file = self.root / "policies" / "rules" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def ran(self, *arguments: str, **variables: str) -> Result:
        unset = {"GITHUB_WORKSPACE": ""}
        return CliRunner().invoke(app, ["-C", str(self.root), *arguments], env={"NO_COLOR": "1", **unset, **variables})

    def test(self, *arguments: str) -> Result:
        return self.ran("test", "--env", "sandbox", *arguments)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "repository" / "gpu"
    shutil.copytree(REPOSITORY / "stacks", root / "stacks")
    shutil.copy(REPOSITORY / "Pulumi.yaml", root)
    stack = root / "stacks" / "Pulumi.sandbox.yaml"
    stack.write_text(stack.read_text().replace("nodewright:defaultNodeClass: gpu-al2023", ""))
    (root / "policies").mkdir()
    (root / "policies" / "pools.yaml").write_text(NODE_POOL)
    made = Project(root)
    made.write("small.yaml", RULE)
    made.write("small.test.yaml", TEST)
    return made


def scenario(expect: str, more: str = "") -> str:
    head = TEST.partition("spec:")[0]
    return f"{head}spec:\n  scenarios:\n    - {{name: two wait, snapshot: ../seen.json, expect: {expect}{more}}}\n"


def seen(project: Project) -> None:
    waiting = [
        evolve(pod(name, gpu=1, tolerations=(toleration("nvidia.com/gpu"),)), created_at=NOON) for name in ("a", "b")
    ]
    cloud = CloudFacts(images={"gpu": {"nvidia-amd64": "ami-1"}})
    (project.root / "policies" / "seen.json").write_bytes(canonical_json(snapshot(pods=waiting, cloud=cloud)))


def test_a_link_to_nowhere_is_one_finding_of_check_among_the_others(project: Project) -> None:
    (project.root / "policies" / "lost.yaml").symlink_to("nowhere.yaml")
    project.write("small.yaml", RULE.replace("gpuCount", "gpuCounts"))
    (project.root / "policies" / "rules" / "folder.yaml").mkdir()

    report = project.ran("check", "sandbox", "-o", "json")
    shown = project.ran("check", "sandbox")

    findings = {each["file"]: each for each in json.loads(report.stdout)["findings"]}
    lost = findings["policies/lost.yaml"]
    assert (report.exit_code, shown.exit_code) == (2, 2)
    assert (lost["rule"], lost["line"], lost["hint"]) == ("unreadable-file", 1, "correct or remove the symbolic link")
    assert lost["message"] == "the file cannot be read: No such file or directory"
    assert findings["policies/rules/folder.yaml"]["rule"] == "unreadable-file"
    assert "gpuCounts" in findings["policies/rules/small.yaml"]["message"]
    assert "policies/lost.yaml:1:1" in shown.stdout


def test_all_cases_that_pass_exit_0_and_are_listed(project: Project) -> None:
    ran = project.test()
    assert ran.exit_code == 0, ran.output
    assert "  ✓ one GPU will not (no-small)\n" in ran.stdout
    assert "sandbox, cel-expr: 2 cases passed, 0 failed" in ran.stdout


def test_a_case_that_fails_exits_1_and_says_why_and_where(project: Project) -> None:
    project.write("small.test.yaml", FAILING)
    ran = project.test()
    assert ran.exit_code == 1
    expected = "policies/rules/small.test.yaml:10:13: expected excluded, and no-small says eligible\n"
    assert expected in ran.stdout
    assert "instanceType.gpuCount → 4\n" in ran.stdout


def test_what_no_case_makes_true_and_false_is_shown_under_a_caret(project: Project) -> None:
    ran = project.test("--cover", "90")
    assert ran.exit_code == 1
    assert (
        f"""\
  no-small  83 %  5 of 6 outcomes, 2 cases
    policies/rules/small.yaml:7:53: never false: instanceType.arch == "amd64"
  |   require: instanceType.gpuCount >= params.least && instanceType.arch == "amd64"
  | {" " * 52}^
"""
        in ran.stdout
    )
    assert "1 rule covered less than 90 %" in ran.stdout
    assert project.test("--cover", "83").exit_code == 0


def test_a_rule_without_a_case_is_listed_and_fails_where_tests_are_required(project: Project) -> None:
    project.write("tiny.yaml", SECOND)
    listed, required = project.test(), project.test("--require-tests")
    assert (listed.exit_code, required.exit_code) == (0, 1)
    for ran in (listed, required):
        assert "rules without a case that evaluates them:\n  policies/rules/tiny.yaml: no-tiny\n" in ran.stdout
    assert "1 rule without a case" in required.stdout


def test_only_the_tests_that_are_asked_for_run(project: Project) -> None:
    project.write("tiny.yaml", SECOND)
    file = project.write("tiny.test.yaml", FAILING.replace("no-small", "no-tiny"))
    assert "0 cases passed" not in project.test(str(file.with_name("small.test.yaml")), "--require-tests").stdout
    assert project.test(str(file.with_name("small.test.yaml")), "--require-tests").exit_code == 0
    assert project.test("--run", "no-small", "--require-tests").exit_code == 0
    assert project.test("--run", "no-tiny").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--run", "nothing of the kind"), "no case has 'nothing of the kind' in its name"),
        (("--cel-engine", "cel-rust"), "there is no CEL engine 'cel-rust'"),
        (("nowhere",), "does not exist"),
    ],
)
def test_what_runs_nothing_fails(project: Project, arguments: tuple[str, ...], words: str) -> None:
    ran = project.test(*arguments)
    assert (ran.exit_code, words in ran.output) == (1, True), ran.output


def test_files_that_are_not_valid_exit_2(project: Project) -> None:
    project.write("bad.test.yaml", TEST.replace("use: g6e.xlarge", "use: g6e.xxlarge"))
    bad_test = project.test()
    project.write("small.yaml", RULE.replace("gpuCount", "gpus"))
    bad_rule = project.test()
    assert (bad_test.exit_code, bad_rule.exit_code) == (2, 2)
    assert "policies/rules/bad.test.yaml:12:35: error unknown-instance-type" in bad_test.stdout
    assert "policies/rules/small.yaml:7:25: error cel-unknown-name" in bad_rule.stdout
    (error,) = ElementTree.fromstring(project.test("-o", "junit").stdout).iter("error")
    assert error.attrib["message"].startswith("policies/rules/small.yaml:7:25: error cel-unknown-name")
    assert json.loads(project.test("-o", "json").stdout)["passes"] is False


def test_both_engines_come_to_the_same(project: Project) -> None:
    first, second = (json.loads(project.test("--cel-engine", name, "-o", "json").stdout) for name in ENGINES)
    assert [first.pop("engine"), second.pop("engine")] == list(ENGINES)
    assert [first.pop("summary"), second.pop("summary")] == [
        f"sandbox, {name}: 2 cases passed, 0 failed" for name in ENGINES
    ]
    assert first == second
    assert first["passes"] is True


def test_the_stacks_parameters_count(project: Project) -> None:
    stack = project.root / "stacks" / "Pulumi.sandbox.yaml"
    params = "config:\n  nodewright:params:\n    no-small: {least: 5}"
    stack.write_text(stack.read_text().replace("config:", params))
    assert "expected eligible, and no-small says excluded" in project.test().stdout


def test_junit_tells_failures_errors_and_thresholds(project: Project) -> None:
    project.write("small.test.yaml", FAILING.replace("four GPUs will do", "four <GPUs> & \\u0001"))
    project.write("tiny.yaml", SECOND)
    ran = project.test("-o", "junit", "--cover", "100", "--require-tests")
    suites = ElementTree.fromstring(ran.stdout)
    told = {
        suite.attrib["name"]: [(case.attrib["name"], [each.tag for each in case]) for case in suite.findall("testcase")]
        for suite in suites.findall("testsuite")
    }
    assert ran.exit_code == 1
    assert told == {
        "policies/rules/small.test.yaml": [("four <GPUs> & \\u0001", []), ("one GPU will not", ["failure"])],
        "coverage": [("no-small", ["failure"]), ("no-tiny", ["failure"])],
        "every rule has a case": [("no-small", []), ("no-tiny", ["failure"])],
    }
    assert (suites.attrib["tests"], suites.attrib["failures"], suites.attrib["errors"]) == ("6", "4", "0")


def test_a_file_that_is_not_valid_is_an_error_in_junit(project: Project) -> None:
    project.write("small.test.yaml", "kind: NodePool")
    ran = project.test("-o", "junit")
    (error,) = ElementTree.fromstring(ran.stdout).iter("error")
    assert ran.exit_code == 2
    assert error.attrib["message"].startswith("policies/rules/small.test.yaml:1:7: error wrong-kind: ")


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("{launches: 1, removals: 0, unplaced: 0}", ""),
        ("{launches: 2}", "expected 2 launches, the plan has 1"),
        ('{addedUsdPerHour: "0.01"}', "expected $0.01 added an hour, the plan adds $"),
        ("{messages: [never said]}", "nothing that the plan tells has 'never said' in it"),
    ],
)
def test_a_scenario_holds_a_whole_plan_to_what_it_expects(project: Project, expect: str, problem: str) -> None:
    seen(project)
    project.write("small.test.yaml", scenario(expect))
    ran = project.test()
    assert ran.exit_code == (1 if problem else 0), ran.output
    assert problem in ran.stdout


def test_a_scenario_finds_what_rules_say_of_the_plan(project: Project) -> None:
    seen(project)
    project.write("few.yaml", GUARDRAIL)
    project.write("small.test.yaml", scenario("{launches: 0, messages: [nothing may be launched]}"))
    assert project.test().exit_code == 0


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("", "6:34: error bad-snapshot: "),
        (", environment: nowhere", "6:84: error bad-environment: "),
    ],
)
def test_a_scenario_that_cannot_be_run_is_an_error_at_its_place(project: Project, more: str, place: str) -> None:
    if more:
        seen(project)
    project.write("small.test.yaml", scenario("{launches: 1}", more))
    ran = project.test()
    assert ran.exit_code == 2, ran.output
    assert f"policies/rules/small.test.yaml:{place}" in ran.stdout


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_scenario_at_the_end_of_the_calendar_passes_nothing(project: Project, at: str) -> None:
    seen(project)
    project.write("small.test.yaml", scenario("{launches: 7}", f', at: "{at}"'))
    ran = project.test()
    assert ran.exit_code in (1, 2), ran.output
    assert "internal" not in ran.output


def test_findings_become_workflow_commands_from_the_top_of_the_repository(project: Project) -> None:
    project.write("small.yaml", RULE.replace("gpuCount", "gpus"))
    inside = project.ran("check", "sandbox", "-o", "github", GITHUB_WORKSPACE=str(project.root.parent))
    alone = project.ran("check", "sandbox", "-o", "github")
    assert (inside.exit_code, alone.exit_code) == (2, 2)
    *_, last = alone.stdout.splitlines()
    assert last == (
        "::error file=policies/rules/small.yaml,line=7,col=25,title=cel-unknown-name"
        "::instanceType has no field gpus%0A→ did you mean vcpus?"
    )
    assert inside.stdout.splitlines()[-1] == last.replace("file=", "file=gpu/")
    assert alone.stdout.startswith("::warning file=policies/pools.yaml,line=")
