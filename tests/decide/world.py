"""A small world that does what plans say: machines launch or are refused, nodes come up, pods bind, time goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from attrs import evolve

from engine.decide import decide
from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.ledger import Ledger
from engine.model.node import Instance, InstanceState, Node
from engine.model.outcome import ClaimOutcome, OutcomeStatus
from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import DaemonSet, Pod, PodPhase
from engine.model.policy import Policy
from engine.model.quantity import Resources
from engine.model.snapshot import CloudFacts, Snapshot
from engine.policy.launch_template import image_variant
from tests.builders import NOON, TYPES, catalog, environment, minutes, node_class, taint

IMAGES = {image_variant(kind): f"ami-{image_variant(kind)}" for kind in TYPES}


def policy(*pools: object, **more: object) -> Policy:
    fields: dict[str, object] = {"node_classes": (node_class(),), "digest": "test-policy", **more}
    return Policy(node_pools=tuple(pools), **fields)  # type: ignore[arg-type]


class World:
    """``refuses`` says of each launch whether EC2 has no capacity for it, or with what code it refuses it. ``keeps``
    tells whether a deletion fails.

    ``vanishes``: the launch's outcome and its instance are never seen; ``registers``: whether a node comes;
    ``reports``: what its node shows of itself at each time. ``binds`` is what the kube-scheduler prefers: the least
    comes first.
    """

    def __init__(
        self,
        rules: Policy,
        pods: Iterable[Pod] = (),
        *,
        daemon_sets: Iterable[DaemonSet] = (),
        sold: Catalog | None = None,
        stack: Environment | None = None,
        refuses: Callable[[Claim], bool | str] = lambda claim: False,
        keeps: Callable[[str], bool] = lambda claim: False,
        vanishes: Callable[[Claim], bool] = lambda claim: False,
        registers: Callable[[Claim], bool] = lambda claim: True,
        reports: Callable[[Claim, Node], Node] = lambda claim, node: node,
        binds: Callable[[Pod, Node], object] = lambda pod, node: node.name,
    ) -> None:
        self.policy = rules
        self.catalog = sold or catalog()
        self.environment = stack or environment()
        self.refuses, self.keeps = refuses, keeps
        self.vanishes, self.registers, self.reports, self.binds = vanishes, registers, reports, binds
        self.pods = {pod.key: pod for pod in pods}
        self.daemon_sets = tuple(daemon_sets)
        self.nodes: dict[str, Node] = {}
        self.instances: dict[str, Instance] = {}
        self.document: DesiredDocument | None = None
        self.ledger = Ledger()
        self.now: datetime = NOON
        self._launched = 0
        self.launched_ever: list[str] = []

    def snapshot(self, **more: object) -> Snapshot:
        fields: dict[str, object] = {
            "environment": self.environment.name,
            "taken_at": self.now,
            "pods": tuple(self.pods.values()),
            "nodes": tuple(self.nodes.values()),
            "daemon_sets": self.daemon_sets,
            "cloud": self.cloud(),
            "document": self.document,
            "ledger": self.ledger,
            **more,
        }
        return Snapshot(**fields)  # type: ignore[arg-type]

    def cloud(self) -> CloudFacts:
        images = {each.name: IMAGES for each in self.policy.node_classes}
        return CloudFacts(instances=tuple(self.instances.values()), images=images)

    def decide(self, **more: object) -> Plan:
        return decide(self.snapshot(**more), self.policy, self.catalog, self.environment)

    def turn(self, passing: timedelta = minutes(10)) -> Plan:
        """One pass, and what follows from it until the next."""
        plan = self.decide()
        self.apply(plan)
        self.settle()
        self.now += passing
        return plan

    def rest(self, most: int = 30) -> Plan:
        """Passes until one has nothing to do; the plan of that one."""
        for _ in range(most):
            plan = self.turn()
            if plan.is_empty:
                return plan
        raise AssertionError(f"no rest after {most} passes: {plan.launches} {plan.removals}")

    def apply(self, plan: Plan) -> None:
        """Mark, publish, converge and remember."""
        self.ledger = plan.ledger
        for removal in plan.removals:
            if removal.phase is RemovalPhase.MARK:
                self.mark(removal.record.node or "")
        document = plan.document
        if document.version == (self.document.version if self.document else 0):
            return
        assert document.version == plan.base_version + 1
        self.document = document
        outcomes = [self._launch(launch.claim) for launch in plan.launches]
        kept = [record.claim for record in document.removals if self.keeps(record.claim) and self._alive(record.claim)]
        for record in document.removals:
            if record.claim not in kept:
                self._terminate(record.claim)
        refused = [each for each in outcomes if each.status is OutcomeStatus.FAILED_CAPACITY]
        self.ledger = evolve(
            self.ledger,
            outcomes=tuple(refused),
            settled_version=self.ledger.settled_version if kept or refused else document.version,
        )

    def settle(self) -> None:
        """Nodes come up, and the kube-scheduler binds what fits."""
        for instance in self.instances.values():
            name = f"node-{instance.id}"
            claim = self.document.claim(instance.claim) if self.document else None
            if not instance.is_alive or claim is None or not self.registers(claim):
                continue
            if name not in self.nodes:
                self.nodes[name] = Node(
                    name=name,
                    allocatable=claim.allocatable,
                    created_at=self.now,
                    provider_id=f"aws:///{instance.zone}/{instance.id}",
                    labels={**claim.labels, keys.REGISTERED: "true", keys.INITIALIZED: "true"},
                    taints=claim.taints,
                )
            node = self.nodes[name]
            whole = evolve(node, ready=True, allocatable=claim.allocatable)
            self.nodes[name] = whole if node.is_marked else self.reports(claim, evolve(whole, taints=claim.taints))
        for key in sorted(self.pods):
            pod = self.pods[key]
            target = self._node_for(pod) if pod.is_waiting else None
            if target is not None:
                self.pods[key] = evolve(pod, node_name=target, phase=PodPhase.RUNNING)

    def finish(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self.pods.pop(pod.key, None)

    def lose(self, claim: str) -> None:
        """The machine dies, its node with it; its pods wait again."""
        self._terminate(claim)

    def mark(self, name: str) -> None:
        node = self.nodes[name]
        mark = taint(keys.DISRUPTED_TAINT)
        self.nodes[name] = evolve(node, unschedulable=True, taints=(*node.taints, mark))

    def running(self) -> list[Instance]:
        return [instance for instance in self.instances.values() if instance.is_alive]

    def room(self, node: Node) -> Resources:
        bound = (pod.placing.requests for pod in self.pods.values() if pod.node_name == node.name)
        return sum((Resources({k: -v for k, v in each.items()}) for each in bound), node.allocatable)

    def _node_for(self, pod: Pod) -> str | None:
        placing = pod.placing
        for node in sorted(self.nodes.values(), key=lambda each: (self.binds(pod, each), each.name)):  # type: ignore[arg-type, return-value]
            if not node.ready:
                continue
            borne = all(any(each.tolerates(taint) for each in placing.tolerations) for taint in node.taints)
            wanted = all(node.labels.get(key) == value for key, value in placing.node_selector.items())
            if not node.unschedulable and borne and wanted and placing.requests.fits_in(self.room(node)):
                return node.name
        return None

    def _launch(self, claim: Claim) -> ClaimOutcome:
        assert claim.name not in self.launched_ever, "a name is never used twice"
        self.launched_ever.append(claim.name)
        refused = self.refuses(claim)
        if refused:
            code = refused if isinstance(refused, str) else "InsufficientInstanceCapacity"
            return ClaimOutcome(claim.name, OutcomeStatus.FAILED_CAPACITY, code=code)
        if self.vanishes(claim):
            return ClaimOutcome(claim.name, OutcomeStatus.UNKNOWN)
        self._launched += 1
        identity = f"i-{self._launched:05d}"
        inputs = claim.inputs
        self.instances[identity] = Instance(
            id=identity,
            claim=inputs.tags[keys.TAG_CLAIM],
            state=InstanceState.RUNNING,
            instance_type=inputs.instance_type,
            zone=inputs.zone,
            capacity_type=inputs.capacity_type,
            launched_at=self.now,
        )
        return ClaimOutcome(claim.name, OutcomeStatus.CREATED, instance_id=identity)

    def _alive(self, claim: str) -> bool:
        return any(instance.claim == claim for instance in self.running())

    def _terminate(self, claim: str) -> None:
        for identity, instance in list(self.instances.items()):
            if instance.claim == claim:
                self.instances[identity] = evolve(instance, state=InstanceState.TERMINATED)
                gone = f"node-{identity}"
                self.nodes.pop(gone, None)
                for key, pod in self.pods.items():
                    if pod.node_name == gone:
                        self.pods[key] = evolve(pod, node_name=None, phase=PodPhase.PENDING)
