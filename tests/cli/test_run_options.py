"""Options of ``nodewright run`` that cannot be meant: an ordinary usage error that names the option."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli.main import app

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--every", "3x"], "--every"),
        (["--jitter", "120%"], "--jitter"),
        (["--metrics-address", "nowhere"], "--metrics-address"),
        (["--batch-idle", "3s", "--batch-max", "2s"], "--batch-idle"),
        (["--batch-idle", "5s"], "--batch-idle"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused_by_name_and_is_no_fault_of_ours(
    options: list[str], named: str
) -> None:
    ended = CliRunner().invoke(
        app, ["--project", str(PROJECT), "run", "sandbox", *options], env={"TERMINAL_WIDTH": "200", "NO_COLOR": "1"}
    )

    assert ended.exit_code != 0
    assert named in ended.output
    assert "Usage" in ended.output
    assert "internal" not in ended.output
