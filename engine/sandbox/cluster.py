"""The sandbox's Kubernetes cluster: nodes register for machines that run, pods bind, evicted pods come back pending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen

from engine.model import labels as keys
from engine.model.constraint import Taint, TaintEffect
from engine.model.drain import Mark
from engine.model.eviction import Eviction, EvictionStatus
from engine.model.node import Node
from engine.model.pod import DaemonSet, Pod, PodKey
from engine.sandbox.cluster_objects import (
    Machine,
    bind,
    daemon_pod,
    drop_startup_taints,
    flattened,
    hold_back,
    instance_of,
    is_daemon_pod,
    node_object,
    pods_of,
    set_ready,
    successor,
    timestamp,
)
from engine.sandbox.cluster_state import ClusterFile, ClusterState, KubernetesObject
from engine.simulate.binding import bind_pods, may_run

_DISRUPTED = {"key": keys.DISRUPTED_TAINT, "effect": TaintEffect.NO_SCHEDULE.value}


class DecodedObjects(Protocol):
    """Three lists of Kubernetes JSON as model values."""

    @property
    def pods(self) -> tuple[Pod, ...]: ...

    @property
    def nodes(self) -> tuple[Node, ...]: ...

    @property
    def daemon_sets(self) -> tuple[DaemonSet, ...]: ...


# observe/ has the decoder; it is handed in, since the two rooms do not see each other.
Decoder = Callable[[list[Any], list[Any], list[Any]], DecodedObjects]


@frozen
class ClusterObjects:
    """What the simulated API server answers: Kubernetes JSON."""

    pods: list[KubernetesObject]
    nodes: list[KubernetesObject]
    daemon_sets: list[KubernetesObject]


class SimulatedCluster:
    """A cluster in a file of ``state_dir``; ``first_objects`` are what it holds when it is new.

    It never moves by itself: ``advance`` says which machines there are, and lets kubelets, controllers and the
    scheduler do what they would do about it. Raises SandboxClusterError when its file cannot be read.
    """

    def __init__(
        self,
        state_dir: Path,
        decode: Decoder,
        first_objects: Callable[[], Sequence[KubernetesObject]] = tuple,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._decode = decode
        self._clock = clock
        self._first_objects = first_objects
        self._file = ClusterFile(state_dir, self._first_state)

    def read(self) -> ClusterObjects:
        """All pods, nodes and daemonsets, as they stand."""
        state = self._file.state()
        return ClusterObjects(pods=state.pods, nodes=state.nodes, daemon_sets=state.daemon_sets)

    def advance(self, machines: Iterable[Machine], planned: Mapping[str, str] | None = None) -> None:
        """Bring nodes and pods to where these machines, all that there are, let them come.

        ``planned`` has the claims that pods are planned for, by ``NAMESPACE/NAME``: in a real cluster such pods are
        nominated to the claim's node once it registers, so the scheduler tries that node first.
        """
        present = {machine.instance_id: machine for machine in machines}
        with self._file.changing() as state:
            self._lose_nodes(state, present)
            self._register_nodes(state, present)
            self._start_daemons(state)
            self._settle_nodes(state, present)
            self._bind_pods(state, _nominated(state, present, planned or {}))

    def mark(self, node_name: str, mark: Mark) -> bool:
        """Cordon a node and taint it for removal; False when there is no such node."""
        taint = {**_DISRUPTED, "timeAdded": timestamp(mark.at)}
        return self._retaint(node_name, unschedulable=True, added=[taint], reason=mark.reason.value)

    def unmark(self, node_name: str) -> bool:
        """Undo ``mark``; False when there is no such node."""
        return self._retaint(node_name, unschedulable=False, added=[], reason=None)

    def register(self, node_name: str, labels: Mapping[str, str], taints: Sequence[Taint], *, hold: bool) -> bool:
        """Label a node; its taints this cluster has seen to, and it holds none. False when there is no such node."""
        return self.label(node_name, labels)

    def open(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Label a node, which was never closed. False when there is no such node."""
        return self.label(node_name, labels)

    def label(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Add labels to a node; False when there is no such node."""
        with self._file.changing() as state:
            node = next((each for each in state.nodes if each["metadata"]["name"] == node_name), None)
            if node is not None:
                node["metadata"].setdefault("labels", {}).update(labels)
            return node is not None

    def annotate(self, node_name: str, annotations: Mapping[str, str | None]) -> bool:
        """Add annotations to a node, and take away those that are None; False when there is no such node."""
        with self._file.changing() as state:
            node = next((each for each in state.nodes if each["metadata"]["name"] == node_name), None)
            if node is not None:
                there = {**(node["metadata"].get("annotations") or {}), **annotations}
                node["metadata"]["annotations"] = {key: text for key, text in there.items() if text is not None}
            return node is not None

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]:
        """Let pods go from their nodes; each comes back pending under a new name. No budget is ever in the way."""
        with self._file.changing() as state:
            wanted = set(pods)
            found = {key for pod in state.pods if (key := _key(pod)) in wanted and pod["spec"].get("nodeName")}
            self._replace(state, lambda pod: _key(pod) in found)
        return tuple(Eviction(pod, EvictionStatus.EVICTED if pod in found else EvictionStatus.GONE) for pod in pods)

    def delete(self, pods: Sequence[tuple[PodKey, int]]) -> tuple[Eviction, ...]:
        """Let pods go at once: nothing here takes time to end."""
        return self.evict([pod for pod, _ in pods])

    def add_objects(self, objects: Sequence[KubernetesObject]) -> int:
        """Apply pods, workloads (each with its replicas), daemonsets and nodes; other kinds are passed over.

        The number of pods that are new: those of a name that exists already stay as they are.
        """
        with self._file.changing() as state:
            return _apply(state, objects, self._clock())

    def remove_pods(self, labels: Mapping[str, str], keep: int = 0) -> int:
        """Take away pods that carry all these labels until ``keep`` are left, those that wait first, then the newest.

        How many went. Daemon pods are left alone.
        """
        with self._file.changing() as state:
            matching = [
                pod
                for pod in state.pods
                if not is_daemon_pod(pod) and labels.items() <= (pod["metadata"].get("labels") or {}).items()
            ]
            matching.sort(key=lambda pod: (pod["metadata"]["creationTimestamp"], _key(pod)), reverse=True)
            matching.sort(key=lambda pod: bool(pod["spec"].get("nodeName")))
            going = {_key(pod) for pod in matching[: max(0, len(matching) - keep)]}
            state.pods = [pod for pod in state.pods if _key(pod) not in going]
        return len(going)

    def _first_state(self) -> ClusterState:
        state = ClusterState()
        _apply(state, self._first_objects(), self._clock())
        return state

    def _lose_nodes(self, state: ClusterState, present: Mapping[str, Machine]) -> None:
        lost = {
            node["metadata"]["name"] for node in state.nodes if instance_of(node) and instance_of(node) not in present
        }
        state.nodes = [node for node in state.nodes if node["metadata"]["name"] not in lost]
        self._replace(state, lambda pod: pod["spec"].get("nodeName") in lost)

    def _settle_nodes(self, state: ClusterState, present: Mapping[str, Machine]) -> None:
        for node in state.nodes:
            machine = present.get(instance_of(node))
            if machine is None:
                continue
            set_ready(node, machine.is_running)
            if machine.claim is not None:
                drop_startup_taints(node, machine.claim)

    def _register_nodes(self, state: ClusterState, present: Mapping[str, Machine]) -> None:
        registered = {instance_of(node) for node in state.nodes}
        names = {node["metadata"]["name"] for node in state.nodes}
        for machine in sorted(present.values(), key=lambda each: each.instance_id):
            if machine.claim is None or not machine.is_running or machine.instance_id in registered:
                continue
            name = machine.node_name if machine.node_name not in names else machine.instance_id
            names.add(name)
            state.nodes.append(node_object(machine, machine.claim, name, self._clock()))

    def _start_daemons(self, state: ClusterState) -> None:
        facts = self._decode(state.pods, state.nodes, state.daemon_sets)
        placings = {each.name: each.placing for each in facts.daemon_sets}
        there = {_key(pod) for pod in state.pods}
        for node in facts.nodes:
            for daemon_set in state.daemon_sets:
                placing = placings.get(daemon_set["metadata"]["name"])
                if not node.ready or placing is None or not may_run(placing, node):
                    continue
                pod = daemon_pod(daemon_set, node.name, self._clock())
                if _key(pod) not in there:
                    state.pods.append(pod)

    def _bind_pods(self, state: ClusterState, nominated: Mapping[str, str]) -> None:
        facts = self._decode(state.pods, state.nodes, state.daemon_sets)
        bound, unbound = bind_pods(facts.pods, facts.nodes, nominated)
        for pod in state.pods:
            key = _key(pod)
            if key in bound:
                bind(pod, bound[key], self._clock())
            elif key in unbound:
                hold_back(pod, unbound[key])

    def _replace(self, state: ClusterState, is_going: Callable[[KubernetesObject], bool]) -> None:
        """Pods that go are made again by their controllers, daemon pods and finished ones are not."""
        going = [pod for pod in state.pods if is_going(pod)]
        if not going:
            return
        successors = [
            successor(pod, self._clock())
            for pod in going
            if not is_daemon_pod(pod) and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]
        state.pods = [pod for pod in state.pods if not is_going(pod)] + successors

    def _retaint(self, node_name: str, *, unschedulable: bool, added: list[dict[str, str]], reason: str | None) -> bool:
        with self._file.changing() as state:
            node = next((each for each in state.nodes if each["metadata"]["name"] == node_name), None)
            if node is None:
                return False
            spec = node.setdefault("spec", {})
            taints = spec.get("taints") or []
            # A mark keeps its time, and its reason.
            own = [taint for taint in taints if taint.get("key") == keys.DISRUPTED_TAINT]
            others = [taint for taint in taints if taint.get("key") != keys.DISRUPTED_TAINT]
            spec["taints"] = others + ((own or added) if added else [])
            spec["unschedulable"] = unschedulable
            annotations = node["metadata"].setdefault("annotations", {})
            if reason is None:
                annotations.pop(keys.MARKED_FOR, None)
            else:
                annotations.setdefault(keys.MARKED_FOR, reason)
            return True


def _apply(state: ClusterState, objects: Sequence[KubernetesObject], now: datetime) -> int:
    there = {_key(pod) for pod in state.pods}
    before = len(state.pods)
    for manifest in flattened(objects):
        match manifest.get("kind"):
            case "DaemonSet":
                _put(state.daemon_sets, manifest, now)
            case "Node":
                _put(state.nodes, manifest, now)
            case _:
                for pod in pods_of(manifest, now):
                    if _key(pod) not in there:
                        there.add(_key(pod))
                        state.pods.append(pod)
    return len(state.pods) - before


def _put(held: list[KubernetesObject], manifest: KubernetesObject, now: datetime) -> None:
    name = manifest["metadata"]["name"]
    manifest = {**manifest, "metadata": {"creationTimestamp": timestamp(now), **manifest["metadata"]}}
    held[:] = [each for each in held if each["metadata"]["name"] != name] + [manifest]


def _key(pod: KubernetesObject) -> PodKey:
    return PodKey(pod["metadata"].get("namespace", "default"), pod["metadata"]["name"])


def _nominated(state: ClusterState, present: Mapping[str, Machine], planned: Mapping[str, str]) -> Mapping[str, str]:
    """The node of each planned pod's claim, by the pod's ``NAMESPACE/NAME``, where the node is there."""
    node_of = {
        machine.claim.name: node["metadata"]["name"]
        for node in state.nodes
        if (machine := present.get(instance_of(node))) is not None and machine.claim is not None
    }
    return {pod: node_of[claim] for pod, claim in planned.items() if claim in node_of}
