"""A simulated cluster's pods and nodes, its scheduler, and the eviction API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import Taint, TaintEffect
from engine.model.eviction import Eviction, EvictionStatus
from engine.model.node import Node
from engine.model.pod import DaemonSet, Owner, Pod, PodKey, PodPhase
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason
from engine.model.workload import PodDisruptionBudget
from engine.simulate.binding import Rooms, Scoring, may_run
from engine.simulate.pod_budgets import counted, covers

_MARK = Taint(keys.DISRUPTED_TAINT, "", TaintEffect.NO_SCHEDULE)
_DAEMONS = "kube-system"


class SimulatedCluster:
    """What the API server holds. Nothing here moves by itself.

    ``coupled`` says where a pod that other pods tie may go: the scheduler here knows no topology, so it follows the
    plan, which does.
    """

    def __init__(
        self,
        daemon_sets: Sequence[DaemonSet],
        budgets: Sequence[PodDisruptionBudget],
        scoring: Scoring,
        coupled: Callable[[Pod], str],
    ) -> None:
        self._daemon_sets, self._budgets = tuple(daemon_sets), tuple(budgets)
        self._rooms = Rooms(scoring, coupled)
        self._pods: dict[PodKey, Pod] = {}
        self._nodes: dict[str, Node] = {}
        self._on: dict[str, set[PodKey]] = {}
        self._waiting: dict[PodKey, None] = {}

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(self._pods.values())

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._nodes.values())

    @property
    def waiting(self) -> list[Pod]:
        """Those that the scheduler looks for a node for."""
        return [self._pods[key] for key in self._waiting]

    @property
    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """With what each allows now."""
        return counted(self._budgets, self.pods) if self._budgets else ()

    def pod(self, key: PodKey) -> Pod | None:
        return self._pods.get(key)

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def left(self, name: str) -> Resources:
        """What is free on a node."""
        return self._rooms.left(name)

    def on(self, name: str) -> list[Pod]:
        """The pods of a node that have not finished, in key order."""
        there = (self._pods[key] for key in sorted(self._on.get(name, ())))
        return [pod for pod in there if not pod.is_finished]

    def workload_on(self, name: str) -> list[Pod]:
        """Those of them that are no daemons."""
        return [pod for pod in self.on(name) if not pod.is_daemon]

    def add_pod(self, pod: Pod) -> None:
        """A pod that is new, bound or not."""
        self._pods[pod.key] = pod
        if pod.node_name is not None:
            self._on.setdefault(pod.node_name, set()).add(pod.key)
            if not pod.is_finished:
                self._rooms.take(pod.node_name, pod.placing.requests)
        elif pod.is_to_be_bound:
            self._waiting[pod.key] = None

    def change_pod(self, pod: Pod) -> None:
        """What the API server holds of a pod, its node apart; one that is gone stays gone."""
        if pod.key in self._pods:
            self._pods[pod.key] = pod

    def remove_pod(self, key: PodKey) -> Pod | None:
        """Take a pod away; None where there is none."""
        pod = self._pods.pop(key, None)
        if pod is None:
            return None
        self._waiting.pop(key, None)
        if pod.node_name is not None:
            self._on.get(pod.node_name, set()).discard(key)
            if not pod.is_finished:
                self._rooms.give(pod.node_name, pod.placing.requests)
        return pod

    def put_node(self, node: Node) -> None:
        """A node that is new, or has changed. Once it is ready its daemons run."""
        is_new = node.name not in self._nodes
        self._nodes[node.name] = node
        self._rooms.put(node)
        if is_new:
            for key in self._on.get(node.name, ()):
                self._rooms.take(node.name, self._pods[key].placing.requests)
        if node.ready:
            self._start_daemons(node)

    def remove_node(self, name: str) -> list[Pod]:
        """Take a node away, and its pods with it: those that were no daemons' and had not finished."""
        if self._nodes.pop(name, None) is None:
            return []
        lost = self.workload_on(name)
        for key in sorted(self._on.get(name, ())):
            self.remove_pod(key)
        self._on.pop(name, None)
        self._rooms.drop(name)
        return lost

    def mark(self, name: str, now: datetime, reason: DisruptionReason) -> bool:
        """Cordon a node and taint it for removal; False where there is none."""
        node = self._nodes.get(name)
        if node is not None and not node.is_marked:
            taints = (*(each for each in node.taints if each.key != _MARK.key), _MARK)
            self.put_node(evolve(node, unschedulable=True, taints=taints, marked_at=now, marked_for=reason))
        return node is not None

    def bind(self, now: datetime) -> list[Pod]:
        """One round of the scheduler: the pods that it bound, in no particular state but bound."""
        waiting = self.waiting
        nominated = {str(pod.key): pod.nominated_node_name for pod in waiting if pod.nominated_node_name is not None}
        found = self._rooms.bind(waiting, nominated)
        bound = []
        for key, name in found.nodes.items():
            pod = evolve(self._pods[key], node_name=name, phase=PodPhase.RUNNING)
            self._pods[key] = pod
            self._on.setdefault(name, set()).add(key)
            del self._waiting[key]
            bound.append(pod)
        return bound

    def evict(self, asked: Iterable[PodKey]) -> Iterator[tuple[Eviction, Pod | None]]:
        """Ask pods to leave their nodes, as their budgets allow; each that goes is told as it was."""
        for key in asked:
            pod = self._pods.get(key)
            if pod is None or pod.node_name is None:
                yield Eviction(key, EvictionStatus.GONE), None
                continue
            about = [each for each in self.disruption_budgets if covers(each, pod)]
            if len(about) > 1:
                yield Eviction(key, EvictionStatus.SEVERAL_BUDGETS), None
            elif about and about[0].disruptions_allowed <= 0:
                yield Eviction(key, EvictionStatus.REFUSED_BY_BUDGET), None
            else:
                self.remove_pod(key)
                yield Eviction(key, EvictionStatus.EVICTED), pod

    def _start_daemons(self, node: Node) -> None:
        for daemon_set in self._daemon_sets:
            key = PodKey(_DAEMONS, f"{daemon_set.name}-{node.name}")
            is_there = key in self._pods or any(
                pod.owner is not None and pod.owner.kind == "DaemonSet" and pod.owner.name == daemon_set.name
                for pod in self.on(node.name)
            )
            if not is_there and may_run(daemon_set.placing, node):
                self.add_pod(
                    Pod(
                        key=key,
                        placing=daemon_set.placing,
                        created_at=node.created_at,
                        phase=PodPhase.RUNNING,
                        node_name=node.name,
                        owner=Owner("DaemonSet", daemon_set.name),
                    )
                )
