"""The ports of a pass over the small world of tests/decide, with the real store in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from attrs import evolve

from engine.converge.store import DocumentStore, FileStore
from engine.model import labels as keys
from engine.model.constraint import Taint
from engine.model.document import DesiredDocument
from engine.model.drain import Mark
from engine.model.environment import Environment
from engine.model.eviction import Eviction, EvictionStatus
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.plan import Plan
from engine.model.pod import PodKey
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts
from engine.observe.cluster import ClusterFacts
from engine.reconcile.following import Polled
from engine.reconcile.one_writer import StoreLease
from engine.reconcile.passes import Proposal
from engine.reconcile.ports import Converging, ConvergingSession, OnEvent, Ports, Tell
from engine.reconcile.workspace import Workspace
from tests.decide.world import World


class WorldPorts:
    """``broken`` names claims whose launch fails for good; ``dies`` makes a converge end in an exception half-way.

    ``held_pods`` are the refusals that evictions of these pods meet.
    """

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.broken: set[str] = set()
        self.dies = False
        self.converged = 0
        self.refuses: Fault | None = None
        self.cannot_destroy: Fault | None = None
        self.nominated: list[tuple[PodKey, str]] = []
        self.evicted: list[PodKey] = []
        self.deleted: list[tuple[PodKey, int]] = []
        self.held_pods: dict[PodKey, Eviction] = {}
        self.labelled: list[str] = []
        store = FileStore(folder, world.environment.name)
        self.ports = Ports(
            workspace=Workspace(folder),
            environment=world.environment,
            policy=world.policy,
            catalog=world.catalog,
            store=store,
            cloud=self,
            cluster=_Cluster(world),
            drainer=self,
            registrar=self,
            nominator=self,
            lease=StoreLease(store),
            session=self.session,
            live=lambda: Polled(_Cluster(world)),
            api_server=None,
            now=lambda: world.now,
        )

    @property
    def store(self) -> DocumentStore:
        return self.ports.store

    def read(
        self, environment: Environment, policy: Policy, document: DesiredDocument | None, ledger: Ledger
    ) -> CloudFacts:
        return self.world.cloud()

    def read_claims(self, environment: Environment, names: Collection[str]) -> tuple[Instance, ...]:
        return tuple(instance for instance in self.world.instances.values() if instance.claim in names)

    def nominate(self, pod: PodKey, node_name: str) -> str:
        self.nominated.append((pod, node_name))
        return ""

    def waiting(self) -> None:
        return None

    def mark(self, node_name: str, mark: Mark) -> bool:
        self.world.mark(node_name)
        return True

    def register(self, node_name: str, labels: Mapping[str, str], taints: Sequence[Taint], *, hold: bool) -> bool:
        node = self.world.nodes[node_name]
        kept = tuple(taint for taint in node.taints if taint.key != keys.UNREGISTERED_TAINT)
        changed = evolve(node, taints=tuple(dict.fromkeys((*kept, *taints))), unschedulable=hold or node.unschedulable)
        self.world.nodes[node_name] = changed
        return self.label(node_name, {**labels, keys.HELD: "true"} if hold else labels)

    def open(self, node_name: str, labels: Mapping[str, str]) -> bool:
        node = self.world.nodes[node_name]
        others = {key: value for key, value in node.labels.items() if key != keys.HELD}
        self.world.nodes[node_name] = evolve(node, labels=others, unschedulable=False)
        return self.label(node_name, labels)

    def label(self, node_name: str, labels: Mapping[str, str]) -> bool:
        node = self.world.nodes[node_name]
        self.world.nodes[node_name] = evolve(node, labels={**node.labels, **labels})
        self.labelled.append(node_name)
        return True

    def annotate(self, node_name: str, annotations: Mapping[str, str | None]) -> bool:
        written = annotations[keys.REPLACE]
        at = datetime.fromisoformat(written) if written is not None else None
        node = self.world.nodes[node_name]
        self.world.nodes[node_name] = evolve(node, replace_asked=at is not None, replace_asked_at=at)
        return True

    def unmark(self, node_name: str) -> bool:
        raise AssertionError("nothing takes a mark off in these tests")

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]:
        self.evicted += pods
        return tuple(self.held_pods.get(pod, Eviction(pod, EvictionStatus.EVICTED)) for pod in pods)

    def delete(self, pods: Sequence[tuple[PodKey, int]]) -> tuple[Eviction, ...]:
        self.deleted += pods
        return tuple(Eviction(pod, EvictionStatus.EVICTED) for pod, _ in pods)

    @contextmanager
    def session(self, tell: Tell) -> Iterator[ConvergingSession]:
        yield self

    def lane(self, stack: str) -> Converging:
        return self

    def prepare_lane(self, stack: str) -> None:
        """The small world has one stack."""

    def interrupt(self) -> None:
        raise AssertionError("nothing is broken off in these tests")

    def converge(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        *,
        refresh: bool = False,
        known_ids: Mapping[str, str] | None = None,
    ) -> Outcome:
        self.converged += 1
        world = self.world
        alive = {instance.claim for instance in instances if instance.is_alive}
        missing = [claim for claim in document.claims if claim.name not in alive]
        self.world.document = document
        done: list[ClaimOutcome] = []
        for claim in missing:
            if claim.name in self.broken or self.broken == {"*"}:
                done.append(ClaimOutcome(claim.name, OutcomeStatus.FAILED_OTHER, code="InvalidAMIID.NotFound"))
            else:
                done.append(world._launch(claim))
            if self.dies:
                raise ConnectionError("killed half-way")
        for record in document.removals:
            world._terminate(record.claim)
            done.append(ClaimOutcome(record.claim, OutcomeStatus.DELETED))
        world.settle()
        wanted = {OutcomeStatus.CREATED, OutcomeStatus.DELETED}
        is_settled = all(one.status in wanted for one in done)
        return Outcome(document.environment, document.version, world.now, tuple(done), is_settled=is_settled)

    def destroy(self, document: DesiredDocument | None, instances: Sequence[Instance], on_progress: OnEvent) -> Outcome:
        if self.cannot_destroy is not None:
            raise self.cannot_destroy
        for instance in instances:
            self.world._terminate(instance.claim)
        version = document.version if document else 0
        return Outcome(self.world.environment.name, version, self.world.now, is_settled=True)

    def foundation_stands(self, document: DesiredDocument) -> bool:
        return True

    def preflight(self, document: DesiredDocument, instances: Sequence[Instance]) -> None:
        if self.refuses is not None:
            raise self.refuses

    def adoptable(self, document: DesiredDocument, instances: Sequence[Instance]) -> Mapping[str, str]:
        raise AssertionError("only a plain pulumi program asks this")

    def ensure_stack(self) -> None:
        raise AssertionError("nothing here needs a stack")


class _Cluster:
    def __init__(self, world: World) -> None:
        self._world = world

    def read(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts:
        world = self._world
        return ClusterFacts(tuple(world.pods.values()), tuple(world.nodes.values()), world.daemon_sets)


class Watcher:
    """An audience that notes what it is shown and answers from a list, yes once the list is used up."""

    def __init__(self, *answers: bool) -> None:
        self.shown: list[Plan] = []
        self.asked = 0
        self.carried_on: list[Plan] = []
        self.outcomes: list[Outcome] = []
        self._answers = list(answers)

    def show(self, proposal: Proposal) -> None:
        self.shown.append(proposal.plan)

    def approve(self, plan: Plan) -> bool:
        self.asked += 1
        return self._answers.pop(0) if self._answers else True

    def carry_on(self, plan: Plan) -> None:
        self.carried_on.append(plan)

    def follow(self, plan: Plan) -> tuple[Tell, OnEvent, Callable[[], None]]:
        return (lambda line: None), (lambda event: None), (lambda: None)

    def show_outcome(self, plan: Plan, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
