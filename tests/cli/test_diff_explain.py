"""``nodewright diff`` and ``nodewright explain`` as a person runs them: exit codes, output forms, words for faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.cli.main import app
from engine.model.pod import Owner, PodPhase
from tests.builders import pod
from tests.reconcile.policy_repository import MEMORY_RULE, Repository, a_moment, replicas, repository


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The last commit brings a rule; the working tree is as it is there."""
    made = repository(tmp_path_factory.mktemp("diff") / "project")
    made.record(a_moment(replicas(2, "llm", tier="gold")))
    made.commit("begin")
    made.write({"policies/rules/memory.yaml": MEMORY_RULE})
    made.commit("rule")
    return made


def ran(project: Repository, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["-C", str(project.root), *arguments])


def test_effects_exit_with_2_and_none_with_0(project: Repository) -> None:
    with_effect, without = ran(project, "diff", "HEAD~1"), ran(project, "diff", "HEAD")
    assert (with_effect.exit_code, without.exit_code) == (2, 0)
    assert "2 pods lose g6.xlarge, g6.2xlarge on-demand" in " ".join(with_effect.stdout.split())
    assert "No effect on test" in without.stdout


def test_markdown_and_json_are_all_that_stands_on_standard_output(project: Repository) -> None:
    markdown = ran(project, "diff", "HEAD~1", "HEAD", "-o", "markdown").stdout
    report = json.loads(ran(project, "diff", "HEAD~1", "HEAD", "-o", "json").stdout)
    assert markdown.startswith("## Policy: HEAD&#126;1 (")
    assert "| environment | recorded moment |" in markdown
    assert report["environments"][0]["moments"][0]["snapshot"] == "policies/snapshots/monday.json"


def test_a_plan_of_a_recorded_moment_at_another_time_says_so(project: Repository) -> None:
    snapshot = str(project.root / "policies" / "snapshots" / "monday.json")
    shown = ran(project, "plan", "test", "--snapshot", snapshot, "--at", "2999-12-01T02:00Z")
    report = ran(project, "plan", "test", "--snapshot", snapshot, "--at", "2999-12-01T02:00Z", "-o", "json")
    told = " ".join(shown.stdout.split())
    assert "as if the snapshot were taken at Sun 2999-12-01 02:00 UTC; it was at Mon 2026-11-30 12:00 UTC" in told
    assert "as of 2999-12-01 02:00 UTC: 0 nodes" in told
    times = json.loads(report.stdout)
    assert times["decided_at"].startswith("2999-12-01T02:00")
    assert times["recorded_at"].startswith("2026-11-30T12:00")


def test_plan_and_diff_count_the_pods_of_a_moment_alike(tmp_path: Path) -> None:
    made = repository(tmp_path / "project")
    daemon = pod("agent", node="node-1", owner=Owner("DaemonSet", "agent"))
    done = pod("job", node="node-1", phase=PodPhase.SUCCEEDED)
    file = str(made.record(a_moment([*replicas(2), daemon, done])))
    made.commit("begin")

    planned = ran(made, "plan", "test", "--snapshot", file).stdout
    compared = ran(made, "diff", "HEAD", "--snapshot", file).stdout

    counted = "2 pods, 2 waiting, 1 of daemons, 1 done, going or for no pool"
    assert counted in " ".join(planned.split())
    assert counted in " ".join(compared.split())


def test_more_than_a_threshold_fails(project: Repository) -> None:
    over = ran(project, "diff", "HEAD~1", "--fail-on", "more-cost=1.00")
    assert over.exit_code == 1
    assert "over a threshold: +$2.4000/h is more than the $1.0000/h" in " ".join(over.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("diff", "no-such-branch"), "there is no Git revision 'no-such-branch'"),
        (("diff", "HEAD", "--env", "tset"), "did you mean test?"),
        (("diff", "HEAD", "--snapshot", "nowhere.json"), "nowhere.json cannot be read"),
        (("diff", "HEAD", "--fail-on", "cost"), "write more-cost=USD in dollars an hour"),
        (("diff", "HEAD", "--at", "soon"), "'soon' is no time"),
        (("plan", "test", "--at", "2026-12-01"), "--at is for a recorded snapshot"),
        (("explain", "pod", "x", "--reason", "Empty"), "--reason is for budgets"),
        (("explain", "budget", "gpu", "--reason", "boredom"), "it is one of Empty, Underutilized, Drifted, Expired"),
        (("explain", "pod", "x", "--at", "soon"), "'soon' is no time"),
        (("explain", "rule", "x", "nowhere"), "there is no environment 'nowhere'"),
    ],
)
def test_what_a_person_gets_wrong_is_said_and_fails(
    project: Repository, arguments: tuple[str, ...], words: str
) -> None:
    told = ran(project, *arguments)
    assert told.exit_code == 1
    assert words in " ".join(told.output.split())
    assert "Traceback" not in told.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pod", "ml/llm-0"), "instanceType.gpuMemoryGiB >= params.minMem: 22 >= 40 = false"),
        (("rule", "gold-memory"), "keeps 2 pods from 2 types"),
        (("budget", "gpu", "--reason", "empty", "--at", "2026-12-01T09:00"), "Empty at Tue 01 Dec 2026 09:00 UTC"),
    ],
)
def test_a_recorded_moment_is_explained_without_asking_a_cluster(
    project: Repository, arguments: tuple[str, ...], words: str
) -> None:
    snapshot: Path = project.root / "policies" / "snapshots" / "monday.json"
    shown = ran(project, "explain", *arguments, "--snapshot", str(snapshot))
    report = ran(project, "explain", *arguments, "--snapshot", str(snapshot), "-o", "json")
    assert (shown.exit_code, report.exit_code) == (0, 0)
    assert words in shown.stdout
    assert json.loads(report.stdout)["kind"] == arguments[0]
