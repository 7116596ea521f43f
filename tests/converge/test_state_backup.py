"""A state file that was cut off is replaced by the one before it, and never under a process that may be writing it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.converge.state_backup import take_up_backup


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    folder = tmp_path / ".pulumi" / "stacks" / "nodewright"
    folder.mkdir(parents=True)
    (folder / "prod.json").write_text('{"version": 3, "checkp')
    (folder / "prod.json.bak").write_text('{"version": 3}')
    return folder


def taken_up(root: Path, *, holder_is_dead: bool = True) -> bool:
    return take_up_backup({"PULUMI_BACKEND_URL": root.as_uri()}, "prod", lambda holder: holder_is_dead)


def lock(root: Path) -> None:
    file = root / ".pulumi" / "locks" / "organization" / "nodewright" / "prod" / "1.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"pid": 1, "username": "ana", "hostname": "here", "timestamp": "now"}))


def test_the_backup_takes_the_damaged_files_place_and_that_is_kept(stacks: Path, tmp_path: Path) -> None:
    assert taken_up(tmp_path)

    assert json.loads((stacks / "prod.json").read_text()) == {"version": 3}
    assert (stacks / "prod.json.damaged").read_text() == '{"version": 3, "checkp'


def test_without_a_whole_backup_the_stack_counts_as_lost(stacks: Path, tmp_path: Path) -> None:
    (stacks / "prod.json.bak").write_text("")

    assert taken_up(tmp_path)
    assert not (stacks / "prod.json").exists()


def test_a_whole_file_is_never_touched(stacks: Path, tmp_path: Path) -> None:
    (stacks / "prod.json").write_text('{"version": 4}')

    assert not taken_up(tmp_path)
    assert json.loads((stacks / "prod.json").read_text()) == {"version": 4}


@pytest.mark.parametrize(("is_dead", "done"), [(True, True), (False, False)])
def test_a_file_under_the_lock_of_a_process_that_may_live_is_left_alone(
    stacks: Path, tmp_path: Path, is_dead: bool, done: bool
) -> None:
    lock(tmp_path)

    assert taken_up(tmp_path, holder_is_dead=is_dead) is done
    assert (stacks / "prod.json.damaged").exists() is done


@pytest.mark.parametrize("url", ["s3://bucket/states", "", "https://api.example.com"])
def test_a_backend_elsewhere_is_not_ours_to_mend(stacks: Path, url: str) -> None:
    assert not take_up_backup({"PULUMI_BACKEND_URL": url}, "prod", lambda holder: True)
