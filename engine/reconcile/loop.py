"""``nodewright run``: pass after pass, begun by what changes in the cluster, until it is asked to stop.

One thread decides; it never waits for a lane, for EC2 or for an eviction. It only ever waits in its ``LiveSource``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from attrs import frozen

from engine.model.fault import Fault
from engine.model.outcome import Outcome
from engine.model.plan import Plan, RemovalPhase
from engine.reconcile.back_off import BackOff
from engine.reconcile.batch import wait_for_batch
from engine.reconcile.cloud_cache import CloudCache
from engine.reconcile.crew import Crew
from engine.reconcile.file_watch import FileWatch
from engine.reconcile.going_on import only_goes_on
from engine.reconcile.hands import Hands
from engine.reconcile.host import Host
from engine.reconcile.live_pass import LivePass, Looked
from engine.reconcile.mailbox import MailReader
from engine.reconcile.memory import Memory
from engine.reconcile.ports import ConvergingSession, LiveSource, PassObserver, Ports, RunAudience
from engine.reconcile.stopping import Stop
from engine.reconcile.stopwatch import Stopwatch
from engine.reconcile.troubles import Troubles, as_fault
from engine.reconcile.works import Works
from engine.report.summary import PassReport, PassResult

_LOOK_AT_LEASE_SECONDS = 10.0
# A cluster is usually listed whole within this time.
_LISTING_SECONDS = 10.0
# Whoever stands by looks again this often, beside what changes in the cluster.
_STANDBY_SECONDS = 2.0
# A one-shot run gives up after so many failed passes in a row, after so many that found more to do, and when somebody
# else has been at work for this long.
_ONCE_FAILURES = 3
_ONCE_PASSES = 50
_ONCE_PATIENCE_SECONDS = 20.0
# Where something new to launch comes all the time, what comes after so many passes is left to the next run.
_ONCE_BUSY_PASSES = 1000
# After a second signal lanes have this long to break off.
_ABORT_SECONDS = 5.0
_NEVER = float("inf")
_QUIET = (PassResult.IDLE, PassResult.PAUSED, PassResult.STANDBY, PassResult.NOT_SYNCED)

DONE, NEEDS_A_PERSON, BROKEN_OFF = 0, 1, 130

Refresh = Callable[[Ports, Troubles], Ports]


@frozen
class Options:
    """``once``: until the world is at rest or only waits. ``jitter`` is the part by which heartbeats vary, ±."""

    once: bool = False
    jitter: float = 0.1


def run(
    ports: Ports,
    live: LiveSource,
    host: Host,
    audience: RunAudience,
    options: Options,
    *,
    observer: PassObserver,
    stop: Stop,
    refresh: Refresh = lambda ports, troubles: ports,
) -> int:
    """Keep the environment converged. The exit code: 0 stopped, or at rest where it runs once; 1 a person is needed;
    130 broken off.

    ``refresh`` gives the ports with the files of now. Errors inside a pass never end a loop. Raises Fault only when
    it cannot begin.
    """
    return Loop(ports, live, host, audience, options, observer, stop, refresh).run()


class Loop:
    def __init__(
        self,
        ports: Ports,
        live: LiveSource,
        host: Host,
        audience: RunAudience,
        options: Options,
        observer: PassObserver,
        stop: Stop,
        refresh: Refresh,
    ) -> None:
        self._ports, self._live, self._host, self._audience = ports, live, host, audience
        self._options, self._observer, self._stop, self._refresh = options, observer, stop, refresh
        self._troubles = Troubles(audience)
        self._memory = Memory(ports.store)
        self._crew = Crew(host, live.poke, audience.on_event)
        self._cloud = CloudCache(host, live.poke)
        self._mail = MailReader(host, self._troubles, live.poke, self._cloud.expire)
        self._opened = ExitStack()
        self._session: ConvergingSession | None = None
        hands = Hands(host, live.poke)
        self._works = Works(host, self._memory, self._crew, hands, self._troubles, observer, self._open_session)
        self._looking = LivePass(
            live, host, self._cloud, self._memory, self._crew, self._works, self._troubles, observer, self._mail
        )
        self._back_off = BackOff(host)
        self._files = FileWatch(host.monotonic)
        self._decided_revision = -1
        self._began_at = self._heartbeat_at = self._lease_seen_at = host.monotonic()
        self._again_at = _NEVER
        self._number = 0
        self._marked: set[str] = set()
        self._is_at_rest = False
        self._result: PassResult | None = None

    def run(self) -> int:
        self._stop.on_request = self._asked_to_stop
        with self._opened:
            self._live.start()
            self._opened.callback(self._live.stop)
            if not self._options.once:
                # While the cluster is being listed; the first launch does not wait for it then.
                self._open_session()
                self._works.prepare_spare(self._ports)
            else:
                # A pause that only taking the lease shows would cost a pass that says standby.
                self._look_at_lease()
                self._mail.read_first(self._ports.interruptions)
            self._await_first_sight()
            while not (self._stop.is_requested or self._is_at_rest):
                self._turn()
            return self._wound_down()

    def _await_first_sight(self) -> None:
        """A cluster that is just being listed is no trouble yet."""
        until = self._host.monotonic() + _LISTING_SECONDS
        while self._live.unsynced() and not self._stop.is_requested and (left := until - self._host.monotonic()) > 0:
            self._live.wait_for_change(self._live.revision(), left)

    def _turn(self) -> None:
        """Wait for a reason to look, and look."""
        try:
            revision = self._waited()
            self._tend()
            if not self._stop.is_requested and self._has_reason(revision):
                self._pass(revision)
        except Exception as error:
            # A source that cannot even be waited for. What goes wrong in a pass, the pass tells.
            self._back_off.failed()
            self._troubles.tell("pass", as_fault(error))
        if self._options.once and self._back_off.failures >= _ONCE_FAILURES:
            self._works.has_failed = self._is_at_rest = True
        self._sit_out()

    def _waited(self) -> int:
        running = self._ports.environment.run
        return wait_for_batch(
            self._live,
            self._decided_revision,
            self._host.monotonic,
            until=self._next_at(),
            is_urgent=self._is_urgent,
            # What has been there all along is no burst.
            idle_seconds=running.batch_idle.total_seconds() if self._number else 0.0,
            longest_seconds=running.batch_max.total_seconds(),
        )

    def _sit_out(self) -> None:
        """Wait until the next try is due. Only what has ended cuts it short: it has to be recorded."""
        while not (self._back_off.is_due or self._stop.is_requested or self._is_at_rest or self._works.has_ended):
            self._live.wait_for_change(self._live.revision(), self._back_off.due_at - self._host.monotonic())

    def _next_at(self) -> float:
        every = self._ports.environment.run.cloud_every.total_seconds()
        return min(
            self._heartbeat_at,
            self._again_at,
            self._cloud.due_at(every),
            self._mail_due_at(),
            self._lease_seen_at + _LOOK_AT_LEASE_SECONDS,
            self._lanes_due_at(),
            self._files.due_at(),
        )

    def _lanes_due_at(self) -> float:
        """When the next lane may begin; never, for a reason that time alone does not mend."""
        if self._looking.is_gated or self._result in (PassResult.PAUSED, PassResult.STANDBY):
            return _NEVER
        return self._works.book.due_at(self._memory.document, self._crew.busy)

    def _is_urgent(self) -> bool:
        if self._stop.is_requested or self._works.has_ended:
            return True
        if self._looking.is_gated:
            # Nothing else can be answered before that, so it would be urgent for ever.
            return not self._live.unsynced()
        if self._live.unsynced():
            # Whoever reads the metrics would take an old picture of the cluster for one of now.
            return True
        return (
            self._cloud.has_news
            or self._mail.has_news
            or self._host.monotonic() >= self._mail_due_at()
            or self._ports.lease.paused() != self._looking.pause_seen
        )

    def _has_reason(self, revision: int) -> bool:
        due_at = min(self._heartbeat_at, self._again_at, self._lanes_due_at(), self._files.read_at)
        # By now mail is read again, where that was all that pressed.
        return revision > self._decided_revision or self._is_urgent() or self._host.monotonic() >= due_at

    def _tend(self) -> None:
        """Look at the files, and keep EC2's answers and the lease's annotation fresh in the background."""
        self._files.look(self._ports)
        self._cloud.keep_fresh(self._ports, self._memory.document, self._memory.ledger)
        if self._host.monotonic() >= self._mail_due_at():
            self._mail.keep_reading(self._ports.interruptions)
        if self._host.monotonic() >= self._lease_seen_at + _LOOK_AT_LEASE_SECONDS:
            self._lease_seen_at = self._host.monotonic()
            self._host.start("look at the lease", self._look_at_lease)

    def _mail_due_at(self) -> float:
        """When to read what AWS says again. Who stands by leaves it to who acts."""
        if self._result in (None, PassResult.PAUSED, PassResult.STANDBY):
            return _NEVER
        return self._mail.due_at(self._ports.interruptions)

    def _look_at_lease(self) -> None:
        try:
            self._ports.lease.look()
        except Fault:
            # The next pass that needs the lease tells.
            return
        if self._ports.lease.paused() != self._looking.pause_seen:
            self._live.poke()

    def _pass(self, revision: int) -> None:
        self._number += 1
        watch, started_at, name = Stopwatch(self._host.monotonic), self._host.now(), str(self._number)
        self._again_at, self._works.must_look_again = _NEVER, False
        # Whatever comes of it, a change is answered once: what fails is tried again for its own reason.
        self._decided_revision = revision
        self._files.pass_begins()
        self._observer.pass_begins(name)
        outcomes: tuple[Outcome, ...] = ()
        try:
            self._ports = self._refresh(self._ports, self._troubles)
            outcomes = self._works.collect(self._ports)
            if outcomes:
                self._cloud.expire()
            self._works.refresh()
            looked = self._looking.look(self._ports, name, outcomes, watch)
            self._back_off.succeeded()
            self._troubles.over("pass", "passes go on")
        except Exception as error:
            self._back_off.failed()
            self._again_at = self._back_off.due_at
            fault = as_fault(error)
            self._troubles.tell("pass", fault)
            environment = self._ports.environment.name
            looked = Looked(
                PassReport(
                    name, environment, started_at, PassResult.FAILED, words=str(fault), total_seconds=watch.total
                )
            )
        self._ended(looked, outcomes)

    def _ended(self, looked: Looked, outcomes: tuple[Outcome, ...]) -> None:
        report, now = looked.report, self._host.monotonic()
        self._works.rest(self._ports)
        self._result = report.result
        if self._works.must_look_again:
            self._again_at = now
        elif report.result is PassResult.STANDBY:
            self._again_at = now + _STANDBY_SECONDS
        is_idle = report.result in _QUIET or (report.result is PassResult.UNDER_WAY and not _acts(looked.plan))
        if self._options.once:
            self._is_at_rest = self._has_come_to_rest(looked)
        # The last line of a run that ends by itself says what it came to.
        is_quiet = is_idle and now < self._heartbeat_at and not self._is_at_rest
        if not is_quiet:
            # From the last line on: in a busy cluster with nothing to do, passes alone would put it off for ever.
            every = self._ports.environment.run.every.total_seconds()
            self._heartbeat_at = now + every * (1 + self._options.jitter * (2 * self._host.chance() - 1))
        self._observer.pass_ended(report)
        self._audience.pass_ended(report, is_quiet=is_quiet)
        if looked.plan is not None and report.result is not PassResult.STANDBY:
            self._marked |= _marked_by(looked.plan)

    def _has_come_to_rest(self, looked: Looked) -> bool:
        """Whether nothing is left that a further pass of this run could do; nodes in flight are not waited for."""
        if looked.plan is None:
            return False
        if self._works.is_busy or self._works.must_look_again:
            return self._number >= _ONCE_BUSY_PASSES
        if looked.report.result is PassResult.PAUSED:
            return True
        if looked.report.result is PassResult.STANDBY:
            # Whoever is at work does what we would have done.
            return self._host.monotonic() - self._began_at >= _ONCE_PATIENCE_SECONDS
        if self._number >= _ONCE_PASSES and not only_goes_on(looked.plan):
            self._works.has_failed = True
        is_new = _marked_by(looked.plan) - self._marked
        return self._number >= _ONCE_PASSES or self._works.has_failed or not (_acts_at_once(looked.plan) or is_new)

    def _open_session(self) -> ConvergingSession:
        if self._session is None:
            self._session = self._opened.enter_context(self._ports.session(self._audience.say))
        return self._session

    def _asked_to_stop(self, times: int) -> None:
        """In a thread of its own, since a signal may have come at any point of the deciding one."""
        if self._session is not None:
            self._session.interrupt()
        self._live.poke()

    def _wound_down(self) -> int:
        """Let what is under way finish, record it, and let go of the lease."""
        if self._works.is_busy:
            self._audience.say(f"stopping: {', '.join(self._crew.busy) or 'the cluster'} finishes its steps in flight")
        aborted_at = _NEVER
        while self._works.is_busy and self._host.monotonic() < aborted_at:
            try:
                self._works.collect(self._ports)
            except Exception as error:
                self._troubles.tell("pass", as_fault(error))
            if self._works.is_busy:
                self._live.wait_for_change(self._live.revision(), 1.0)
            if self._stop.is_abort:
                aborted_at = min(aborted_at, self._host.monotonic() + _ABORT_SECONDS)
        try:
            self._works.save_at_last(self._ports)
        except Exception as error:
            self._troubles.tell("store", as_fault(error))
        self._ports.lease.release()
        if self._stop.is_abort:
            return BROKEN_OFF
        return NEEDS_A_PERSON if self._options.once and self._works.has_failed else DONE


def _acts(plan: Plan | None) -> bool:
    return plan is not None and not plan.is_empty


def _acts_at_once(plan: Plan) -> bool:
    """Whether the plan does more than wait for pods to leave nodes that are marked."""
    releases = any(removal.phase is RemovalPhase.RELEASE for removal in plan.removals)
    return bool(plan.launches) or plan.foundation_changes or releases


def _marked_by(plan: Plan) -> set[str]:
    return {removal.record.claim for removal in plan.removals if removal.phase is RemovalPhase.MARK}
