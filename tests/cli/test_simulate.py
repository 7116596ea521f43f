"""``nodewright simulate``: the project's files and a trace, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.cli.main import app
from tests.cli.test_calendar import STACK
from tests.policy.texts import CLASS, POOL

TRACE = """\
name,arrival,duration,cpu,memory,gpu,selector,tolerations,count
llm,60,2h,3,10Gi,1,team=search,nvidia.com/gpu;workload-type,3
other,5m,10m,3,10Gi,1,team=nobody,,1
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "Pulumi.yaml": "name: test\nruntime: python\n",
        "stacks/Pulumi.one.yaml": STACK,
        "policies/pools.yaml": f"{CLASS}---\n{POOL}",
        "proposed/pools.yaml": f"{CLASS}---\n{POOL}",
        "broken/pools.yaml": f"{CLASS}---\n{POOL.replace('nodeClassRef', 'nodeClasRef')}",
        "day.csv": TRACE,
        "bad.csv": TRACE.replace("10Gi", "10Gx"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def simulated(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["-C", str(project), "simulate", "one", *arguments], env={"NO_COLOR": "1"})


def test_two_policies_are_played_over_one_trace_and_told_beside_each_other(project: Path) -> None:
    folders = [str(project / "policies"), str(project / "proposed")]
    page = project / "report.md"
    ended = simulated(
        project,
        "--trace", str(project / "day.csv"), "--days", "0.2", "--report", str(page),
        "--policies", folders[0], "--policies", folders[1], "-o", "json",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert [run["name"] for run in told["runs"]] == folders
    first, second = told["runs"]
    assert (len(first["waits"]["first"]), len(first["waits"]["still"])) == (3, 1)
    assert first["usd"] > 0
    assert {**first, "name": ""} == {**second, "name": ""}
    assert "![cost" in page.read_text()
    assert page.with_suffix(".svg").read_text().startswith("<svg")


def test_the_screen_says_why_pods_got_nothing(project: Path) -> None:
    ended = simulated(project, "--trace", str(project / "day.csv"), "--days", "0.05")
    assert ended.exit_code == 0, ended.stderr
    assert "4 pods come by" in ended.stdout.replace("\n", " ")
    assert "still waiting at the end" in ended.stdout
    assert "refused for: " in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "there is nothing to simulate"),
        (("--trace", "{}/none.csv"), "cannot be read"),
        (("--trace", "{}/bad.csv"), "the unknown unit 'Gx'"),
        (("--trace", "{}/day.csv", "--policies", "{}/none"), "does not exist"),
        (("--trace", "{}/day.csv", "--policies", "{}/broken"), "nodeClasRef"),
        (("--snapshot", "{}/day.csv"), "is no snapshot"),
        (("--trace", "{}/day.csv", "--days", "0.01", "--report", "{}/no/where.md"), "cannot be written"),
        (("--trace", "{}/day.csv", "--report", "/"), "--report: / is no name for a page of Markdown"),
        (("--trace", "{}/day.csv", "--report", "page.svg"), "--report: page.svg is no name for a page"),
    ],
)
def test_what_a_person_got_wrong_is_told(project: Path, arguments: tuple[str, ...], words: str) -> None:
    ended = simulated(project, *(each.format(project) for each in arguments))
    assert ended.exit_code == 1
    assert words in ended.stderr.replace("\n", " ")
    assert "Traceback" not in ended.stderr
