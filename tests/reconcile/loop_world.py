"""A loop over the small world, in a time of its own: nothing sleeps, and what runs in threads runs when it is due."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

from attrs import evolve

from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.drain import Mark
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.lane import lane_part, lane_slice
from engine.model.ledger import Ledger
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts, Snapshot
from engine.observe.cluster import ClusterFacts
from engine.reconcile.host import Host, Work
from engine.reconcile.loop import Options, Refresh, run
from engine.reconcile.ports import ConvergingSession, OnEvent, Ports, Tell
from engine.reconcile.stopping import Stop
from engine.report.summary import PassReport, PassResult
from tests.builders import NOON
from tests.decide.world import World
from tests.reconcile.world_ports import WorldPorts


class Killed(BaseException):
    """The process is gone: nothing after this has any effect."""


class FakeTime:
    """``delays`` are seconds until background work begins, by its name's first word; ``wall_jump`` shifts one clock."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.delays: dict[str, float] = {}
        self.wall_jump = timedelta()
        self._due: list[tuple[float, int, Work]] = []
        self._order = count()

    def at(self, seconds: float, work: Work) -> None:
        heapq.heappush(self._due, (seconds, next(self._order), work))

    def start(self, name: str, work: Work) -> None:
        self.at(self.seconds + self.delays.get(name.split()[0], 0.0), work)

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds) + self.wall_jump

    def advance(self, until: float) -> bool:
        """To the next thing that is due, and do it; to ``until`` when nothing is due before, which is False."""
        if not self._due or self._due[0][0] > until:
            self.seconds = max(self.seconds, until)
            return False
        due, _, work = heapq.heappop(self._due)
        self.seconds = max(self.seconds, due)
        work()
        return True

    def host(self, chance: float = 0.5) -> Host:
        return Host(now=self.now, monotonic=lambda: self.seconds, chance=lambda: chance, start=self.start)


class FakeLive:
    """Follows the world by being told; ``doubts`` keep the gate shut."""

    def __init__(self, world: World, time: FakeTime) -> None:
        self.world, self.time = world, time
        self.doubts: tuple[str, ...] = ()
        self.fails: Fault | None = None
        self.changes = 1
        self.asked = 0
        self._is_poked = False
        self.is_started = self.is_stopped = False

    def start(self) -> None:
        self.is_started = True

    def stop(self) -> None:
        self.is_stopped = True

    def unsynced(self) -> tuple[str, ...]:
        self._turned()
        return self.doubts

    def facts(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts:
        assert not self.doubts, "nothing is asked of a cluster that is in doubt"
        if self.fails is not None:
            raise self.fails
        return ClusterFacts(tuple(self.world.pods.values()), tuple(self.world.nodes.values()), self.world.daemon_sets)

    def revision(self) -> int:
        return self.changes

    def wait_for_change(self, after: int, timeout_seconds: float) -> int:
        self._turned()
        until = self.time.seconds + timeout_seconds
        while self.changes <= after and not self._is_poked:
            if not self.time.advance(until):
                break
        self._is_poked = False
        return self.changes

    def poke(self) -> None:
        self._is_poked = True

    def changed(self) -> None:
        self.changes += 1

    def _turned(self) -> None:
        self.asked += 1
        assert self.asked < 20_000, "the loop turns without end"


class StopNow(Stop):
    """What a request brings about happens at once."""

    def request(self) -> None:
        self.times += 1
        self.on_request(self.times)


class Listener:
    """An audience and an observer that note all that they are told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []
        self.reports: list[PassReport] = []
        self.loud: list[PassReport] = []
        self.plans: list[Plan] = []
        self.snapshots: list[Snapshot] = []
        self.outcomes: list[Outcome] = []

    def say(self, line: str) -> None:
        self.said.append(line)

    def warn(self, fault: Fault) -> None:
        self.warned.append(str(fault))

    def on_event(self, event: object) -> None:
        """The small world has no engine."""

    def pass_begins(self, pass_id: str) -> None:
        """Its report comes."""

    def decided(self, snapshot: Snapshot, plan: Plan, report: PassReport) -> None:
        self.snapshots.append(snapshot)
        self.plans.append(plan)

    def converged(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def results(self) -> list[PassResult]:
        return [report.result for report in self.reports]


class _Audience:
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.say, self.warn, self.on_event = listener.say, listener.warn, listener.on_event

    def pass_ended(self, report: PassReport, *, is_quiet: bool) -> None:
        self._listener.reports.append(report)
        if not is_quiet:
            self._listener.loud.append(report)


class _Observer:
    def __init__(self, listener: Listener) -> None:
        self.pass_begins, self.decided, self.converged = listener.pass_begins, listener.decided, listener.converged

    def pass_ended(self, report: PassReport) -> None:
        """The audience notes it."""


class LaneOf:
    """One lane of the small world. Converging takes the time that ``delays`` gives to ``lane``."""

    def __init__(self, ports: LoopPorts, stack: str) -> None:
        self.ports, self.stack = ports, stack

    def converge(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        *,
        refresh: bool = False,
        known_ids: Mapping[str, str] | None = None,
    ) -> Outcome:
        ports, world, main = self.ports, self.ports.world, document.environment
        ports.calls.append(("converge", self.stack, document.version))
        assert self.stack not in ports.locked, "Pulumi's own lock: one update of a stack at a time"
        failure = ports.failures.pop(self.stack, None)
        if failure is not None:
            raise failure
        _, claims, records = lane_part(document, self.stack, main)
        alive = {instance.claim for instance in instances if instance.is_alive}
        # What the stack holds it never makes again; what EC2 shows is adopted.
        missing = (claim for claim in claims if claim.name not in alive and claim.name not in ports.held)
        done = [self._made(claim) for claim in missing]
        for record in records:
            ports.step("terminate")
            world._terminate(record.claim)
            done.append(ClaimOutcome(record.claim, OutcomeStatus.DELETED))
        world.document = document
        world.settle()
        ports.live_changed()
        wanted = {OutcomeStatus.CREATED, OutcomeStatus.DELETED}
        broken_off = ports.is_broken_off_by_interrupt and ports.interrupted > 0
        return Outcome(
            main,
            document.version,
            NOON,
            tuple(done),
            foundation_failures=("pulumi: update canceled",) if broken_off else (),
            is_settled=all(one.status in wanted for one in done) and not broken_off,
            was_interrupted=broken_off,
            stack=self.stack,
            slice_digest=lane_slice(document, self.stack, main),
        )

    def _made(self, claim: Claim) -> ClaimOutcome:
        world = self.ports.world
        self.ports.step("launch")
        if self.ports.broken & {claim.name, "*"}:
            return ClaimOutcome(claim.name, OutcomeStatus.FAILED_OTHER, code="InvalidAMIID.NotFound", message="no AMI")
        if claim.name in world.launched_ever and not world.refuses(claim):
            raise AssertionError(f"claim {claim.name} is launched twice")
        outcome = ClaimOutcome(claim.name, OutcomeStatus.FAILED_CAPACITY, code="InsufficientInstanceCapacity")
        if not world.refuses(claim):
            outcome = world._launch(claim)
            self.ports.held_by_stack(claim.name)
        self.ports.step("launched")
        return outcome

    def foundation_stands(self, document: DesiredDocument) -> bool:
        return True

    def preflight(self, document: DesiredDocument, instances: Sequence[Instance]) -> None:
        self.ports.step("preflight")

    def destroy(self, document: DesiredDocument | None, instances: Sequence[Instance], on_progress: OnEvent) -> Outcome:
        raise AssertionError("a loop destroys nothing")

    def adoptable(self, document: DesiredDocument, instances: Sequence[Instance]) -> Mapping[str, str]:
        raise AssertionError("only a plain pulumi program asks this")

    def ensure_stack(self) -> None:
        raise AssertionError("nothing here needs a stack")


class LoopPorts(WorldPorts):
    """The small world with lanes. ``failures`` are what the next converge of a stack ends in.

    ``killed_at``: the number of the step at which the process dies; every effect is a step.
    """

    def __init__(self, world: World, folder: Path, time: FakeTime | None = None) -> None:
        super().__init__(world, folder)
        self.time = time or FakeTime()
        self.live = FakeLive(world, self.time)
        self.calls: list[tuple[str, str, int]] = []
        self.failures: dict[str, BaseException] = {}
        self.locked: set[str] = set()
        self.held: set[str] = set()
        self.steps = 0
        self.killed_at: int | None = None
        self.interrupted = 0
        self.is_broken_off_by_interrupt = False
        self.opened = 0
        self.cloud_fails: Fault | None = None
        self.stop = StopNow()
        self.ports = evolve(self.ports, live=lambda: self.live, now=self.time.now)

    def step(self, what: str) -> None:
        self.steps += 1
        if self.killed_at is not None and self.steps >= self.killed_at:
            raise Killed(what)

    def held_by_stack(self, claim: str) -> None:
        """Pulumi's state is written after the launch: a kill in between leaves a machine that only its tag names."""
        self.step("state")
        self.held.add(claim)

    def live_changed(self) -> None:
        self.live.changed()

    def read(
        self, environment: Environment, policy: Policy, document: DesiredDocument | None, ledger: Ledger
    ) -> CloudFacts:
        self.step("cloud")
        if self.cloud_fails is not None:
            raise self.cloud_fails
        return super().read(environment, policy, document, ledger)

    def read_claims(self, environment: Environment, names: Collection[str]) -> tuple[Instance, ...]:
        self.step("claims")
        return super().read_claims(environment, names)

    def mark(self, node_name: str, mark: Mark) -> bool:
        self.step("mark")
        if node_name not in self.world.nodes:
            return False
        self.live.changed()
        return super().mark(node_name, mark)

    @contextmanager
    def session(self, tell: Tell) -> Iterator[ConvergingSession]:
        self.opened += 1
        yield self

    def lane(self, stack: str) -> LaneOf:  # type: ignore[override]
        return LaneOf(self, stack)

    def interrupt(self) -> None:
        self.interrupted += 1

    def at(self, seconds: float, work: Callable[[], object]) -> None:
        """Something happens in the cluster then."""

        def happen() -> None:
            work()
            self.live.changed()

        self.time.at(seconds, happen)

    def arrive_once(self, pod: Pod) -> None:
        """Two runners see the same pod come."""
        if pod.key not in self.world.pods:
            self.arrive(pod)

    def arrive(self, pod: Pod) -> None:
        self.world.pods[pod.key] = pod

    def run(
        self,
        until: float | None = None,
        *,
        once: bool = False,
        ports: Ports | None = None,
        refresh: Refresh | None = None,
        jitter: float = 0.0,
    ) -> tuple[int, Listener]:
        """Run the loop until that time, or once; its exit code and what was told."""
        heard = Listener()
        if until is not None:
            self.time.at(until, self.stop.request)
        more = {} if refresh is None else {"refresh": refresh}
        code = run(
            ports or self.ports,
            self.live,
            self.time.host(),
            _Audience(heard),
            Options(once=once, jitter=jitter),
            observer=_Observer(heard),
            stop=self.stop,
            **more,
        )
        return code, heard
