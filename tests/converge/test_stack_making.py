"""Making a stack that somebody else makes at the same moment: the loop prepares lanes while others are needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.converge.pulumi_stack import PulumiStack
from engine.model.fault import Fault
from tests.converge.test_pulumi_process import cli

STATE = json.dumps({"version": 3, "deployment": {"manifest": {"time": "2026-11-30T12:00:00Z"}}})
# A stand-in for which the stack exists once the file is there; `init` always comes too late.
BODY = """
import pathlib
here = pathlib.Path(sys.argv[0]).parent
state = here / "state"
if sys.argv[1:3] == ["stack", "init"]:
    if (here / "other").exists():
        (here / "other").rename(state)
    print("error: stack 'organization/nodewright/test.1' already exists")
    sys.exit(1)
if not state.exists():
    print("error: no stack named 'test.1' found")
    sys.exit(1)
print(state.read_text())
"""


def test_a_stack_that_another_thread_was_quicker_to_make_is_made(tmp_path: Path) -> None:
    (tmp_path / "other").write_text(STATE)
    stack = PulumiStack(cli(tmp_path, BODY), "test.1")
    stack.ensure()
    assert stack.exists()


def test_a_stack_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="already exists"):
        PulumiStack(cli(tmp_path, BODY), "test.1").ensure()
