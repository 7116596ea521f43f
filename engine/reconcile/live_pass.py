"""One pass of a loop: see, decide, begin what follows. Nothing in it waits for a lane or for EC2."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from engine.decide import decide
from engine.model.fault import Fault
from engine.model.node import Instance, Node
from engine.model.outcome import Outcome, OutcomeStatus
from engine.model.plan import Plan
from engine.model.snapshot import Snapshot
from engine.observe.failure import NotSynced
from engine.reconcile.clock_words import clock_words
from engine.reconcile.cloud_cache import CloudCache
from engine.reconcile.crew import Crew
from engine.reconcile.host import Host
from engine.reconcile.mailbox import MailReader
from engine.reconcile.memory import Memory
from engine.reconcile.passes import selector_failures
from engine.reconcile.ports import LiveSource, PassObserver, Ports
from engine.reconcile.stopwatch import Stopwatch
from engine.reconcile.troubles import Troubles
from engine.reconcile.works import Works
from engine.report.summary import PassPhase, PassReport, PassResult, report_of

_KINDS_SHOWN = 3
_WARNING_CHARACTERS = 200


@frozen
class Looked:
    """What a pass came to. ``plan`` is None when it did not come to one."""

    report: PassReport
    plan: Plan | None = None


class LivePass:
    """Looks at the world once, each time it is asked to. ``pause_seen`` is the lease's annotation at the last look."""

    def __init__(
        self,
        live: LiveSource,
        host: Host,
        cloud: CloudCache,
        memory: Memory,
        crew: Crew,
        works: Works,
        troubles: Troubles,
        observer: PassObserver,
        mail: MailReader,
    ) -> None:
        self._mail = mail
        self._live, self._host, self._cloud, self._memory = live, host, cloud, memory
        self._crew, self._works, self._troubles, self._observer = crew, works, troubles, observer
        self._strangers_asked: set[str] = set()
        self._compared: tuple[tuple[Node, ...], tuple[Instance, ...]] = ((), ())
        self._paused = ""
        self.pause_seen = ""
        self.is_gated = False

    def look(self, ports: Ports, pass_id: str, outcomes: tuple[Outcome, ...], watch: Stopwatch) -> Looked:
        """See, decide, and begin what follows. ``outcomes`` came in since the last look. Raises Fault."""
        started_at = self._host.now()
        unsynced = self._live.unsynced()
        if unsynced:
            return self._gated(ports, pass_id, unsynced, watch, started_at)
        if self.is_gated:
            self.is_gated = False
            self._troubles.over("cluster", "the whole cluster is seen again")
        try:
            snapshot = self._snapshot(ports)
        except NotSynced as doubt:
            return self._gated(ports, pass_id, self._live.unsynced() or (str(doubt),), watch, started_at)
        watch.reached(PassPhase.SEEN)
        plan = decide(snapshot, ports.policy, ports.catalog, ports.environment)
        watch.reached(PassPhase.DECIDED)
        paused = snapshot.paused or plan.paused
        if paused:
            # The ledger stays as it is too: this plan's is of launches that will not be.
            result = PassResult.PAUSED
        else:
            result = self._works.do(
                ports, snapshot, plan, watch, network_is_lost=self._network_is_lost(ports, snapshot)
            )
        if result is PassResult.IDLE and outcomes:
            result = _result_of(outcomes)
        if result not in (PassResult.PAUSED, PassResult.STANDBY) and self._memory.is_saved:
            self._mail.settle(ports.interruptions, snapshot, self._memory.ledger)
        self._tell_pause(ports, paused)
        self._tell_problems(ports, snapshot)
        report = report_of(
            pass_id,
            started_at,
            snapshot,
            plan,
            result,
            words=paused,
            seconds=watch.seconds,
            total_seconds=watch.total,
            refused_evictions=self._works.refused_evictions.standing(),
        )
        self._observer.decided(snapshot, plan, report)
        return Looked(report, plan)

    def _gated(
        self, ports: Ports, pass_id: str, unsynced: tuple[str, ...], watch: Stopwatch, started_at: datetime
    ) -> Looked:
        lead = "nothing is decided until the whole cluster is seen: "
        words = _in_short(unsynced, _WARNING_CHARACTERS - len(lead))
        if not self.is_gated:
            # Once for each time that the gate is shut: kinds come and go one by one.
            self._troubles.tell("cluster", Fault(f"{lead}{words}"))
        self.is_gated = True
        name = ports.environment.name
        return Looked(
            PassReport(pass_id, name, started_at, PassResult.NOT_SYNCED, words=words, total_seconds=watch.total)
        )

    def _snapshot(self, ports: Ports) -> Snapshot:
        memory = self._memory
        cloud = self._cloud.facts(ports, memory.document, memory.ledger)
        facts = self._live.facts(cloud, memory.document)
        self._ask_about_strangers(facts.nodes, cloud.instances)
        self.pause_seen = ports.lease.paused()
        return Snapshot(
            environment=ports.environment.name,
            # Deadlines stand in a ledger that others write too, so they are all kept by EC2's clock.
            taken_at=self._host.now() - cloud.clock_ahead,
            pods=facts.pods,
            nodes=facts.nodes,
            daemon_sets=facts.daemon_sets,
            cloud=cloud,
            document=memory.document,
            ledger=memory.ledger,
            problems=facts.problems,
            workload=facts.workload,
            karpenter=facts.karpenter,
            busy_stacks=self._crew.busy,
            paused=ports.environment.paused or self.pause_seen,
            interruptions=self._mail.told(),
        )

    def _ask_about_strangers(self, nodes: tuple[Node, ...], instances: tuple[Instance, ...]) -> None:
        """A node of a machine that EC2's kept answer lacks may be ours: ask EC2 again, once for each."""
        if (nodes, instances) == self._compared:
            return
        self._compared = (nodes, instances)
        known = {instance.id for instance in instances}
        strangers = {node.instance_id for node in nodes if node.instance_id} - known
        if strangers - self._strangers_asked:
            self._cloud.expire()
        self._strangers_asked = strangers

    def _network_is_lost(self, ports: Ports, snapshot: Snapshot) -> bool:
        """Whether the environment's own network is gone, as seen after the main lane last converged."""
        mended_at = self._works.book.ended_at(ports.environment.name)
        return not snapshot.cloud.network_stands and self._cloud.asked_at > mended_at

    def _tell_pause(self, ports: Ports, paused: str) -> None:
        if paused and paused != self._paused:
            self._troubles.tell("pause", Fault(f"environment {ports.environment.name} is paused: {paused}"))
        elif self._paused and not paused:
            self._troubles.over("pause", f"environment {ports.environment.name} is paused no more")
        self._paused = paused

    def _tell_problems(self, ports: Ports, snapshot: Snapshot) -> None:
        """What keeps a pool from launching, what could not be read, and what EC2 does not answer; each once."""
        failures = tuple(selector_failures(ports, snapshot.cloud))
        self._tell("selectors", failures, "correct the selector, or tag what it is to match")
        self._tell("objects", tuple(map(str, snapshot.problems)), "the rest goes on without them")
        self._tell("ec2", (str(self._cloud.failure),) if self._cloud.failure else (), "its last answer is used")
        self._tell("clock", tuple(clock_words(snapshot.cloud)), "EC2's clock is gone by; set this machine's right")
        self._tell("ledger", (self._memory.warning,) if self._memory.warning else (), "")

    def _tell(self, subject: str, words: tuple[str, ...], hint: str) -> None:
        if words:
            more = f" (and {len(words) - 1} more)" if len(words) > 1 else ""
            self._troubles.tell(subject, Fault(f"{words[0]}{more}", hint or ()))
        else:
            self._troubles.over(subject)


def _in_short(unsynced: tuple[str, ...], characters: int) -> str:
    """Which kinds are in doubt, and the first one's reason, without its middle where it is long."""
    kinds = [doubt.partition(": ")[0] for doubt in unsynced]
    more = f" and {len(kinds) - _KINDS_SHOWN} more" if len(kinds) > _KINDS_SHOWN else ""
    named = ", ".join(kinds[:_KINDS_SHOWN]) + more
    why = " ".join(unsynced[0].partition(": ")[2].split())
    half = max(20, (characters - len(f"{named}:  … ")) // 2)
    if len(why) > 2 * half:
        # What was asked stands at the beginning of such words, and at their end what went wrong at last.
        why = f"{why[:half].rstrip()} … {why[-half:].lstrip()}"
    return f"{named}: {why}" if why else named


def _result_of(outcomes: tuple[Outcome, ...]) -> PassResult:
    """How lanes ended, of which none is at work any more."""
    statuses = {one.status for outcome in outcomes for one in outcome.claims}
    if any(outcome.was_interrupted for outcome in outcomes):
        return PassResult.INTERRUPTED
    if OutcomeStatus.FAILED_OTHER in statuses or any(outcome.foundation_failures for outcome in outcomes):
        return PassResult.FAILED
    return PassResult.REFUSED if OutcomeStatus.FAILED_CAPACITY in statuses else PassResult.CONVERGED
