"""Workloads in a real cluster, with the machines that plans buy for them. Only EC2 is left out.

An instance is a value here, and its node is the object that its kubelet would have made; volumes that wait for a pod
are made as a CSI provisioner would. What a pass does in the cluster is done by the engine's own code.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import yaml
from attrs import define, evolve, field, frozen

from engine.actuate.drain import Drainer, KubernetesDrainer
from engine.actuate.nominate import KubernetesNominator, Nominator, Waiting
from engine.actuate.registration import KubernetesRegistrar
from engine.catalog.predicted_labels import predicted_labels
from engine.decide import decide
from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.constraint import TaintEffect
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.ledger import Ledger
from engine.model.node import Instance, InstanceState
from engine.model.plan import Plan
from engine.model.pod import PodKey
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts, Snapshot
from engine.observe.api_server import ApiServer
from engine.observe.cluster_facts import ClusterFacts, Shelves
from engine.observe.kinds import KINDS
from engine.policy.launch_template import image_variant
from engine.policy.load import load_policy
from engine.reconcile.hands import chores_of, nominate_and_register
from engine.reconcile.ports import Ports
from engine.sandbox.cluster_objects import Machine, is_daemon_pod, node_object
from engine.sandbox.control_plane import Plane
from engine.sandbox.plane_client import PlaneClient, PlaneRefused
from engine.sandbox.plane_parts import KWOK_NODE
from tests.cases.shipped import NODE_CLASS
from tests.cluster.api import eventually
from tests.cluster.pod_groups import PRIORITIES, RUN, bound_volume
from tests.cluster.workloads import Workload

# kube-scheduler lets a pod that it found no node for often rest for ten seconds before it tries again.
_STILL_SECONDS, _PATIENCE_SECONDS = 11.0, 60.0
# Lists of all pods keep the API server busy.
_POLL_SECONDS = 0.4
_UNREGISTERED = {"key": keys.UNREGISTERED_TAINT, "effect": TaintEffect.NO_EXECUTE.value}
_NOT_READY = "node.kubernetes.io/not-ready"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_GONE = 404
_CREATED = {
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "Node": "/api/v1/nodes",
}


@frozen
class _Hands:
    """As much of a pass's ports as its chores need."""

    nominator: Nominator
    registrar: KubernetesRegistrar
    drainer: Drainer


@frozen
class _OwnNominator:
    """Knows the waiting pods of one world only: those of others would keep its nodes closed, and never have them.

    Not ``in_turns``: tells nothing of them, so nodes are opened one by one at once.
    """

    nominator: KubernetesNominator
    namespaces: Collection[str]
    in_turns: bool

    def nominate(self, pod: PodKey, node_name: str) -> str:
        return self.nominator.nominate(pod, node_name)

    def waiting(self) -> Waiting | None:
        seen = self.nominator.waiting() if self.in_turns else None
        if seen is None:
            return None
        return evolve(seen, pods={pod: at for pod, at in seen.pods.items() if pod.namespace in self.namespaces})


@define
class Stage:
    """The cluster that worlds share. What is listed of it is read by the observer's own decoders."""

    plane: Plane
    # Forty worlds side by side give kube-scheduler no rest, and each would wait for it.
    in_turns: bool = True
    client: PlaneClient = field(init=False)
    _nominator: KubernetesNominator = field(init=False)
    _registrar: KubernetesRegistrar = field(init=False)
    _drainer: KubernetesDrainer = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.client = self.plane.client()
        api_server = ApiServer(str(self.plane.kubeconfig))
        self._nominator, self._registrar = KubernetesNominator(api_server), KubernetesRegistrar(api_server)
        self._drainer = KubernetesDrainer(api_server)

    def ports_of(self, namespaces: Collection[str]) -> Ports:
        """For a world of these namespaces."""
        own = _OwnNominator(self._nominator, namespaces, self.in_turns)
        return cast("Ports", _Hands(own, self._registrar, self._drainer))

    def create(self, manifest: Mapping[str, Any]) -> None:
        self.client.create(_CREATED[manifest["kind"]].format(manifest["metadata"].get("namespace")), manifest)

    def delete_all(self, kind: str, namespace: str = "", selector: str = "") -> None:
        query = f"?labelSelector={selector}" if selector else ""
        self.client.delete(_CREATED[kind].format(namespace) + query)

    def list(self, kind: str) -> list[dict[str, Any]]:
        """Those of all namespaces."""
        path = _CREATED[kind].replace("/namespaces/{}", "")
        return list(self.client.get(path)["items"])

    def facts(self) -> ClusterFacts:
        """All that the observer reads, as it is at this moment."""
        shelves = Shelves(lambda: datetime.now(UTC))
        for kind in KINDS:
            try:
                items = self.client.get(kind.path).get("items") or []
            except PlaneRefused as refused:
                # KEDA and Karpenter are not installed here.
                if refused.status != _GONE:
                    raise
                items = []
            shelf = shelves.by_kind[kind.name]
            named = [each for each in items if kind.only in ("", each["metadata"]["name"])]
            shelf.replace(shelf.see(each, position) for position, each in enumerate(named))
        return shelves.facts((), {})

    def make_volumes(self) -> None:
        """For each claim that kube-scheduler has chosen a node for, a volume in the node's zone."""
        waiting = [each for each in self.list("PersistentVolumeClaim") if not each["spec"].get("volumeName")]
        for claim in waiting:
            metadata = claim["metadata"]
            chosen = (metadata.get("annotations") or {}).get(_SELECTED_NODE)
            if not chosen:
                continue
            zone = self.client.get(f"/api/v1/nodes/{chosen}")["metadata"]["labels"][keys.ZONE]
            # The class is named for the run, as all that is its own.
            run = claim["spec"]["storageClassName"]
            made = bound_volume(metadata["name"], metadata["namespace"], run, zone, run)
            try:
                self.create(made)
            except PlaneRefused as refused:
                if refused.status != 409:
                    raise

    def create_priorities(self) -> None:
        for name, value in PRIORITIES.items():
            self.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )


@define
class World:
    """One workload in the cluster, and the machines that were bought for it so far.

    ``bought`` counts each round's new nodes; ``displaced`` pods were pre-empted and made again, as by their controller.
    """

    drawn: Workload
    stage: Stage
    environment: Environment
    catalog: Catalog
    policy: Policy = field(init=False)
    document: DesiredDocument | None = None
    ledger: Ledger = Ledger()
    instances: dict[str, Instance] = field(factory=dict)
    bought: list[int] = field(factory=list)
    unplaced: list[str] = field(factory=list)
    bound_elsewhere: int = 0
    displaced: int = 0
    machines_made: int = 0
    first_snapshot: Snapshot | None = None

    def __attrs_post_init__(self) -> None:
        pools = "---\n".join((*(yaml.safe_dump(pool) for pool in self.drawn.pools), NODE_CLASS))
        self.policy = load_policy([("pools.yaml", pools.encode())], self.environment)

    @property
    def pods_wanted(self) -> int:
        return len(self.drawn.pods)

    @property
    def namespaces(self) -> frozenset[str]:
        return frozenset(each["metadata"]["name"] for each in self.drawn.namespaces)

    def create(self) -> None:
        for manifest in (*self.drawn.namespaces, *self.drawn.first, *self.drawn.daemon_sets, *self.drawn.pods):
            self.stage.create(manifest)

    def snapshot(self, facts: ClusterFacts, later: timedelta = timedelta()) -> Snapshot:
        """What a pass would see if this world were alone in the cluster."""
        nodes = tuple(node for node in facts.nodes if node.labels.get(RUN) == self.drawn.name)
        images = {image_variant(kind): "ami-1" for kind in self.catalog.instance_types}
        return Snapshot(
            self.environment.name,
            max([datetime.now(UTC), *(node.created_at for node in nodes)]) + later,
            pods=tuple(pod for pod in facts.pods if pod.key.namespace in self.namespaces),
            nodes=nodes,
            daemon_sets=tuple(each for each in facts.daemon_sets if each.name.startswith(f"{self.drawn.name}-")),
            cloud=CloudFacts(instances=tuple(self.instances.values()), images={"default": images}),
            document=self.document,
            ledger=self.ledger,
            workload=facts.workload,
        )

    def decide(self, snapshot: Snapshot) -> Plan:
        plan = decide(snapshot, self.policy, self.catalog, self.environment)
        self.ledger = plan.ledger
        self.bound_elsewhere += len(plan.binding_differences)
        return plan

    def buy(self, facts: ClusterFacts) -> int:
        """What a pass buys, and the nodes that come of it; how many."""
        snapshot = self.snapshot(facts)
        if self.first_snapshot is None:
            self.first_snapshot = snapshot
        plan = self.decide(snapshot)
        self.unplaced = [f"{each.pod}: {each.refusals}" for each in plan.unplaced]
        self.bought.append(len(plan.launches))
        self.publish(plan)
        return len(plan.launches)

    def publish(self, plan: Plan) -> None:
        """Make the plan's document true, as all lanes would."""
        self.document = plan.document
        for launch in plan.launches:
            self._register(launch.claim)
        settled = evolve(self.ledger, settled_version=plan.document.version)
        self.ledger = evolve(settled, instance_ids={name: one.id for name, one in self.instances.items()})

    def open_nodes(self, facts: ClusterFacts) -> None:
        """What a pass does once it sees the nodes: tells each one's pods, and lets kube-scheduler look at it."""
        snapshot = self.snapshot(facts)
        nominate_and_register(self.stage.ports_of(self.namespaces), chores_of(self.decide(snapshot), snapshot))

    def empty_claims(self, pods: Iterable[Mapping[str, Any]]) -> set[str]:
        """The claims whose nodes hold nothing but daemons."""
        held = {pod["spec"].get("nodeName") for pod in self.own(pods)}
        return {name for name, instance in self.instances.items() if instance.private_dns_name not in held}

    def own(self, pods: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The workload's pods among all; without daemons."""
        return [pod for pod in pods if pod["metadata"]["namespace"] in self.namespaces and not is_daemon_pod(dict(pod))]

    def waiting(self, pods: Iterable[Mapping[str, Any]]) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.own(pods) if not pod["spec"].get("nodeName")]

    def make_again(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Pods that were pre-empted."""
        there = {pod["metadata"]["name"] for pod in self.own(pods)}
        for gone in (pod for pod in self.drawn.pods if pod["metadata"]["name"] not in there):
            self.stage.create(gone)
            self.displaced += 1

    def close(self, node: dict[str, Any]) -> None:
        """A new node takes nobody until a pass has seen it."""
        node["spec"]["taints"].append(_UNREGISTERED)

    def _register(self, claim: Claim) -> None:
        now = datetime.now(UTC)
        name = f"{self.drawn.name}-{self.machines_made}"
        self.machines_made += 1
        instance = Instance(
            id=f"i-{name}",
            claim=claim.name,
            state=InstanceState.RUNNING,
            instance_type=claim.inputs.instance_type,
            zone=claim.inputs.zone,
            capacity_type=claim.inputs.capacity_type,
            launched_at=now,
            private_dns_name=name,
        )
        self.instances[claim.name] = instance
        machine = Machine(instance.id, name, instance.zone, instance.instance_type, is_running=True, claim=claim)
        node = node_object(machine, claim, name, now)
        kind = self.catalog.instance_type(instance.instance_type)
        node["metadata"]["labels"] |= dict(predicted_labels(kind)) if kind is not None else {}
        node["metadata"]["annotations"] |= dict([KWOK_NODE])
        self.close(node)
        self.stage.create(node)


def play(stage: Stage, worlds: Iterable[World], most_rounds: int) -> None:
    """Pass by pass, all worlds side by side, until all pods are bound and no plan buys anything; or ``most_rounds``."""
    every = list(worlds)
    for world in every:
        world.create()
    eventually(lambda: _all_tried(stage, every), "kube-scheduler has tried every pod", poll_seconds=_POLL_SECONDS)
    for _ in range(most_rounds):
        facts = stage.facts()
        bought = [world.buy(facts) for world in every]
        pods = stage.list("Pod")
        if not any(bought) and not any(world.waiting(pods) for world in every):
            return
        eventually(lambda: all_ready(stage), "every node is ready", poll_seconds=_POLL_SECONDS)
        facts = stage.facts()
        for world in every:
            world.open_nodes(facts)
        let_bind(stage, every)


def clear(stage: Stage, worlds: Iterable[World]) -> None:
    """Leave room for the next. Namespaces stay: emptying one costs the plane more than all the rest."""
    for world in worlds:
        made = (*world.drawn.daemon_sets, *world.drawn.pods, *world.drawn.first)
        held = {(each["kind"], each["metadata"].get("namespace")) for each in made}
        for kind, namespace in sorted((kind, namespace) for kind, namespace in held if namespace):
            stage.delete_all(kind, namespace)
    for kind in ("Node", "PersistentVolume", "StorageClass"):
        stage.delete_all(kind, selector=RUN)


def let_bind(stage: Stage, worlds: Iterable[World]) -> None:
    """Wait until all are bound, or kube-scheduler has bound nothing for longer than its back-off lasts."""
    every = list(worlds)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    waiting: list[list[str]] = []
    since = time.monotonic()
    while time.monotonic() - since < _STILL_SECONDS and time.monotonic() < deadline:
        stage.make_volumes()
        pods = stage.list("Pod")
        for world in every:
            world.make_again(pods)
        left = [world.waiting(pods) for world in every]
        if not any(left):
            return
        if left != waiting:
            waiting, since = left, time.monotonic()
        time.sleep(_POLL_SECONDS)


def _all_tried(stage: Stage, worlds: Iterable[World]) -> bool:
    tried = Counter(pod["metadata"]["namespace"] for pod in stage.list("Pod") if was_refused(pod))
    return all(sum(tried[name] for name in world.namespaces) >= world.pods_wanted for world in worlds)


def all_ready(stage: Stage) -> bool:
    return not any(
        taint["key"] == _NOT_READY for node in stage.list("Node") for taint in node["spec"].get("taints") or []
    )


def was_refused(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)
