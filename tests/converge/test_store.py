"""The file store: publishing is atomic, exclusive and never loses what was published."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from attrs import evolve

from engine.converge.lease import LeaseHeld
from engine.converge.store import DOCUMENTS_KEPT, FileStore, StoredFileUnreadable, StoreUnavailable, VersionConflict
from engine.model.ledger import Ledger
from engine.model.outcome import Outcome
from tests.converge.documents import NOON, claim, document

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path, "test")


def test_nothing_was_ever_published_in_an_empty_folder(store: FileStore) -> None:
    assert store.document() is None


def test_what_is_published_is_read_back_equal(store: FileStore) -> None:
    published = document(claim("gpu-1"), claim("gpu-2", zone="us-east-1b"))
    store.publish(published)
    assert store.document() == published


def test_the_highest_number_is_the_published_document(store: FileStore) -> None:
    for version in (1, 2, 3):
        store.publish(document(claim(f"gpu-{version}"), version=version))
    found = store.document()
    assert found is not None
    assert [each.name for each in found.claims] == ["gpu-3"]


@pytest.mark.parametrize("version", [1, 2, 4])
def test_only_the_next_version_can_be_published(store: FileStore, version: int) -> None:
    for standing in (1, 2):
        store.publish(document(version=standing))
    with pytest.raises(VersionConflict) as conflict:
        store.publish(document(claim("gpu-1"), version=version))
    assert (conflict.value.offered, conflict.value.current) == (version, 2)
    assert store.document() == document(version=2)


def test_of_many_writers_at_once_exactly_one_wins(store: FileStore) -> None:
    store.publish(document())
    writers, barrier, won = 8, threading.Barrier(8), []

    def write(number: int) -> None:
        offered = document(claim(f"gpu-{number}"), version=2)
        barrier.wait()
        try:
            store.publish(offered)
        except VersionConflict:
            return
        won.append(offered)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.document()] == won


def test_a_writer_that_slept_through_the_pruned_history_does_not_win(store: FileStore) -> None:
    for version in range(1, DOCUMENTS_KEPT + 6):
        store.publish(document(version=version))
    slow = document(claim("gpu-late"), version=3)
    with pytest.raises(VersionConflict):
        store._link_into_place(slow)
    newest = store.document()
    assert newest is not None
    assert newest.version == DOCUMENTS_KEPT + 5


def test_the_last_documents_are_kept_as_history(store: FileStore) -> None:
    for version in range(1, DOCUMENTS_KEPT + 4):
        store.publish(document(version=version))
    kept = sorted(file.name for file in (store.folder / "documents").iterdir())
    assert len(kept) == DOCUMENTS_KEPT
    assert kept[0] == "00000004.json"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"environment":"test"}'])
def test_a_damaged_newest_document_is_an_error_that_names_the_file(store: FileStore, content: bytes) -> None:
    store.publish(document())
    store.publish(document(version=2))
    newest = store.folder / "documents" / "00000002.json"
    newest.write_bytes(content)
    with pytest.raises(StoredFileUnreadable, match=r"00000002\.json") as error:
        store.document()
    assert "version 1" in error.value.hints[0]


def test_a_document_under_another_number_is_an_error(store: FileStore) -> None:
    store.publish(document())
    documents = store.folder / "documents"
    (documents / "00000001.json").rename(documents / "00000007.json")
    with pytest.raises(StoredFileUnreadable, match="holds version 1"):
        store.document()


def test_a_killed_writer_leaves_a_store_that_reads_and_takes_the_next_document(tmp_path: Path) -> None:
    store = FileStore(tmp_path, "test")
    store.publish(document())
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from engine.converge.store import FileStore\n"
        "from tests.converge.documents import claim, document\n"
        "store = FileStore(Path(sys.argv[1]), 'test')\n"
        "version = store.document().version\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    version += 1\n"
        "    store.publish(document(claim('gpu-1'), version=version))\n"
    )
    for pause_seconds in (0.0, 0.003, 0.011):
        writer = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], cwd=PROJECT, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(pause_seconds)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        found = store.document()
        assert found is not None
        store.publish(evolve(found, version=found.version + 1))
        leftovers = [file.name for file in (store.folder / "documents").glob(".*")]
        assert leftovers == []


def test_a_store_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "documents").write_text("a file, not a folder")
    with pytest.raises(StoreUnavailable, match="documents"):
        FileStore(tmp_path, "test").document()


def test_a_damaged_ledger_is_set_aside_with_a_warning(store: FileStore) -> None:
    store.write_ledger(Ledger(empty_since={"gpu-1": NOON}))
    assert store.ledger().ledger == Ledger(empty_since={"gpu-1": NOON})
    (store.folder / "ledger.json").write_text("{")
    read = store.ledger()
    assert read.ledger == Ledger()
    assert read.warning is not None
    assert "ledger.json" in read.warning
    assert (store.folder / "ledger.unreadable.json").read_text() == "{"
    assert store.ledger().warning is None


def test_an_outcome_is_read_back_equal(store: FileStore) -> None:
    outcome = Outcome(environment="test", version=3, finished_at=NOON, is_settled=True)
    assert store.outcome() is None
    store.write_outcome(outcome)
    assert store.outcome() == outcome


def test_a_second_lease_is_refused_and_names_the_holder(store: FileStore) -> None:
    with store.lease(), pytest.raises(LeaseHeld) as held, store.lease():
        pass
    assert held.value.holder is not None
    assert held.value.holder.pid == os.getpid()
    assert f"process {os.getpid()}" in str(held.value)


def test_a_lease_is_free_again_after_its_block_and_after_a_kill(tmp_path: Path) -> None:
    store = FileStore(tmp_path, "test")
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from engine.converge.store import FileStore\n"
        "with FileStore(Path(sys.argv[1]), 'test').lease():\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LeaseHeld, match=f"process {holder.pid}"), store.lease():
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with store.lease() as mine:
        assert mine.pid == os.getpid()
    assert json.loads((store.folder / "lease").read_text() or "{}") == {}
