"""What the store holds, kept in memory between passes: read again only when somebody else has written to it."""

from __future__ import annotations

from collections.abc import Mapping

from engine.converge.store import DocumentStore
from engine.model.document import DesiredDocument
from engine.model.ledger import Ledger
from engine.model.outcome import Outcome
from engine.reconcile.settledness import with_what_settled


class Memory:
    """``document``, ``ledger`` and ``outcomes`` as they stand. ``warning`` is about a ledger that could not be used.

    A ledger may be ahead of the store: ``keep`` notes it, ``save`` writes it. All that writes wants the lease.
    """

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._stamp = ""
        self._saved = Ledger()
        self.document: DesiredDocument | None = None
        self.ledger = self._saved
        self.outcomes: Mapping[str, Outcome] = {}
        self.warning = ""

    def refresh(self) -> bool:
        """Whether somebody else has written since; then all of it is read. Raises StoreUnavailable and its like."""
        stamp = self._store.stamp()
        if stamp == self._stamp:
            return False
        remembered = self._store.ledger()
        self.document, self.outcomes = self._store.document(), self._store.outcomes()
        self.ledger = self._saved = with_what_settled(remembered.ledger, self.document, self.outcomes)
        self.warning = remembered.warning or ""
        # A ledger that could not be used was moved aside by reading it.
        self._stamp = self._store.stamp() if remembered.warning else stamp
        return True

    def publish(self, document: DesiredDocument) -> None:
        """Raises VersionConflict when somebody else was faster."""
        self._store.publish(document)
        self.document = document
        self._store.drop_pin()
        self._stamp = self._store.stamp()

    def keep(self, ledger: Ledger) -> None:
        self.ledger = ledger

    @property
    def is_saved(self) -> bool:
        return self.ledger is self._saved or self.ledger == self._saved

    def save(self) -> None:
        if not self.is_saved:
            self._store.write_ledger(self.ledger)
            self._stamp = self._store.stamp()
        self._saved = self.ledger

    def record(self, outcome: Outcome) -> None:
        self._store.write_outcome(outcome)
        self.outcomes = {**self.outcomes, outcome.stack: outcome}
        self._stamp = self._store.stamp()
