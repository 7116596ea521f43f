"""What stands once a plan is carried out: every node of the cluster, every claim in flight and every launch, with the
pods that are bound there and those that the plan puts there.

All Nodes count, cordoned, not ready or about to go: the scheduler sees each one until it is deleted. Claims without a
node that nobody waits for any more are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from engine.model.constraint import Taint, TaintEffect
from engine.model.node import Node
from engine.model.plan import Plan
from engine.model.pod import DaemonSet, Pod, PodKey
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.model.workload import Workload
from tests.scheduling.checker.machines import Machine, machines
from tests.scheduling.checker.node_labels import value_of

HOSTNAME = "kubernetes.io/hostname"
_CORDON = Taint("node.kubernetes.io/unschedulable", "", TaintEffect.NO_SCHEDULE)


@frozen(eq=False)
class Place:
    """A node that is there in the end. ``name`` is its node's, or its claim's while it has none."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Mapping[str, int]
    bound: tuple[Pod, ...]
    planned: tuple[Pod, ...]

    @property
    def pods(self) -> tuple[Pod, ...]:
        return (*self.bound, *self.planned)

    def domain(self, key: str) -> str | None:
        """The topology domain of a key that the node is in; a label without a value is none."""
        return value_of(self.labels, key) or None

    def without_the_pre_empted(self) -> Place:
        """Without the pods that make room for a planned pod which kube-scheduler nominated here: those that are going,
        and those of lower priority ("Pod Priority and Preemption")."""
        rank = max((pod.priority for pod in self.planned if pod.nominated_node_name == self.name), default=None)
        if rank is None:
            return self
        return evolve(self, bound=tuple(pod for pod in self.bound if not (pod.deleting or pod.priority < rank)))


@frozen(eq=False)
class World:
    """All places, and what else bears on pods that are tied to others, to ports or to volumes."""

    places: tuple[Place, ...]
    daemon_sets: tuple[DaemonSet, ...]
    workload: Workload

    def without_the_pre_empted(self) -> World:
        return evolve(self, places=tuple(place.without_the_pre_empted() for place in self.places))


def world_of(snapshot: Snapshot, plan: Plan, policy: Policy) -> World:
    """The world that a plan leaves behind."""
    return World(tuple(_places(snapshot, plan, policy)), snapshot.daemon_sets, snapshot.workload)


def _places(snapshot: Snapshot, plan: Plan, policy: Policy) -> Iterator[Place]:
    pods = {pod.key: pod for pod in snapshot.pods}
    planned = _planned(plan, pods)
    bound: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        if pod.node_name is not None and pod.phase.value not in ("Succeeded", "Failed"):
            bound.setdefault(pod.node_name, []).append(pod)
    known = machines(snapshot, plan, policy)
    of_node = {machine.node: machine for machine in known if machine.node is not None}
    for node in snapshot.nodes:
        here = (tuple(bound.get(node.name, ())), tuple(planned.get(node.name, ())))
        yield _of_node(node, of_node.get(node.name), *here)
    for machine in known:
        if machine.node is None and machine.claim is not None:
            coming = tuple(planned.get(machine.claim, ()))
            if coming or not machine.closed:
                labels = {HOSTNAME: machine.claim, **machine.labels}
                yield Place(machine.claim, labels, machine.taints, machine.allocatable, (), coming)
    for launch in plan.launches:
        claim = launch.claim
        there = tuple(pods[key] for key in launch.pods if key in pods)
        yield Place(claim.name, {HOSTNAME: claim.name, **claim.labels}, claim.taints, claim.allocatable, (), there)


def _planned(plan: Plan, pods: Mapping[PodKey, Pod]) -> Mapping[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for placement in plan.placements:
        name = placement.node or placement.claim
        if name is not None and placement.pod in pods:
            found.setdefault(name, []).append(pods[placement.pod])
    return found


def _of_node(node: Node, machine: Machine | None, bound: tuple[Pod, ...], planned: tuple[Pod, ...]) -> Place:
    if machine is None:
        return Place(node.name, node.labels, node.taints, node.allocatable, bound, planned)
    cordon = (_CORDON,) if machine.closed and node.unschedulable else ()
    return Place(node.name, machine.labels, (*machine.taints, *cordon), machine.allocatable, bound, planned)
