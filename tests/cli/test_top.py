"""The live view in a terminal, and what is left of it in a pipe."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve
from rich.console import Console

from engine.cli import top
from engine.model.fault import Fault
from engine.reconcile.passes import Proposal
from tests.engine.workspaces import Project, project
from tests.report import live_scene


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with project(tmp_path_factory.mktemp("top"), pods=10) as made:
        yield made


def proposal(version: int = 12) -> Proposal:
    plan = evolve(live_scene.plan(), base_version=version)
    return Proposal(snapshot=live_scene.snapshot(), plan=plan, problems=(), is_settled=True)


def test_piped_it_is_shown_once(sandbox: Project) -> None:
    shown = sandbox.nodewright("top", "sandbox")

    assert shown.code == 0, shown.words
    assert shown.stdout.count("0 running, 10 waiting") == 1
    assert shown.stdout.count("launch-planned") == 1
    assert "\x1b" not in shown.stdout


def test_as_json_it_is_given_once(sandbox: Project) -> None:
    read = sandbox.nodewright("top", "sandbox", "-o", "json").json

    assert read["schema"] == "nodewright.dev/top/v1"
    codes = [each["code"] for each in read["waiting_pods"]]
    assert (codes.count("launch-planned"), codes.count("requirement-mismatch")) == (1, 9)


def test_an_interval_that_is_none_is_an_error(sandbox: Project) -> None:
    shown = sandbox.nodewright("top", "sandbox", "--interval", "soon")

    assert shown.code == 1
    assert "--interval: 'soon' is not a duration" in shown.words


def test_ctrl_c_leaves_cleanly_and_a_look_that_fails_keeps_the_last_screen() -> None:
    file = io.StringIO()
    console = Console(file=file, width=100, height=40, force_terminal=True, color_system=None)
    looks = iter([Fault("the API server gave no answer"), proposal(version=13), KeyboardInterrupt()])

    def look() -> Proposal:
        match next(looks):
            case Proposal() as seen:
                return seen
            case BaseException() as failed:
                raise failed
        raise AssertionError

    top._watch(console, look, proposal(), seconds=0)

    first, failed, recovered = file.getvalue().split("version 1")[1:]
    assert "error: the API server gave no answer" in first
    assert (first[0], failed[0], recovered[0]) == ("2", "2", "3")
    # The terminal gets its own screen and its cursor back.
    assert "\x1b[?1049l" in recovered
    assert "\x1b[?25h" in recovered


def test_the_command_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()

    assert "| `top ENV [--once] [--interval 2s]` |" in text
