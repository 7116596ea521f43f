"""The lanes at work: each converges in a thread of its own, and what became of it waits here until it is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from queue import Empty, SimpleQueue

from attrs import frozen

from engine.model.document import DesiredDocument
from engine.model.node import Instance
from engine.model.outcome import Outcome
from engine.reconcile.host import Host, Work
from engine.reconcile.lane_book import Part
from engine.reconcile.ports import ConvergingSession, OnEvent, Ports


@frozen
class Job:
    """One lane to converge to what ``document`` says of it, which is ``part``.

    ``instances`` are as last seen; those of claims that have none there are asked for once more before any launch.
    """

    stack: str
    document: DesiredDocument
    part: Part
    instances: tuple[Instance, ...]
    known_ids: Mapping[str, str]
    refresh: bool = False

    @property
    def unseen(self) -> tuple[str, ...]:
        """The claims of this lane that no live machine was seen of."""
        alive = {instance.claim for instance in self.instances if instance.is_alive}
        return tuple(claim.name for claim in self.part.claims if claim.name not in alive)


@frozen
class Ended:
    """What became of a job: an outcome, or the error that it ended in; ``at`` is on the monotonic clock."""

    job: Job
    at: float
    outcome: Outcome | None = None
    error: BaseException | None = None


class Crew:
    """``wake`` is called, from a lane's thread, when it has ended. ``on_event`` is given the engine's events."""

    def __init__(self, host: Host, wake: Work, on_event: OnEvent) -> None:
        self._host, self._wake, self._on_event = host, wake, on_event
        self._busy: dict[str, Job] = {}
        self._came: SimpleQueue[Ended] = SimpleQueue()
        self._unrecorded: list[Ended] = []

    @property
    def busy(self) -> tuple[str, ...]:
        """The stacks at work, in name order: also those that have ended until that is recorded."""
        return tuple(sorted(self._busy))

    @property
    def has_ended(self) -> bool:
        return bool(self._unrecorded) or not self._came.empty()

    def begin(self, job: Job, ports: Ports, session: ConvergingSession) -> None:
        """Let the lane converge; it must not be busy."""
        assert job.stack not in self._busy, "one lane converges one thing at a time"
        self._busy[job.stack] = job
        self._host.start(f"lane {job.stack}", lambda: self._converge(job, ports, session))

    def ended(self) -> tuple[Ended, ...]:
        """Those that have ended and are not recorded, in the order in which they did."""
        while True:
            try:
                self._unrecorded.append(self._came.get_nowait())
            except Empty:
                return tuple(self._unrecorded)

    def recorded(self, ended: Ended) -> None:
        """The lane is free again."""
        self._unrecorded.remove(ended)
        del self._busy[ended.job.stack]

    def _converge(self, job: Job, ports: Ports, session: ConvergingSession) -> None:
        outcome: Outcome | None = None
        error: BaseException | None = None
        try:
            outcome = session.lane(job.stack).converge(
                job.document,
                _with_seen(job.instances, ports.cloud.read_claims(ports.environment, job.unseen) if job.unseen else ()),
                self._on_event,
                refresh=job.refresh,
                known_ids=job.known_ids,
            )
        except BaseException as raised:
            # Whatever it was, the deciding thread has to hear of it: a lane that dies in silence is busy for ever.
            error = raised
        self._came.put(Ended(job, self._host.monotonic(), outcome, error))
        self._wake()


def _with_seen(known: tuple[Instance, ...], seen: tuple[Instance, ...]) -> tuple[Instance, ...]:
    """What was seen just now takes the place of what was known of the same machine."""
    newer = {instance.id for instance in seen}
    return (*(instance for instance in known if instance.id not in newer), *seen)
