"""The GitHub workflow and the pre-commit hooks that people copy say only what the command line understands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from engine.cli.main import app

REPOSITORY = Path(__file__).parents[2]
WORKFLOW = REPOSITORY / "deploy" / "github" / "policy.yml"
HOOKS = REPOSITORY / ".pre-commit-hooks.yaml"


def workflow() -> Any:
    return yaml.safe_load(WORKFLOW.read_text())


def steps() -> list[dict[str, Any]]:
    return list(workflow()["jobs"]["policy"]["steps"])


def commands(script: str) -> list[list[str]]:
    """The words of each nodewright command of a script, up to where the shell takes over."""
    found = []
    for line in script.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["nodewright"]:
            end = next((at for at, word in enumerate(words) if word in (">", ">>", "||", "&&", "|")), len(words))
            found.append(words[1:end])
    return found


OF_THE_WORKFLOW = [words for step in steps() for words in commands(step.get("run", ""))]
OF_THE_HOOKS = [words for hook in yaml.safe_load(HOOKS.read_text()) for words in commands(hook["entry"])]


def test_the_workflow_runs_check_test_and_diff() -> None:
    assert [words[0] for words in OF_THE_WORKFLOW] == ["check", "test", "test", "diff"]
    outputs = [words[words.index("-o") + 1] for words in OF_THE_WORKFLOW if "-o" in words]
    assert outputs == ["github", "junit", "markdown"]


@pytest.mark.parametrize("words", [*OF_THE_WORKFLOW, *OF_THE_HOOKS], ids=" ".join)
def test_each_command_is_understood(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    values = {**workflow()["env"], "BASE": "0123abc"}
    written = [re.sub(r"\$(\w+)", lambda name: str(values[name[1]]), word) for word in words]
    command = typer.main.get_command(app).commands[written[0]]  # type: ignore[attr-defined]
    with command.make_context(written[0], written[1:]) as context:
        assert context.params
    told = CliRunner().invoke(app, [written[0], "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout
    assert [option for option in written if option.startswith("-") and option not in told] == []


def test_a_command_that_is_not_understood_would_be_found() -> None:
    command = typer.main.get_command(app).commands["test"]  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="No such option"):
        command.make_context("test", ["--coverage", "90"])


def test_the_workflow_writes_nothing_but_its_one_comment() -> None:
    written = workflow()
    assert written["permissions"] == {"contents": "read", "pull-requests": "write"}
    with_token = [step["name"] for step in steps() if "GH_TOKEN" in step.get("env", {})]
    assert with_token == ["Comment"]
    # What a person who opens a pull request may choose never becomes part of a script.
    assert not [step for step in steps() if "${{" in step.get("run", "")]
    assert [
        step["uses"] for step in steps() if "uses" in step and not re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
    ] == []


@pytest.mark.parametrize(
    ("written", "method"),
    [("", "POST repos/o/r/issues/7/comments"), ("11\n12\n", "PATCH repos/o/r/issues/comments/11")],
)
@pytest.mark.parametrize("length", [10, 70_000])
def test_the_comment_is_made_once_and_then_changed(tmp_path: Path, written: str, method: str, length: int) -> None:
    script = next(step["run"] for step in steps() if step.get("name") == "Comment")
    stub = tmp_path / "gh"
    said = f"if [ \"$2\" = --paginate ]; then printf '{written}'; exit; fi"
    stub.write_text(f'#!/bin/sh\n{said}\necho "$3 $4" > called\ncp comment.md sent\n')
    stub.chmod(0o755)
    (tmp_path / "comment.md").write_text("x" * length)
    here = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "o/r", "NUMBER": "7", "MARK": "mark"}
    subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=here, check=True, timeout=30)
    assert (tmp_path / "called").read_text() == f"{method}\n"
    assert len((tmp_path / "sent").read_text()) <= 65_000


def test_the_hooks_look_at_policy_and_stack_files() -> None:
    by_id = {hook["id"]: re.compile(hook["files"]) for hook in yaml.safe_load(HOOKS.read_text())}
    for name in ("policies/rules/gold.test.yaml", "gpu/stacks/Pulumi.prod.yaml"):
        assert all(files.search(name) for files in by_id.values())
    assert by_id["nodewright-test"].search("policies/snapshots/monday.json")
    assert not any(files.search("docs/policies.md") for files in by_id.values())
