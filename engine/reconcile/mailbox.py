"""AWS's interruption messages between their queue and the pass that acts on them.

A message is deleted only once the ledger that knows what it says is on disk: a process that dies before reads it again,
and acting on it twice is no more than acting on it once. What nobody can read, and what is about machines of others, is
told once and deleted too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from engine.model.fault import Fault
from engine.model.interruption import Interruption, InterruptionKind
from engine.model.ledger import Ledger
from engine.model.snapshot import Snapshot
from engine.observe.interruptions import Message
from engine.reconcile.host import Host, Work
from engine.reconcile.ports import InterruptionSource
from engine.reconcile.troubles import Troubles, as_fault

# An instance that EC2 does not show yet may be a launch of ours: only after this is a message about it one of others'.
_STRANGE_FOR = timedelta(minutes=2)
_WAIT_SECONDS = 20
# After a read that failed, the next begins this much later.
_AGAIN_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_SUBJECT = "interruptions"


class Mailbox:
    """Messages that were read and not deleted yet, each once, however often it comes."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[str, Message] = {}
        self._seen_at: dict[str, datetime] = {}

    def take_in(self, messages: Iterable[Message]) -> bool:
        """Whether one of them is new. The newest receipt is the one that deletes."""
        with self._guard:
            before = len(self._held)
            self._held |= {each.id: each for each in messages}
            return len(self._held) > before

    def told(self) -> tuple[Interruption, ...]:
        """What they say, the same thing once, in a defined order."""
        with self._guard:
            said = {each for message in self._held.values() for each in message.interruptions}
        return tuple(sorted(said, key=lambda each: (each.instance_id, each.order)))

    def state_changes(self) -> frozenset[Interruption]:
        """Of machines that stop or end: EC2 knows more than is remembered of it."""
        return frozenset(each for each in self.told() if each.kind is InterruptionKind.STATE_CHANGE)

    def answered(self, snapshot: Snapshot, saved: Ledger) -> tuple[Message, ...]:
        """Those for which nothing is left to be done once ``saved`` is on disk, in the order of their ids; they are
        held until they are dropped."""
        ours = _claims_by_instance(snapshot)
        told = frozenset(snapshot.interruptions)
        with self._guard:
            held = sorted(self._held.items())
        done = []
        for name, message in held:
            since = self._seen_at.setdefault(name, snapshot.taken_at)
            if all(_is_answered(each, told, ours, saved, snapshot.taken_at, since) for each in message.interruptions):
                done.append(message)
        return tuple(done)

    def drop(self, messages: Iterable[Message]) -> None:
        with self._guard:
            for each in messages:
                self._held.pop(each.id, None)
                self._seen_at.pop(each.id, None)


def words_about(queue: str, messages: Iterable[Message], snapshot: Snapshot) -> tuple[str, ...]:
    """What a person should know of messages that are deleted unanswered: sentences, each once, the same for each
    message of its kind."""
    ours = _claims_by_instance(snapshot)
    told = dict.fromkeys(
        f"a message in queue {queue} cannot be read: {each.problem}" for each in messages if each.problem
    )
    if any(each.instance_id not in ours for message in messages for each in message.interruptions):
        told[f"queue {queue} brings messages about instances that are none of this environment's"] = None
    return tuple(told)


def read_now(source: InterruptionSource | None, box: Mailbox) -> tuple[str, ...]:
    """Take in what is there, for a pass that waits for it; why it could not be read, as a sentence, where it could
    not: the pass goes on without."""
    if source is None:
        return ()
    try:
        box.take_in(source.receive())
    except Fault as fault:
        return (str(fault),)
    return ()


def settle_now(source: InterruptionSource | None, box: Mailbox, snapshot: Snapshot, saved: Ledger) -> tuple[str, ...]:
    """Delete what is answered, now that ``saved`` is on disk; what a person should know of it."""
    done = box.answered(snapshot, saved) if source is not None else ()
    if source is None or not done:
        return ()
    words = words_about(source.name, done, snapshot)
    with suppress(Fault):
        # Where that fails they come again, and are answered again.
        source.delete(done)
        box.drop(done)
    return words


class MailReader:
    """Reads a queue in the background while a loop runs. ``wake`` is called after each read, ``expire`` when EC2 has to
    be asked anew."""

    def __init__(self, host: Host, troubles: Troubles, wake: Work, expire: Work) -> None:
        self._host, self._troubles, self._wake, self._expire = host, troubles, wake, expire
        self._box = Mailbox()
        self._is_reading = self._has_news = self._is_only_pass = False
        self._failure: BaseException | None = None
        self._next_at = host.monotonic()

    @property
    def has_news(self) -> bool:
        """Whether something has come that no decision has seen."""
        return self._has_news

    def due_at(self, source: InterruptionSource | None) -> float:
        """When to read again, on the monotonic clock."""
        return float("inf") if source is None or self._is_reading else self._next_at

    def keep_reading(self, source: InterruptionSource | None) -> None:
        """Read again in the background when it is time to."""
        if source is not None and self._host.monotonic() >= self.due_at(source):
            self._is_reading = True
            self._host.start("interruptions", lambda: self._read(source))

    def read_first(self, source: InterruptionSource | None) -> None:
        """Read what is there before the only pass of a run; its failure is told after that."""
        self._is_only_pass = True
        if source is not None:
            self._read(source, wait_seconds=0)

    def told(self) -> tuple[Interruption, ...]:
        """What the messages say that are there; what comes from now on is news."""
        self._has_news = False
        return self._box.told()

    def settle(self, source: InterruptionSource | None, snapshot: Snapshot, saved: Ledger) -> None:
        """Delete what is answered, in the background, now that ``saved`` is on disk."""
        if source is None:
            return
        self._tell_failure(source)
        done = self._box.answered(snapshot, saved)
        for words in words_about(source.name, done, snapshot):
            self._troubles.tell(f"{_SUBJECT}: {words[:60]}", Fault(f"{words}; such messages are deleted"))
        if done:
            self._box.drop(done)
            if self._is_only_pass:
                # Nobody is there any more to finish what is done in the background.
                self._delete(source, done)
            else:
                self._host.start("answers", lambda: self._delete(source, done))

    def _tell_failure(self, source: InterruptionSource) -> None:
        if self._failure is not None:
            self._troubles.tell(_SUBJECT, as_fault(self._failure))
        else:
            self._troubles.over(_SUBJECT, f"queue {source.name} is read again")

    def _read(self, source: InterruptionSource, wait_seconds: int = _WAIT_SECONDS) -> None:
        is_new, failure, began = False, None, self._host.monotonic()
        before = self._box.state_changes()
        try:
            is_new = self._box.take_in(source.receive(wait_seconds))
        except Exception as error:
            failure = error
        if self._box.state_changes() - before:
            self._expire()
        self._has_news = self._has_news or is_new or (failure is None) != (self._failure is None)
        self._failure = failure
        # A read that waits for messages takes its time, and the next one follows at once.
        self._next_at = max(self._host.monotonic(), began + (_AGAIN_SECONDS if failure is not None else _PAUSE_SECONDS))
        self._is_reading = False
        self._wake()

    def _delete(self, source: InterruptionSource, messages: tuple[Message, ...]) -> None:
        try:
            source.delete(messages)
        except Exception as error:
            # They come again, and are answered again.
            self._failure = error


def _claims_by_instance(snapshot: Snapshot) -> Mapping[str, str]:
    """Of all instances that are known to be ours, whatever has become of them."""
    remembered = {instance: claim for claim, instance in snapshot.ledger.instance_ids.items()}
    return {**remembered, **{each.id: each.claim for each in snapshot.cloud.instances if each.claim}}


def _is_answered(
    said: Interruption,
    told: frozenset[Interruption],
    ours: Mapping[str, str],
    saved: Ledger,
    now: datetime,
    since: datetime,
) -> bool:
    """Whether a pass has seen it, and it is of nobody's here, or remembered, or of a machine that is let go by now."""
    if said not in told:
        return False
    claim = ours.get(said.instance_id)
    if claim is None:
        return now - min(said.at, since) >= _STRANGE_FOR
    if said.kind is InterruptionKind.STATE_CHANGE:
        return True
    return claim in saved.interruptions or claim not in saved.milestones
