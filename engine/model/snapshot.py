"""What was seen at one moment. Frozen, and serialisable, so that any decision can be made again from its file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property

from attrs import field, frozen

from engine.model.blocked_eviction import BlockedEviction, blocked_evictions
from engine.model.document import DesiredDocument
from engine.model.interruption import Interruption
from engine.model.ledger import Ledger
from engine.model.node import Instance, Node
from engine.model.pod import DaemonSet, Pod, PodKey
from engine.model.reservation import CapacityReservation
from engine.model.workload import Workload


@frozen
class ObjectProblem:
    """An object of the cluster that could not be read whole: which one, and what is wrong with it."""

    kind: str
    namespace: str
    name: str
    what: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}: {self.what}"


@frozen
class ResolvedSubnet:
    id: str
    zone: str
    available_ip_count: int
    tags: Mapping[str, str] = field(factory=dict)


@frozen
class CloudFacts:
    """What a node class's selectors resolved to, and this environment's instances.

    ``subnets`` and ``security_group_ids`` are by node class, only where the network exists already and is looked up.
    ``images`` are by node class, then by image variant (``standard-amd64``, ``nvidia-amd64``, …): an AMI id.
    ``network_stands``: a VPC with the environment's tag is there; only asked where the environment owns its network.
    ``instances`` are all that carry the environment's tag; ``absent_claims`` are claims whose recorded instance EC2
    says, when asked by its id, does not exist or is terminated: absence from a list is no such proof.
    ``reservations`` are all active capacity reservations that the account sees, in id order, selected or not.
    ``clock_ahead`` is by how much this machine's clock is beyond EC2's; zero where the two as good as agree.
    """

    clock_ahead: timedelta = timedelta()
    network_stands: bool = True
    instances: tuple[Instance, ...] = ()
    absent_claims: tuple[str, ...] = ()
    subnets: Mapping[str, tuple[ResolvedSubnet, ...]] = field(factory=dict)
    security_group_ids: Mapping[str, tuple[str, ...]] = field(factory=dict)
    images: Mapping[str, Mapping[str, str]] = field(factory=dict)
    reservations: tuple[CapacityReservation, ...] = ()


@frozen
class KarpenterFacts:
    """A Karpenter in the same cluster. ``is_live``: its controller renewed its lease a moment ago.

    ``node_pools`` are the NodePools that the cluster holds; ``nodes`` are node names, and ``instance_ids`` instances,
    that its NodeClaims own.
    """

    is_live: bool = False
    node_pools: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    instance_ids: tuple[str, ...] = ()


@frozen
class Snapshot:
    """``problems`` are objects that were read in part or not at all; the rest of the snapshot stands without them.

    ``workload`` are the cluster's further facts. ``busy_stacks`` are Pulumi stacks of this environment with an update
    under way: nothing new goes to those. ``paused`` says why the environment is paused from within the cluster; empty
    is not paused. ``interruptions`` are AWS's messages that are still in their queue, in no order: about machines of
    ours, or of others.
    """

    environment: str
    taken_at: datetime
    pods: tuple[Pod, ...] = ()
    nodes: tuple[Node, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    cloud: CloudFacts = CloudFacts()
    document: DesiredDocument | None = None
    ledger: Ledger = Ledger()
    problems: tuple[ObjectProblem, ...] = ()
    workload: Workload = Workload()
    karpenter: KarpenterFacts = KarpenterFacts()
    busy_stacks: tuple[str, ...] = ()
    paused: str = ""
    interruptions: tuple[Interruption, ...] = ()

    @cached_property
    def waiting_pods(self) -> tuple[Pod, ...]:
        """The pods that want a node."""
        return tuple([pod for pod in self.pods if pod.node_name is None and pod.is_waiting])

    @cached_property
    def blocked_evictions(self) -> Mapping[PodKey, BlockedEviction]:
        """The pods on nodes that their PodDisruptionBudgets hold there now, each with what holds it.

        A node with such a pod is no candidate for what is to be graceful. Pods that a drain leaves alone are not here,
        nor are those that the eviction API lets go by unhealthyPodEvictionPolicy.
        """
        return blocked_evictions(self.pods, self.workload.disruption_budgets)
