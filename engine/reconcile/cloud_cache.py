"""EC2's answers, kept: read in the background, so that a decision never waits for them."""

from __future__ import annotations

import threading

from engine.model.document import DesiredDocument
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.snapshot import CloudFacts
from engine.reconcile.host import Host, Work
from engine.reconcile.ports import Ports

# Answers older than this many reading intervals are no ground for a decision.
_INTERVALS_TRUSTED = 5
_LEAST_TRUSTED_SECONDS = 150.0
_AGAIN_SECONDS = 2.0


class CloudUnknown(Fault):
    """EC2 has not answered for so long that what it last said is no ground for a decision."""


class CloudCache:
    """``wake`` is called, from a background thread, when an answer is another than the one before, or is missing."""

    def __init__(self, host: Host, wake: Work) -> None:
        self._host, self._wake = host, wake
        self._guard = threading.Lock()
        self._facts: CloudFacts | None = None
        self._asked_at = self._tried_at = float("-inf")
        self._is_reading = self._is_expired = self._has_news = False
        self._failure: BaseException | None = None

    def facts(self, ports: Ports, document: DesiredDocument | None, ledger: Ledger) -> CloudFacts:
        """The last answer; the very first is waited for. Raises Fault when there is none that can be trusted."""
        if self._facts is None:
            self._read(ports, document, ledger)
            if self._facts is None and self._failure is not None:
                raise self._failure
        every = ports.environment.run.cloud_every.total_seconds()
        age = self._host.monotonic() - self._asked_at
        if age > max(every * _INTERVALS_TRUSTED, _LEAST_TRUSTED_SECONDS):
            raise CloudUnknown(
                f"EC2 has not answered for {age:.0f} s: {self._failure or 'its answer is overdue'}",
                "nothing is decided until it does; what is under way goes on",
            )
        with self._guard:
            self._has_news = False
            facts = self._facts
        if facts is None:
            raise CloudUnknown("EC2 has not answered yet")
        return facts

    @property
    def asked_at(self) -> float:
        """When the last answer was asked for, on the monotonic clock: what happened before is in it."""
        return self._asked_at

    @property
    def has_news(self) -> bool:
        """Whether an answer has come that no decision has seen."""
        return self._has_news

    @property
    def failure(self) -> BaseException | None:
        """Why the last question had no answer; None when it had one."""
        return self._failure

    def expire(self) -> None:
        """Something has changed in EC2, so ask again soon."""
        with self._guard:
            self._is_expired = True

    def due_at(self, every_seconds: float) -> float:
        """When to ask again, on the monotonic clock."""
        if self._is_reading or self._facts is None:
            # The very first answer is asked for by who needs it.
            return float("inf")
        if self._failure is not None:
            return self._tried_at + _AGAIN_SECONDS
        # Not the time of now: whoever compares it with the clock has read that a moment before.
        return self._tried_at if self._is_expired else self._asked_at + every_seconds

    def keep_fresh(self, ports: Ports, document: DesiredDocument | None, ledger: Ledger) -> None:
        """Ask again in the background when it is time to."""
        due = self._host.monotonic() >= self.due_at(ports.environment.run.cloud_every.total_seconds())
        if due and self._facts is not None:
            self._is_reading = True
            self._host.start("cloud", lambda: self._read(ports, document, ledger))

    def _read(self, ports: Ports, document: DesiredDocument | None, ledger: Ledger) -> None:
        began = self._host.monotonic()
        with self._guard:
            self._is_reading, self._is_expired, self._tried_at = True, False, began
        before, had_failed = self._facts, self._failure is not None
        facts = before
        failure: BaseException | None = None
        try:
            facts = ports.cloud.read(ports.environment, ports.policy, document, ledger)
        except Exception as error:
            failure = error
        with self._guard:
            self._facts, self._failure, self._is_reading = facts, failure, False
            if failure is None:
                self._asked_at = began
                self._has_news = self._has_news or facts != before
        if self._has_news or (failure is not None) != had_failed:
            self._wake()
