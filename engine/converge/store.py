"""Where an environment's desired documents live, and the small files beside them.

ROOT/ENVIRONMENT/documents/00000001.json   every published version; the highest number is the published one
                 pin.json                  the proposed plan, if any
                 ledger.json               the memory between passes
                 outcome.json              what became of the last converged document in the environment's own stack
                 outcome.STACK.json        … and in each further lane
                 lease                     who is at work
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from attrs import frozen

from engine.converge.lease import LeaseHolder, held_lease
from engine.model.canonical import UnreadableValue, canonical_json, from_json
from engine.model.document import DesiredDocument
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.outcome import Outcome
from engine.model.plan import Plan

T = TypeVar("T")

DOCUMENTS_KEPT = 50
_NUMBERED = re.compile(r"(\d{8,})\.json")
_UNFINISHED = re.compile(r"\.(\d{8,})\.[0-9a-f]+\.part")


@frozen
class Pin:
    """A proposed document: a plan on disk, with the version that it is based on (0: none was published)."""

    base_version: int
    plan_hash: str
    plan: Plan
    made_at: datetime


@frozen
class LedgerRead:
    """The ledger, and a warning when the stored one could not be used."""

    ledger: Ledger
    warning: str | None = None


class StoreUnavailable(Fault):
    """The store's folder or a file in it cannot be read or written."""


class StoredFileUnreadable(Fault):
    """A stored file is damaged or of another schema. Never taken for an empty one."""

    def __init__(self, file: Path, why: str, hint: str) -> None:
        self.file = file
        super().__init__(f"{file}: {why}", hint)


class VersionConflict(Fault):
    """Somebody else has published in the meantime, or the document is not the next one."""

    def __init__(self, environment: str, offered: int, current: int) -> None:
        self.offered, self.current = offered, current
        super().__init__(
            f"environment {environment!r} stands at version {current}; version {offered} cannot be published over it",
            "make a new plan and apply that one",
        )


class DocumentStore(Protocol):
    """Where desired documents are published, by compare-and-swap: of two writers exactly one wins; and what a pass
    keeps beside them.
    """

    def document(self) -> DesiredDocument | None: ...

    def publish(self, document: DesiredDocument) -> None: ...

    def pin(self) -> Pin | None: ...

    def write_pin(self, pin: Pin) -> None: ...

    def drop_pin(self) -> None: ...

    def ledger(self) -> LedgerRead: ...

    def write_ledger(self, ledger: Ledger) -> None: ...

    def outcome(self) -> Outcome | None: ...

    def outcomes(self) -> Mapping[str, Outcome]: ...

    def write_outcome(self, outcome: Outcome) -> None: ...

    def stamp(self) -> str: ...

    def lease(self) -> AbstractContextManager[LeaseHolder]: ...


class FileStore:
    """A store in a folder of one machine, or of a file system with atomic hard links."""

    def __init__(self, root: Path, environment: str) -> None:
        self.environment = environment
        self.folder = root / environment
        self._documents = self.folder / "documents"

    def document(self) -> DesiredDocument | None:
        """The published document; None only when nothing was ever published.

        Raises StoredFileUnreadable when the newest is damaged, StoreUnavailable when the folder cannot be read.
        """
        version = self._newest_version()
        return self.document_of(version) if version else None

    def document_of(self, version: int) -> DesiredDocument:
        """One published version. Raises StoredFileUnreadable, StoreUnavailable."""
        file = self._document_file(version)
        hint = (
            f"restore this file from a backup, or move it away to fall back to version {version - 1}; "
            "machines that only it names then have to be looked for by their tags"
        )
        document = self._parsed(file, DesiredDocument, hint)
        if (document.version, document.environment) != (version, self.environment):
            why = f"holds version {document.version} of environment {document.environment!r}, not what its name says"
            raise StoredFileUnreadable(file, why, hint)
        return document

    def publish(self, document: DesiredDocument) -> None:
        """Make this document the published one, atomically: after a kill it is there whole, or not at all.

        Raises VersionConflict unless its version is the published one's plus 1; of writers at the same time
        exactly one wins. Raises StoreUnavailable.
        """
        if document.environment != self.environment:
            raise ValueError(f"a document of {document.environment!r} offered to the store of {self.environment!r}")
        current = self._newest_version()
        if document.version != current + 1:
            raise VersionConflict(self.environment, document.version, current)
        with _store_errors(self._documents):
            self._documents.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._link_into_place(document)
            self._prune(document.version)

    def pin(self) -> Pin | None:
        """The proposed plan. Raises StoredFileUnreadable, StoreUnavailable."""
        file = self.folder / "pin.json"
        return self._parsed(file, Pin, "make a new plan; it replaces this file") if _exists(file) else None

    def write_pin(self, pin: Pin) -> None:
        self._write("pin.json", pin)

    def drop_pin(self) -> None:
        with _store_errors(self.folder):
            (self.folder / "pin.json").unlink(missing_ok=True)

    def ledger(self) -> LedgerRead:
        """The memory between passes. One that cannot be read is set aside: losing it costs time, never safety."""
        file = self.folder / "ledger.json"
        if not _exists(file):
            return LedgerRead(Ledger())
        try:
            return LedgerRead(self._parsed(file, Ledger, ""))
        except StoredFileUnreadable as damaged:
            aside = file.with_name("ledger.unreadable.json")
            with _store_errors(file):
                file.replace(aside)
            return LedgerRead(Ledger(), f"{damaged}; it was moved to {aside.name} and an empty one is used")

    def write_ledger(self, ledger: Ledger) -> None:
        self._write("ledger.json", ledger)

    def outcome(self) -> Outcome | None:
        """What became of the document that was converged last. Raises StoredFileUnreadable, StoreUnavailable."""
        file = self.folder / "outcome.json"
        hint = "remove this file; the next converge writes a new one"
        return self._parsed(file, Outcome, hint) if _exists(file) else None

    def outcomes(self) -> Mapping[str, Outcome]:
        """The last outcome of every lane, by its stack. Raises StoredFileUnreadable, StoreUnavailable."""
        hint = "remove this file; the next converge writes a new one"
        with _store_errors(self.folder):
            files = sorted(self.folder.glob("outcome.*json"))
        read = (self._parsed(file, Outcome, hint) for file in files)
        return {outcome.stack or self.environment: outcome for outcome in read}

    def write_outcome(self, outcome: Outcome) -> None:
        """Keep it as the last one of its lane."""
        is_main = outcome.stack in ("", self.environment)
        self._write("outcome.json" if is_main else f"outcome.{outcome.stack}.json", outcome)

    def stamp(self) -> str:
        """Changes when anybody publishes, or writes the ledger or an outcome; cheap. Raises StoreUnavailable."""
        with _store_errors(self.folder):
            kept = sorted([self.folder / "ledger.json", *self.folder.glob("outcome.*json")])
            marks = [f"{file.stat().st_ino}.{file.stat().st_mtime_ns}" for file in kept if file.exists()]
        return " ".join([str(self._newest_version()), *marks])

    @contextlib.contextmanager
    def lease(self) -> Iterator[LeaseHolder]:
        """Be the one process at work on this environment. Raises LeaseHeld, without waiting; StoreUnavailable."""
        with _store_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with held_lease(self.folder / "lease", self.environment) as holder:
            yield holder

    def _newest_version(self) -> int:
        with _store_errors(self._documents):
            return max(self._versions(), default=0)

    def _versions(self) -> list[int]:
        try:
            names = os.listdir(self._documents)
        except FileNotFoundError:
            return []
        return [int(match[1]) for match in map(_NUMBERED.fullmatch, names) if match]

    def _document_file(self, version: int) -> Path:
        return self._documents / f"{version:08d}.json"

    def _link_into_place(self, document: DesiredDocument) -> None:
        file = self._document_file(document.version)
        unfinished = self._documents / f".{document.version:08d}.{secrets.token_hex(8)}.part"
        try:
            _write_through(unfinished, canonical_json(document))
            os.link(unfinished, file)
        except (FileExistsError, FileNotFoundError):
            # Not found: a writer that published this number has swept our unfinished file away.
            raise VersionConflict(self.environment, document.version, self._newest_version()) from None
        finally:
            unfinished.unlink(missing_ok=True)
        if document.version > 1 and not self._document_file(document.version - 1).exists():
            # This number was free only because history had been pruned beyond it.
            file.unlink()
            raise VersionConflict(self.environment, document.version, self._newest_version())
        _sync_folder(self._documents)

    def _prune(self, newest: int) -> None:
        for version in self._versions():
            if version <= newest - DOCUMENTS_KEPT:
                self._document_file(version).unlink(missing_ok=True)
        for left in self._documents.iterdir():
            # A killed writer's file; a writer that still lives and wants this number has lost already.
            match = _UNFINISHED.fullmatch(left.name)
            if match and int(match[1]) <= newest:
                left.unlink(missing_ok=True)

    def _write(self, name: str, value: object) -> None:
        with _store_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            unfinished = self.folder / f".{name}.{secrets.token_hex(8)}.part"
            try:
                _write_through(unfinished, canonical_json(value))
                unfinished.replace(self.folder / name)
            finally:
                unfinished.unlink(missing_ok=True)
            _sync_folder(self.folder)

    def _parsed(self, file: Path, kind: type[T], hint: str) -> T:
        with _store_errors(file):
            content = file.read_bytes()
        try:
            return from_json(kind, content)
        except UnreadableValue as error:
            raise StoredFileUnreadable(file, str(error), hint) from None


@contextlib.contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise StoreUnavailable(
            f"{where}: {error.strerror or error}",
            "check that the store's folder exists, is writable and has room; `store` in the stack file names it",
        ) from error


def _exists(file: Path) -> bool:
    with _store_errors(file):
        return file.exists()


def _write_through(file: Path, content: bytes) -> None:
    with file.open("xb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    """A new name is on disk only once its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
