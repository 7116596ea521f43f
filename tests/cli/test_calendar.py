"""``nodewright calendar``: from the project's files alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.cli.main import app
from tests.policy.texts import CLASS, POOL

RULES = """\
apiVersion: nodewright.dev/v1alpha1
kind: Calendar
metadata: {name: office}
spec:
  windows:
    - {name: night, schedule: "0 22 * * 1-5", duration: 8h, timeZone: Europe/Berlin}
---
apiVersion: nodewright.dev/v1alpha1
kind: DisruptionBudget
metadata: {name: elastic-at-night}
spec:
  match: {nodePools: [gpu-elastic]}
  reasons: [Underutilized, Drifted]
  windows: [night]
  candidate: node.age > duration("2h")
  budget: nodePool.nodes * 15 / 100
  maxPerWindow: 4
  message: serving nodes are replaced at night, and not too many of them
"""


STACK = """\
config:
  nodewright:region: us-east-1
  nodewright:cluster:
    name: test
    endpoint: https://test.eks.example.com
    certificateAuthority: dGVzdA==
    serviceCidr: 10.100.0.0/16
  nodewright:network:
    mode: owned
    zones: {us-east-1b: use1-az1}
  nodewright:policies: [policies]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    pool = POOL.replace("name: gpu\n", "name: gpu-elastic\n", 1)
    files = {
        "Pulumi.yaml": "name: test\nruntime: python\n",
        "stacks/Pulumi.one.yaml": STACK,
        "stacks/Pulumi.two.yaml": STACK,
        "policies/pools.yaml": f"{CLASS}---\n{pool}---\n{pool.replace('gpu-elastic', 'gpu-core')}",
        "policies/night.yaml": RULES,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def calendar(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["-C", str(project), "calendar", *arguments], env={"NO_COLOR": "1"})


def test_a_week_is_shown_with_windows_on_their_own_clock(project: Path) -> None:
    ended = calendar(project, "one", "--at", "2026-11-30T10:00", "--pool", "gpu-elastic", "--nodes", "20")
    assert ended.exit_code == 0, ended.stderr
    assert "Mon 30 Nov 10:00 to Mon 07 Dec 10:00 UTC" in ended.stdout
    assert "Mon 22:00 to Tue 06:00        2  10%; 4 in this opening by" in ended.stdout
    assert "gpu-core" not in ended.stdout


def test_a_time_in_a_zone_is_the_same_moment(project: Path) -> None:
    def told(at: str) -> object:
        return json.loads(calendar(project, "one", "--at", at, "--days", "1", "-o", "json").stdout)

    assert told("2026-11-30T11:00+01:00") == told("2026-11-30T10:00")


def test_without_an_environment_all_are_shown(project: Path) -> None:
    told = json.loads(calendar(project, "--at", "2026-11-30T10:00", "--days", "1", "-o", "json").stdout)
    assert [each["environment"] for each in told["calendars"]] == ["one", "two"]
    assert "nothing is published here yet" in told["calendars"][0]["sizes"]


def test_markdown_is_for_a_pull_request(project: Path) -> None:
    ended = calendar(project, "one", "--at", "2026-11-30T10:00", "--days", "1", "--nodes", "20", "--markdown")
    night = "Mon 30 Nov 21:00 | Tue 01 Dec 05:00 | Mon 22:00 to Tue 06:00"
    assert f"| Underutilized, Drifted | {night} | 2 | 10%; 4 in this opening by elastic-at-night |" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "there is no environment 'nowhere'"),
        (("one", "--pool", "gpu-elastc"), "there is no node pool gpu-elastc"),
        (("one", "--at", "tomorrow"), "'tomorrow' is no time"),
        (("one", "--at", "9999-12-31T23:59"), "the year of '9999-12-31T23:59' is not in 2000 to 2999"),
        (("one", "--at", "0001-01-01T00:00+14:00"), "the year of '0001-01-01T00:00+14:00' is not in 2000 to 2999"),
    ],
)
def test_what_is_not_there_is_told(project: Path, arguments: tuple[str, ...], words: str) -> None:
    ended = calendar(project, *arguments)
    assert ended.exit_code == 1
    assert words in ended.stderr
