"""What has become of each claim: how far its machine came, and what uses it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from enum import Enum

from attrs import evolve, frozen

from engine.model.claim import Claim
from engine.model.ledger import Ledger, Milestones
from engine.model.node import Instance, InstanceState, Node
from engine.model.pod import Pod, PodPhase
from engine.model.snapshot import Snapshot

_NOTHING_YET = Milestones()


class NodePhase(str, Enum):
    """How far a machine has come, as the metrics name it. ``UNREADY`` was initialized once and is not ready now."""

    LAUNCHING = "launching"
    REGISTERING = "registering"
    INITIALIZING = "initializing"
    READY = "ready"
    UNREADY = "unready"
    LEAVING = "leaving"
    LOST = "lost"


_PHASES = {
    "no instance": NodePhase.LAUNCHING,
    "launching": NodePhase.LAUNCHING,
    "joining": NodePhase.REGISTERING,
    "initializing": NodePhase.INITIALIZING,
    "node not ready": NodePhase.UNREADY,
    "ready": NodePhase.READY,
    "draining": NodePhase.LEAVING,
    "stopped": NodePhase.LOST,
    "lost": NodePhase.LOST,
}


@frozen
class Standing:
    """One claim, and what has become of it. ``state`` is a word of ``standings``.

    ``starting`` are those of its ``pods`` that do not run yet. ``accelerators`` are those that its type has,
    ``advertised`` those that its node offers to pods by now. ``milestones`` are the ledger's, with what instance and
    node say themselves where the ledger says nothing yet.
    """

    claim: Claim
    state: str
    instance_id: str
    node: str | None
    accelerators: int
    accelerators_used: int
    pods: int
    starting: int = 0
    advertised: int = 0
    milestones: Milestones = _NOTHING_YET

    @property
    def phase(self) -> NodePhase:
        return _PHASES[self.state]

    @property
    def is_in_flight(self) -> bool:
        """Whether it is on its way to serve."""
        return self.phase in (NodePhase.LAUNCHING, NodePhase.REGISTERING, NodePhase.INITIALIZING)


def standings(snapshot: Snapshot, ledger: Ledger | None = None) -> tuple[Standing, ...]:
    """Each claim of the published document with its state: ``no instance``, ``launching``, ``joining`` (it runs, its
    node has not registered), ``initializing``, ``node not ready``, ``ready``, ``draining``, ``stopped`` or ``lost``.

    ``ledger`` is a newer one than the snapshot's own, such as a plan's.
    """
    if snapshot.document is None:
        return ()
    remembered = (ledger or snapshot.ledger).milestones
    by_claim = {instance.claim: instance for instance in snapshot.cloud.instances if instance.is_alive}
    gone = {instance.claim: instance for instance in snapshot.cloud.instances if not instance.is_alive}
    nodes = {node.instance_id: node for node in snapshot.nodes if node.instance_id}
    on_node = _pods_by_node(snapshot)
    made = []
    for claim in snapshot.document.claims:
        instance = by_claim.get(claim.name) or gone.get(claim.name)
        node = nodes.get(instance.id) if instance is not None else None
        pods = on_node.get(node.name, ()) if node is not None else ()
        resources = claim.capacity.accelerators()
        milestones = remembered.get(claim.name)
        is_lost = claim.name in snapshot.cloud.absent_claims
        made.append(
            Standing(
                claim=claim,
                state=_state(instance, node, milestones, is_lost=is_lost),
                instance_id=instance.id if instance is not None else "",
                node=node.name if node is not None else None,
                accelerators=sum(claim.capacity.amount(resource) for resource in resources),
                accelerators_used=sum(pod.placing.requests.amount(resource) for pod in pods for resource in resources),
                pods=len(pods),
                starting=sum(pod.phase is PodPhase.PENDING for pod in pods),
                advertised=sum(node.allocatable.amount(resource) for resource in resources) if node is not None else 0,
                milestones=_completed(milestones or _NOTHING_YET, instance, node),
            )
        )
    return tuple(made)


def _pods_by_node(snapshot: Snapshot) -> Mapping[str, list[Pod]]:
    on_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in snapshot.pods:
        if pod.node_name is not None and not (pod.is_daemon or pod.is_finished):
            on_node[pod.node_name].append(pod)
    return on_node


def _state(instance: Instance | None, node: Node | None, milestones: Milestones | None, *, is_lost: bool) -> str:
    if is_lost or (instance is not None and not instance.is_alive):
        return "lost"
    if instance is None:
        return "no instance"
    if instance.state not in (InstanceState.PENDING, InstanceState.RUNNING):
        return "stopped"
    if node is None:
        return "launching" if instance.state is InstanceState.PENDING else "joining"
    if node.is_marked or node.deleting:
        return "draining"
    if milestones is not None and milestones.initialized_at is None:
        return "initializing"
    return "ready" if node.ready else "node not ready"


def _completed(milestones: Milestones, instance: Instance | None, node: Node | None) -> Milestones:
    if milestones.launched_at is None and instance is not None:
        milestones = evolve(milestones, launched_at=instance.launched_at)
    if milestones.registered_at is None and node is not None:
        milestones = evolve(milestones, registered_at=node.created_at)
    return milestones
