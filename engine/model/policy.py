"""Policy as values: what may be bought, how much, and when a node may be disturbed. policy/ makes them from files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum

from attrs import field, frozen

from engine.model.constraint import Requirement, Taint
from engine.model.diagnostic import Diagnostic, Position
from engine.model.money import FREE, UsdPerHour
from engine.model.quantity import NOTHING, Resources
from engine.model.reason import DisruptionReason
from engine.model.reservation import OpenReservations, ReservationTerm
from engine.model.rule import AnyRule, Window
from engine.model.upkeep import Upkeep


class ConsolidationPolicy(str, Enum):
    WHEN_EMPTY = "WhenEmpty"
    WHEN_EMPTY_OR_UNDERUTILIZED = "WhenEmptyOrUnderutilized"
    BALANCED = "Balanced"
    NEVER = "Never"


# The names that Karpenter's cron (robfig/cron, standard parser) takes for five fields.
CRON_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@frozen
class Budget:
    """One of a pool's disruption budgets. ``percent`` is of the pool's nodes, rounded up; or ``nodes`` absolute.

    ``reasons`` empty means Underutilized, Empty and Drifted (Karpenter's rule). ``schedule`` is a 5-field cron line
    in UTC and comes with ``duration``; both None means always.
    """

    nodes: int | None = None
    percent: int | None = None
    reasons: tuple[DisruptionReason, ...] = ()
    schedule: str | None = None
    duration: timedelta | None = None


@frozen
class Disruption:
    """``consolidate_after`` None is Karpenter's ``Never``; ``budgets`` empty means unlimited."""

    consolidation_policy: ConsolidationPolicy = ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED
    consolidate_after: timedelta | None = timedelta(0)
    budgets: tuple[Budget, ...] = (Budget(percent=10),)


@frozen
class Spare:
    """So many devices of an accelerator's ``resource`` are kept free for pods to come: in the whole pool, or
    ``in_each_zone`` that it has."""

    resource: str
    devices: int
    in_each_zone: bool = False


class OnRebalance(str, Enum):
    """What becomes of a spot machine that EC2 says is more likely to be taken than others."""

    REPLACE = "replace"
    IGNORE = "ignore"


@frozen
class UnhealthyLimit:
    """Up to how many unhealthy nodes of a pool any is taken down for it: ``nodes``, or else ``percent`` of all, rounded
    up. Unsaid it is Karpenter's share (pkg/controllers/node/health)."""

    nodes: int | None = None
    percent: int = 20

    def of(self, nodes: int) -> int:
        return self.nodes if self.nodes is not None else -(-nodes * self.percent // 100)


@frozen
class NodePool:
    """A Karpenter NodePool. ``limits`` may name any resource and ``nodes``; NOTHING is no limit.

    ``expire_after`` and ``termination_grace_period`` None mean never. ``replicas`` makes a static pool;
    ``min_nodes`` (our annotation) keeps base capacity in a dynamic one. ``field_positions`` tell where a part stands
    in its file (``requirements[KEY In][VALUE]``, ``labels[accelerator]``, ``taints``); they are no part of its meaning.

    The deadlines are our annotations: ``launch_deadline`` runs from the claim on, the other two from its launch on. For
    ``accelerator_grace`` a node that was up once may advertise fewer accelerators, as it does while their device plugin
    restarts. ``paused`` says why nothing is launched nor removed by choice; empty is not paused.
    ``min_values_best_effort``: where a pod leaves fewer values than minValues ask, those do.
    ``pre_pull`` are images to keep on the pool's nodes, in name order. ``node_cost`` is what a node costs besides its
    price, to whoever chooses between many small ones and few large ones; it is on no bill.
    ``open_reservations``: whether its on-demand machines may run in open reservations that its class does not select.

    ``expected_labels`` come to its nodes by themselves once they are up, beside those that the catalog foretells; a
    value of None: that key does not come, whatever the catalog says. ``max_gpu_waste`` is the share of a new node's
    GPUs, 0 to 1, that may be of no use to the pods it is for; None is any. ``headroom`` in the order of resources.
    ``on_rebalance`` and ``unhealthy_limit`` are our annotations, as are those of ``upkeep``.
    """

    name: str
    node_class: str
    position: Position
    weight: int = 0
    requirements: tuple[Requirement, ...] = ()
    labels: Mapping[str, str] = field(factory=dict)
    annotations: Mapping[str, str] = field(factory=dict)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    limits: Resources = NOTHING
    disruption: Disruption = Disruption()
    expire_after: timedelta | None = None
    termination_grace_period: timedelta | None = None
    replicas: int | None = None
    min_nodes: int = 0
    open_to_all_pods: bool = False
    min_values_best_effort: bool = False
    launch_deadline: timedelta = timedelta(minutes=5)
    registration_deadline: timedelta = timedelta(minutes=15)
    initialization_deadline: timedelta = timedelta(minutes=30)
    accelerator_grace: timedelta = timedelta(minutes=5)
    paused: str = ""
    pre_pull: tuple[str, ...] = ()
    node_cost: UsdPerHour = FREE
    open_reservations: OpenReservations = OpenReservations.LEAVE
    expected_labels: Mapping[str, str | None] = field(factory=dict)
    max_gpu_waste: Decimal | None = None
    headroom: tuple[Spare, ...] = ()
    on_rebalance: OnRebalance = OnRebalance.IGNORE
    unhealthy_limit: UnhealthyLimit = UnhealthyLimit()
    upkeep: Upkeep = Upkeep()
    field_positions: Mapping[str, Position] = field(factory=dict, eq=False, repr=False)

    def position_of(self, part: str) -> Position:
        """Where a part stands; the pool itself when that is not known."""
        return self.field_positions.get(part, self.position)

    @property
    def base_nodes(self) -> int:
        """How many nodes the pool keeps without any pod."""
        return self.replicas if self.replicas is not None else self.min_nodes

    @property
    def is_static(self) -> bool:
        return self.replicas is not None


@frozen
class SelectorTerm:
    """One term of a subnet, security group or image selector: ``id`` or ``name`` alone, or all ``tags`` (``*`` = any).

    ``alias`` (``al2023@latest``), ``owner`` and ``ssm_parameter`` are for images only.
    """

    tags: Mapping[str, str] = field(factory=dict)
    id: str | None = None
    name: str | None = None
    alias: str | None = None
    owner: str | None = None
    ssm_parameter: str | None = None


class AmiFamily(str, Enum):
    AL2 = "AL2"
    AL2023 = "AL2023"
    BOTTLEROCKET = "Bottlerocket"
    CUSTOM = "Custom"


@frozen
class BlockDevice:
    """An EBS volume of a node. ``kms_key_id``, ``iops`` and ``throughput_mib_per_s`` None take EC2's default."""

    device_name: str
    volume_size_gib: int | None = None
    volume_type: str = "gp3"
    iops: int | None = None
    throughput_mib_per_s: int | None = None
    encrypted: bool | None = None
    kms_key_id: str | None = None
    snapshot_id: str | None = None
    delete_on_termination: bool = True
    is_root: bool = False


@frozen
class MetadataOptions:
    """Karpenter's defaults: IMDSv2 only, one hop."""

    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = "disabled"
    http_put_response_hop_limit: int = 1
    http_tokens: str = "required"


@frozen
class Kubelet:
    """The kubelet settings that change what a node can hold."""

    max_pods: int | None = None
    pods_per_core: int | None = None
    system_reserved: Resources = NOTHING
    kube_reserved: Mapping[str, str] = field(factory=dict)
    eviction_hard: Mapping[str, str] = field(factory=dict)
    cluster_dns: tuple[str, ...] = ()


@frozen
class NodeClass:
    """A Karpenter EC2NodeClass. Exactly one of ``role`` and ``instance_profile``, or neither: the environment's own."""

    name: str
    position: Position
    ami_family: AmiFamily
    ami_selector_terms: tuple[SelectorTerm, ...]
    subnet_selector_terms: tuple[SelectorTerm, ...] = ()
    security_group_selector_terms: tuple[SelectorTerm, ...] = ()
    role: str | None = None
    instance_profile: str | None = None
    user_data: str = ""
    tags: Mapping[str, str] = field(factory=dict)
    block_devices: tuple[BlockDevice, ...] = ()
    metadata_options: MetadataOptions = MetadataOptions()
    kubelet: Kubelet = Kubelet()
    instance_store_raid0: bool = False
    associate_public_ip_address: bool | None = None
    detailed_monitoring: bool = False
    capacity_reservation_selector_terms: tuple[ReservationTerm, ...] = ()


@frozen
class Policy:
    """All policy of an environment. ``digest`` is of its meaning, so a comment in a file does not change it.

    ``rules`` and ``windows`` are in name order; ``cel_engine`` is the name of the engine that evaluates them.
    """

    node_pools: tuple[NodePool, ...]
    node_classes: tuple[NodeClass, ...]
    digest: str = ""
    warnings: tuple[Diagnostic, ...] = ()
    rules: tuple[AnyRule, ...] = ()
    windows: tuple[Window, ...] = ()
    cel_engine: str = "cel-expr"

    def node_class(self, name: str) -> NodeClass | None:
        return next((found for found in self.node_classes if found.name == name), None)

    def node_pool(self, name: str) -> NodePool | None:
        return next((found for found in self.node_pools if found.name == name), None)
