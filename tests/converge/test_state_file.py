"""A stack's state as its file tells it: the same as an export, and nothing where the CLI has to be asked."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.converge.state import parse_state
from engine.converge.state_file import StateFile
from tests.converge.states import STACK, exported, instance, providers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the file backend keeps the stack."""
    folder = tmp_path / ".pulumi" / "stacks" / "nodewright"
    folder.mkdir(parents=True)
    return folder / f"{STACK}.json"


def checkpoint(export: str, **more: Any) -> str:
    kept = {"stack": f"organization/nodewright/{STACK}", "latest": json.loads(export)["deployment"]}
    return json.dumps({"version": 3, "checkpoint": kept, **more})


def state_file(file: Path) -> StateFile:
    return StateFile({"PULUMI_BACKEND_URL": file.parents[3].as_uri()}, STACK)


HELD = exported(*providers(), instance("gpu-1", "i-1"), pending=["gpu-2"])


def test_a_file_reads_as_its_export_does(file: Path) -> None:
    file.write_text(checkpoint(HELD))

    assert state_file(file).state() == parse_state(STACK, HELD)


def test_a_stack_that_never_was_updated_holds_nothing(file: Path) -> None:
    file.write_text(json.dumps({"version": 3, "checkpoint": {"stack": "organization/nodewright/test"}}))

    state = state_file(file).state()

    assert state is not None
    assert (state.is_empty, state.pending) == (True, ())


def test_a_compressed_file_is_read_and_of_two_files_neither(file: Path) -> None:
    file.with_name(f"{STACK}.json.gz").write_bytes(gzip.compress(checkpoint(HELD).encode()))
    reader = state_file(file)
    assert reader.state() == parse_state(STACK, HELD)

    file.write_text(checkpoint(HELD))
    assert reader.state() is None


def test_an_unchanged_file_is_not_read_again_and_a_changed_one_is(file: Path) -> None:
    file.write_text(checkpoint(HELD))
    reader = state_file(file)
    first = reader.state()
    assert reader.state() is first

    # In place and of the same length, as the backend writes it.
    before = file.stat()
    file.write_text(checkpoint(HELD).replace("i-1", "i-9"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    second = reader.state()

    assert second is not None
    assert second.instances_by_claim()["gpu-1"].id == "i-9"


@pytest.mark.parametrize(
    "content",
    [
        "",
        checkpoint(HELD)[:200],
        "[]",
        json.dumps({"version": 3, "deployment": {}}),
        checkpoint(HELD).replace('"version": 3', '"version": 4'),
        checkpoint(HELD, features=["snippets"]),
        checkpoint(HELD).replace('"resources": [', '"resources": ["text", '),
    ],
    ids=["empty", "cut off", "no object", "no checkpoint", "a later version", "with features", "an odd resource"],
)
def test_what_is_damaged_or_unknown_is_left_to_the_cli(file: Path, content: str) -> None:
    file.write_text(content)

    assert state_file(file).state() is None


def test_a_missing_file_is_left_to_the_cli(file: Path) -> None:
    assert state_file(file).state() is None


@pytest.mark.parametrize("url", ["s3://bucket", "https://api.example.com", "", "file://~", "file://relative/folder"])
def test_a_backend_that_is_no_folder_by_its_whole_path_is_left_to_the_cli(url: str) -> None:
    assert StateFile({"PULUMI_BACKEND_URL": url}, STACK).state() is None
