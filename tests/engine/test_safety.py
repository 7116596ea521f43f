"""What a run that goes wrong must not do, on the real engine: lose a document, terminate what still serves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.workspaces import Project, claim_of, project

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def converged(tmp_path_factory: pytest.TempPathFactory, toolchain: object) -> Iterator[Project]:
    with project(tmp_path_factory.mktemp("safety")) as made:
        made.scale(2)
        ran = made.up()
        assert ran.code == 0, ran.words
        yield made


@pytest.fixture
def running(converged: Project) -> Iterator[list[str]]:
    """The ids that run before, which must be those that run after."""
    before = [instance["InstanceId"] for instance in converged.instances()]
    yield before
    assert [instance["InstanceId"] for instance in converged.instances()] == before


def test_a_destroy_with_a_wrong_passphrase_destroys_nothing_then_or_later(
    converged: Project, running: list[str]
) -> None:
    ran = converged.nodewright("destroy", "sandbox", "--yes", PULUMI_CONFIG_PASSPHRASE="wrong")

    assert ran.code == 1
    assert "passphrase" in ran.stderr
    again = converged.up()
    assert again.code == 0, again.words
    assert [claim_of(instance) for instance in converged.instances()] == converged.claims()


def test_an_up_without_a_pulumi_says_how_to_get_one_and_publishes_nothing(
    converged: Project, running: list[str], tmp_path: Path
) -> None:
    version = converged.document()["version"]
    converged.scale(3)

    ran = converged.up(PATH="/usr/bin:/bin", XDG_CACHE_HOME=str(tmp_path / "empty"), HOME=str(tmp_path))

    converged.scale(2)
    assert ran.code == 1
    assert "internal" not in ran.stderr
    assert "→" in ran.stderr
    assert converged.document()["version"] == version


def test_lost_documents_are_never_taken_for_a_settled_environment(
    converged: Project, running: list[str], tmp_path: Path
) -> None:
    documents = converged.root / ".nodewright" / "sandbox" / "documents"
    shutil.move(documents, tmp_path / "documents")
    try:
        refused = [converged.up() for _ in range(2)]
    finally:
        shutil.rmtree(documents, ignore_errors=True)
        shutil.move(tmp_path / "documents", documents)

    assert [ran.code for ran in refused] == [1, 1]
    assert "neither keeps nor records as removed" in refused[1].stderr
    assert converged.up().code == 0


def test_a_state_file_that_a_kill_cut_off_is_mended_and_nothing_is_doubled(
    converged: Project, running: list[str]
) -> None:
    state = converged.root / ".nodewright" / "sandbox" / "pulumi" / ".pulumi" / "stacks" / "nodewright" / "sandbox.json"
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    (converged.root / ".nodewright" / "sandbox" / "outcome.json").unlink()

    ran = converged.up()

    assert ran.code == 0, ran.words
    assert [claim_of(instance) for instance in converged.instances()] == converged.claims()
    assert state.with_name("sandbox.json.damaged").exists()
