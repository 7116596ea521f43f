"""Doing what a plan says, without waiting for it: publish the document, send off lanes, begin the cluster's chores."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from engine.model.document import DesiredDocument
from engine.model.fault import Fault
from engine.model.lane import lane_slice
from engine.model.outcome import Outcome, OutcomeStatus
from engine.model.plan import Plan
from engine.model.snapshot import Snapshot
from engine.reconcile.crew import Crew, Ended, Job
from engine.reconcile.hands import Chores, Done, Hands, chores_of
from engine.reconcile.host import Host
from engine.reconcile.lane_book import LaneBook
from engine.reconcile.memory import Memory
from engine.reconcile.passes import learned
from engine.reconcile.ports import ConvergingSession, PassObserver, Ports
from engine.reconcile.refused_evictions import RefusedEvictions
from engine.reconcile.stopwatch import Stopwatch
from engine.reconcile.troubles import Troubles, as_fault
from engine.reconcile.unmanaged import UnmanagedMachines
from engine.report.summary import PassPhase, PassResult

NOTHING_TO_DO = Chores()
NOTHING_DONE = Done()
# Clocks in the ledger that nothing else hangs on are saved this often.
_SAVE_SECONDS = 10.0
# An outcome that could not be kept, for want of the lease, is tried again after this.
_RETRY_SECONDS = 1.0
_NEEDS_A_PERSON = (OutcomeStatus.FAILED_OTHER,)


class LeaseLost(Fault):
    """The environment's Lease ran out in mid-pass: nothing more is published, and the next pass starts from facts."""


class Works:
    """All that is under way in an environment. Used by the deciding thread alone.

    ``open_session`` gives the session, opened when first asked for.
    """

    def __init__(
        self,
        host: Host,
        memory: Memory,
        crew: Crew,
        hands: Hands,
        troubles: Troubles,
        observer: PassObserver,
        open_session: Callable[[], ConvergingSession],
    ) -> None:
        self._host, self._memory, self._crew, self._hands = host, memory, crew, hands
        self._troubles, self._observer, self._open_session = troubles, observer, open_session
        self._unmanaged = UnmanagedMachines(troubles)
        self.refused_evictions = RefusedEvictions(troubles)
        self.book = LaneBook(host)
        self._saved_at = host.monotonic()
        self._prepared: set[str] = set()
        self._stood_by_for: set[str] = set()
        self._retry_at = host.monotonic()
        self.must_look_again = False
        self.has_failed = False

    @property
    def is_busy(self) -> bool:
        return bool(self._crew.busy) or self._hands.is_busy

    @property
    def has_ended(self) -> bool:
        """Whether something that was begun is over and waits to be recorded."""
        return self._hands.has_ended or (self._crew.has_ended and self._host.monotonic() >= self._retry_at)

    def refresh(self) -> bool:
        """Whether somebody else has written to the store; then what lanes stand at is learned anew."""
        changed = self._memory.refresh()
        if changed:
            self.book.learn(self._memory.document, self._memory.outcomes)
        return changed

    def collect(self, ports: Ports) -> tuple[Outcome, ...]:
        """Record what has ended, in the order in which it did. What may not be written now waits. Raises Fault."""
        done = self._hands.ended() or NOTHING_DONE
        for subject, fault in done.faults:
            self._troubles.tell(subject, fault)
        for node, answers in done.answers:
            self.refused_evictions.answered(node, answers)
        recorded = []
        for ended in self._crew.ended():
            if not ports.lease.is_held():
                self._retry_at = self._host.monotonic() + _RETRY_SECONDS
                if ports.lease.take():
                    break
            outcome = self._recorded(ports, ended)
            # Only now: until its outcome is kept, nothing new may begin in this lane.
            self._crew.recorded(ended)
            if outcome is not None:
                self._observer.converged(outcome)
                recorded.append(outcome)
        return tuple(recorded)

    def do(
        self, ports: Ports, snapshot: Snapshot, plan: Plan, watch: Stopwatch, *, network_is_lost: bool
    ) -> PassResult:
        """Begin all of it. STANDBY where somebody else is at work. Raises Fault, and then has begun a part at most."""
        self._unmanaged.tell(snapshot)
        self.refused_evictions.look(plan, snapshot.blocked_evictions)
        published = snapshot.document
        changes = plan.document.version != (published.version if published else 0)
        main = ports.environment.name
        lost = network_is_lost and main not in self._crew.busy
        is_pressing = changes or lost or bool(self.book.due(published, self._crew.busy))
        # A launch does not wait until all nodes have been looked at for what they lack.
        chores = NOTHING_TO_DO if is_pressing else self._chores(plan, snapshot)
        if not (is_pressing or chores):
            self._memory.keep(plan.ledger)
            self._save_now_and_then(ports)
            return PassResult.UNDER_WAY if self._crew.busy else PassResult.IDLE
        other = ports.lease.take()
        if other:
            self._tell_standing_by(other, main)
            return PassResult.STANDBY
        self._troubles.over("lease", f"environment {main}: taking over")
        if self.refresh() or (ports.lease.paused() and not snapshot.paused):
            # Decided on what is no more; the lease is held now, so the next look holds.
            self.must_look_again = True
            return PassResult.STANDBY
        if changes:
            self._publish(ports, snapshot, plan)
            watch.reached(PassPhase.PUBLISHED)
        self._begin_lanes(ports, snapshot, lost=lost)
        if self._crew.busy:
            watch.reached(PassPhase.PULUMI)
        self._memory.keep(plan.ledger)
        self._save()
        chores = chores or self._chores(plan, snapshot)
        if chores:
            self._hands.begin(chores, ports)
        return PassResult.UNDER_WAY

    def _tell_standing_by(self, other: str, main: str) -> None:
        """Once for each holder: runners that take turns would say it without end."""
        # Since when it holds is another time at each turn.
        who = other.partition(", since ")[0]
        if who not in self._stood_by_for:
            self._stood_by_for.add(who)
            self._troubles.tell("lease", Fault(f"standing by: {other} changes environment {main}", ()))

    def rest(self, ports: Ports) -> None:
        """Let others in once nothing is under way."""
        if not self.is_busy and not self.must_look_again:
            ports.lease.release()

    def save_at_last(self, ports: Ports) -> None:
        """Keep the clocks of a loop that ends, unless somebody else is at work."""
        if not self._memory.is_saved and not ports.lease.take():
            if not self._memory.refresh():
                self._save()
            ports.lease.release()

    def _chores(self, plan: Plan, snapshot: Snapshot) -> Chores:
        return NOTHING_TO_DO if self._hands.is_busy else self._hands.due(chores_of(plan, snapshot))

    def _publish(self, ports: Ports, snapshot: Snapshot, plan: Plan) -> None:
        main = ports.environment.name
        if plan.foundation_changes and main not in self._crew.busy:
            # A foundation that cannot begin is better not published; launches alone are not worth the time.
            self._open_session().lane(main).preflight(plan.document, snapshot.cloud.instances)
        if not ports.lease.is_held():
            raise LeaseLost(f"environment {main}: the lease ran out before the plan was published")
        self._memory.publish(plan.document)

    def _begin_lanes(self, ports: Ports, snapshot: Snapshot, *, lost: bool) -> None:
        document, main = self._memory.document, ports.environment.name
        if document is None:
            return
        stacks = dict.fromkeys(self.book.due(document, self._crew.busy))
        for stack in {main: None, **stacks} if lost else stacks:
            job = Job(
                stack,
                document,
                self.book.parts(document)[stack],
                snapshot.cloud.instances,
                self._memory.ledger.instance_ids,
                refresh=lost and stack == main,
            )
            self._crew.begin(job, ports, self._open_session())
        self.prepare_spare(ports)

    def prepare_spare(self, ports: Ports) -> None:
        """Make the next free lane's stack ahead of need, in the background."""
        main, busy = ports.environment.name, self._crew.busy
        names = (f"{main}.{number}" for number in range(1, ports.environment.lanes.most + 1))
        spare = next((name for name in names if name not in busy), None)
        if spare is None or spare in self._prepared:
            return
        self._prepared.add(spare)
        session = self._open_session()

        def prepare() -> None:
            try:
                session.prepare_lane(spare)
            except Fault:
                # Nothing is lost but time: the lane makes its stack when it is needed, and tells what is wrong.
                self._prepared.discard(spare)

        self._host.start(f"prepare {spare}", prepare)

    def _recorded(self, ports: Ports, ended: Ended) -> Outcome | None:
        job, stack = ended.job, ended.job.stack
        if ended.outcome is None:
            self.book.ended(stack, job.part, ended.at, is_settled=False)
            if isinstance(ended.error, KeyboardInterrupt):
                return None
            self.has_failed = True
            self._troubles.tell(f"stack {stack}", as_fault(ended.error or RuntimeError("it ended without a word")))
            return None
        digest = ended.outcome.slice_digest or lane_slice(job.document, stack, ports.environment.name)
        outcome = evolve(ended.outcome, plan_hash=job.document.plan_hash, stack=stack, slice_digest=digest)
        self._memory.record(outcome)
        self.book.ended(stack, job.part, ended.at, is_settled=outcome.is_settled)
        self._memory.keep(learned(self._memory.ledger, _of_all(outcome, self._memory.document, self.book)))
        self._save()
        self._tell_failures(stack, outcome)
        return outcome

    def _tell_failures(self, stack: str, outcome: Outcome) -> None:
        failed = [f"{one.claim}: {one.message or one.code}" for one in outcome.claims if one.status in _NEEDS_A_PERSON]
        # An update that was asked to end tells that as a failure of the stack; what it left is the next one's work.
        words = [*(() if outcome.was_interrupted else outcome.foundation_failures), *failed]
        if words:
            self.has_failed = True
            more = f" (and {len(words) - 1} more)" if len(words) > 1 else ""
            self._troubles.tell(f"stack {stack}", Fault(f"stack {stack}: {words[0]}{more}", "a later pass tries again"))
        elif not outcome.was_interrupted:
            self._troubles.over(f"stack {stack}", f"stack {stack} converges again")

    def _save_now_and_then(self, ports: Ports) -> None:
        is_due = self._host.monotonic() - self._saved_at >= _SAVE_SECONDS
        if self._memory.is_saved or not is_due:
            return
        self._saved_at = self._host.monotonic()
        if not ports.lease.take() and not self.refresh():
            self._save()

    def _save(self) -> None:
        self._memory.save()
        self._saved_at = self._host.monotonic()


def _of_all(outcome: Outcome, document: DesiredDocument | None, book: LaneBook) -> Outcome:
    """A lane's outcome as one of the whole document: settled when every lane is."""
    version = document.version if document else 0
    return evolve(outcome, version=version, is_settled=document is not None and not book.unsettled(document))
