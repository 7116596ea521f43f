"""A simulated world: EC2, kubelets, a scheduler and controllers, shown as a snapshot and moved by a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

from attrs import evolve, field, frozen

from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.eviction import Eviction
from engine.model.ledger import Ledger
from engine.model.node import Instance, InstanceState
from engine.model.outcome import ClaimOutcome, OutcomeStatus
from engine.model.plan import Plan, Removal, RemovalPhase
from engine.model.pod import Pod, PodKey
from engine.model.policy import Policy
from engine.model.reservation import CapacityReservation
from engine.model.snapshot import Snapshot
from engine.simulate.agenda import Agenda
from engine.simulate.cluster import SimulatedCluster
from engine.simulate.conditions import Conditions, FaultKind
from engine.simulate.controllers import Controllers
from engine.simulate.ec2 import SimulatedEc2
from engine.simulate.faults import Faults
from engine.simulate.kubelets import Kubelets
from engine.simulate.tasks import Task

Decider = Callable[[Snapshot, Policy, Catalog, Environment], Plan]


@frozen
class Done:
    """What became of a plan at once: launches by claim, and evictions with the removal that asked for them."""

    launches: tuple[ClaimOutcome, ...] = ()
    evictions: tuple[tuple[Removal, Eviction], ...] = ()


@frozen
class Bindings:
    """Pods that were bound since they were last asked for, as (pod, seconds waited, whether it was stopped before);
    ``lost`` counts pods that a machine took with it."""

    bound: tuple[tuple[Pod, float, bool], ...] = ()
    lost: Mapping[str, int] = field(factory=dict)


class World:
    """Begins as ``start`` shows it, and goes on from there by ``tasks`` and ``conditions``.

    ``is_urgent``: something happened that a pass should see soon; ``has_moved``: anything happened at all. ``refused``
    are the pods that the latest plan asked to leave and that their PodDisruptionBudgets held.
    """

    def __init__(
        self, start: Snapshot, tasks: Sequence[Task], catalog: Catalog, conditions: Conditions = Conditions()
    ) -> None:
        self._start, self._conditions = start, conditions
        self._chance = Random(conditions.seed)
        self._agenda = Agenda(start.taken_at)
        self.ledger: Ledger = start.ledger
        self.document: DesiredDocument | None = start.document
        self.is_urgent, self.has_moved = True, True
        self.refused: set[PodKey] = set()
        self._is_binding = False
        self._seen_waiting: frozenset[PodKey] = frozenset()
        self._placed: Mapping[PodKey, str] = {}
        self._bound: list[tuple[Pod, float, bool]] = []
        self._lost: Counter[str] = Counter()
        latencies = conditions.latencies
        vcpus = {each.name: each.vcpus for each in catalog.instance_types}
        self.ec2 = SimulatedEc2(self._agenda, conditions, self._chance, vcpus, self._came_up, self._ended)
        self.cluster = SimulatedCluster(
            start.daemon_sets, start.workload.disruption_budgets, conditions.scoring, self._planned_node
        )
        self._kubelets = Kubelets(
            self._agenda, latencies, self._chance, self.cluster, self._runs, lambda: self._stir(is_urgent=True)
        )
        self._controllers = Controllers(
            self._agenda, latencies, self._chance, self.cluster, lambda: self._stir(is_urgent=False)
        )
        self._faults = Faults(
            self._agenda, self.ec2, self.cluster, self._kubelets, self._lose_pods, lambda: self._stir(is_urgent=True)
        )
        self._adopt(start)
        self._controllers.expect(tasks)
        self._faults.expect(conditions.faults)
        self._images = start.cloud.images
        for number, at in enumerate(sorted(conditions.new_images), start=1):
            self._agenda.enter(at, lambda release=number: self._renew_images(release))  # type: ignore[misc]

    @property
    def now(self) -> datetime:
        return self._agenda.now

    @property
    def next_at(self) -> datetime | None:
        """When the next thing happens by itself; None is never."""
        return self._agenda.next_at

    @property
    def cluster_is_moving(self) -> bool:
        """Whether a machine is on its way, up or down, or a pod between two nodes."""
        is_changing = any(
            each.state in (InstanceState.PENDING, InstanceState.SHUTTING_DOWN) for each in self.ec2.instances()
        )
        return is_changing or bool(self._controllers.expected)

    @property
    def jobs_done(self) -> int:
        return self._controllers.jobs_done

    @property
    def work_lost(self) -> timedelta:
        """What jobs had done when they were stopped."""
        return self._controllers.work_lost

    @property
    def struck(self) -> Mapping[FaultKind, int]:
        """How often each fault found something to go wrong with."""
        return {**self._faults.struck, FaultKind.PLUGIN_LATE: self._kubelets.late_plugins}

    @property
    def stopped_before(self) -> frozenset[PodKey]:
        """Pods that were made for others, which were evicted or lost."""
        return frozenset(self._controllers.restarted)

    @property
    def bad_reads(self) -> int:
        """How often a pass was shown something else than what is, or a time that is wrong."""
        return self._faults.misled

    def nodes_by_claim(self) -> Mapping[str, str]:
        """The names of the nodes of machines that are alive, by their claims; those that have none yet are left out."""
        names = self._kubelets.names()
        every = {each.claim: names[each.id] for each in self.ec2.alive() if each.claim and each.id in names}
        return {claim: name for claim, name in every.items() if self.cluster.node(name) is not None}

    def advance(self, until: datetime) -> None:
        """Let time pass."""
        if self._agenda.advance(until):
            self.has_moved = True

    def snapshot(self) -> Snapshot:
        """What a pass would see now."""
        self.is_urgent = self.has_moved = False
        self._seen_waiting = frozenset(pod.key for pod in self.cluster.waiting)
        start, instances = self._start, self.ec2.instances()
        seen = evolve(
            start,
            taken_at=self.now,
            pods=self.cluster.pods,
            nodes=self.cluster.nodes,
            document=self.document,
            ledger=self.ledger,
            cloud=evolve(
                start.cloud,
                images=self._images,
                instances=instances,
                absent_claims=self._absent_claims(instances),
                reservations=self._reservations(),
            ),
            workload=evolve(start.workload, disruption_budgets=self.cluster.disruption_budgets),
        )
        return self._faults.seen_through(seen)

    def apply(self, plan: Plan) -> Done:
        """Do what a plan says, as a pass does: remember, mark and evict, publish, launch and let go."""
        if plan.paused:
            return Done()
        self.ledger = plan.ledger
        nodes = self.nodes_by_claim()
        placed = {each.pod: each.node or nodes.get(each.claim or "", "") for each in plan.placements}
        self._placed = {pod: name for pod, name in placed.items() if name}
        for told in plan.nominations:
            pod = self.cluster.pod(told.pod)
            if pod is not None and pod.node_name is None:
                self.cluster.change_pod(evolve(pod, nominated_node_name=told.node))
                self._bind_soon()
        self.refused = set()
        evictions = tuple((each, answer) for each in plan.removals for answer in self._mark(each))
        launches: tuple[ClaimOutcome, ...] = ()
        if self.document is None or plan.document.version != self.document.version:
            launches = self._publish(plan)
        return Done(launches, evictions)

    def bindings(self) -> Bindings:
        """What was bound and lost since this was last asked."""
        found = Bindings(tuple(self._bound), dict(sorted(self._lost.items())))
        self._bound, self._lost = [], Counter()
        return found

    def _adopt(self, start: Snapshot) -> None:
        claims = {claim.name: claim for claim in start.document.claims} if start.document is not None else {}
        self.ec2.adopt(start.cloud.instances, claims)
        for node in sorted(start.nodes, key=lambda each: each.name):
            if node.instance_id:
                self._kubelets.know(node.instance_id, node.name)
            self.cluster.put_node(node)
        for pod in sorted(start.pods, key=lambda each: each.key):
            if not (pod.is_finished or pod.deleting):
                self.cluster.add_pod(pod)
                self._controllers.adopt(pod)
        with_nodes = {node.instance_id for node in start.nodes}
        for instance in start.cloud.instances:
            if instance.state is InstanceState.RUNNING and instance.id not in with_nodes and instance.claim in claims:
                self._kubelets.boot(claims[instance.claim], instance)

    def _mark(self, removal: Removal) -> list[Eviction]:
        if removal.phase is not RemovalPhase.MARK or removal.record.node is None:
            return []
        node = self.cluster.node(removal.record.node)
        if node is None:
            return []
        self.cluster.mark(node.name, self.now, removal.record.reason)
        for forced in removal.forced:
            left = timedelta(seconds=forced.seconds_left(self.now))
            self._agenda.enter(self.now + left, lambda key=forced.pod: self._delete(key))  # type: ignore[misc]
        answers = []
        for answer, pod in self.cluster.evict(removal.pods):
            answers.append(answer)
            if pod is not None:
                self._controllers.stopped(pod)
        if not node.is_marked or any(not answer.is_refused for answer in answers):
            # To be refused once more changes nothing that a pass should see.
            self._stir(is_urgent=True)
        self.refused |= {answer.pod for answer in answers if answer.is_refused}
        return answers

    def _delete(self, key: PodKey) -> None:
        """A pod's time on a node that is to leave is over."""
        pod = self.cluster.remove_pod(key)
        if pod is not None:
            self._controllers.stopped(pod)

    def _publish(self, plan: Plan) -> tuple[ClaimOutcome, ...]:
        before = {record.claim for record in self.document.removals} if self.document is not None else set()
        self.document = plan.document
        reservations = self._reservations()
        outcomes = tuple(self.ec2.run_instance(launch.claim, reservations) for launch in plan.launches)
        for record in plan.document.removals:
            if record.claim not in before:
                self.ec2.terminate(record.claim)
        version = plan.document.version
        wait = self._conditions.latencies.converge.drawn(self._chance)
        self._agenda.enter(self.now + wait, lambda: self._learn(version, outcomes))
        return outcomes

    def _learn(self, version: int, outcomes: Sequence[ClaimOutcome]) -> None:
        """The outcome of a convergence reaches the ledger."""
        refused = {each.claim: each for each in outcomes if each.status is OutcomeStatus.FAILED_CAPACITY}
        made = {each.claim: each.instance_id for each in outcomes if each.instance_id}
        known = {each.claim: each for each in self.ledger.outcomes} | refused
        is_settled = not refused and self.document is not None and self.document.version == version
        self.ledger = evolve(
            self.ledger,
            instance_ids={**self.ledger.instance_ids, **made},
            outcomes=tuple(known[claim] for claim in sorted(known)),
            settled_version=version if is_settled else self.ledger.settled_version,
        )
        self._stir(is_urgent=bool(refused))

    def _renew_images(self, release: int) -> None:
        first = self._start.cloud.images
        self._images = {
            name: {variant: f"{image}-{release}" for variant, image in variants.items()}
            for name, variants in first.items()
        }
        self._stir(is_urgent=False)

    def _came_up(self, claim: Claim, instance: Instance) -> None:
        self._kubelets.boot(claim, instance)

    def _ended(self, instance: Instance) -> None:
        name = self._kubelets.forget(instance.id)
        self._lose_pods(self.cluster.remove_node(name) if name else [])
        self._stir(is_urgent=True)

    def _lose_pods(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            self._lost[pod.node_name or ""] += 1
            self._controllers.stopped(pod)
        self._stir(is_urgent=True)

    def _runs(self, instance_id: str) -> bool:
        return self.ec2.state_of(instance_id) is InstanceState.RUNNING

    def _stir(self, *, is_urgent: bool) -> None:
        self.has_moved = True
        self.is_urgent = self.is_urgent or is_urgent
        self._bind_soon()

    def _bind_soon(self) -> None:
        """The scheduler comes after all that happens at this moment."""
        if not self._is_binding:
            self._is_binding = True
            self._agenda.enter(self.now, self._bind)

    def _bind(self) -> None:
        self._is_binding = False
        for pod in self.cluster.bind(self.now):
            waited = (self.now - max(pod.created_at, self._start.taken_at)).total_seconds()
            self._bound.append((pod, waited, pod.key in self._controllers.restarted))
            self._controllers.started(pod)
        # Whom a pass has seen waiting needs no further one for that.
        if any(pod.key not in self._seen_waiting for pod in self.cluster.waiting):
            self.is_urgent = True

    def _planned_node(self, pod: Pod) -> str:
        if pod.nominated_node_name is not None:
            return pod.nominated_node_name
        claim = self.ledger.planned.get(str(pod.key))
        return self._placed.get(pod.key) or self.nodes_by_claim().get(claim or "", "")

    def _absent_claims(self, instances: Sequence[Instance]) -> tuple[str, ...]:
        """Claims whose machine EC2 says is gone when it is asked for by its id."""
        if self.document is None:
            return ()
        alive = {each.claim for each in instances if each.state is not InstanceState.TERMINATED}
        gone = {each.claim for each in instances if each.state is InstanceState.TERMINATED}
        known = self.ledger.instance_ids
        return tuple(
            sorted(
                claim.name
                for claim in self.document.claims
                if claim.name not in alive
                and (
                    claim.name in gone
                    or (claim.name in known and self.ec2.state_of(known[claim.name]) is InstanceState.TERMINATED)
                )
            )
        )

    def _reservations(self) -> tuple[CapacityReservation, ...]:
        """With what is available now: what ours used when it all began is theirs to use again."""
        found = []
        for each in self._start.cloud.reservations:
            ours = sum(
                claim.inputs.capacity_reservation_id == each.id
                for claim in (self._start.document.claims if self._start.document is not None else ())
            )
            left = each.available + ours - self.ec2.reserved_in_use(each.id)
            found.append(evolve(each, available=max(0, min(each.total, left))))
        return tuple(found)
