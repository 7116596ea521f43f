"""An environment: one cluster, one account, one main Pulumi stack. policy/ reads it from its stack file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum

from attrs import field, frozen

from engine.model.diagnostic import Position
from engine.model.money import UsdPerHour
from engine.model.quantity import NOTHING, Resources
from engine.model.rule import Enforcement, ParameterValue


class NetworkMode(str, Enum):
    OWNED = "owned"
    EXISTING = "existing"


@frozen
class Network:
    """``owned``: the environment creates a VPC of ``cidr`` with a subnet in each of ``zones``; ``existing``: looked up.

    ``zones`` maps zone names to zone ids (``us-east-1b: use1-az1``); the mapping differs between accounts.
    ``discovery_tags`` are put on what is owned, so that the node classes' selectors match it.
    """

    mode: NetworkMode
    zones: Mapping[str, str]
    cidr: str = "10.0.0.0/16"
    discovery_tags: Mapping[str, str] = field(factory=dict)


@frozen
class Cluster:
    """The Kubernetes cluster that nodes join, and how we reach it.

    ``certificate_authority`` is base64 PEM, as in a kubeconfig. ``kubeconfig`` and ``context`` None: the default ones.
    ``owns_access_entry``: this environment makes the EKS access entry of the node role.
    """

    name: str
    endpoint: str
    certificate_authority: str
    service_cidr: str
    kubeconfig: str | None = None
    context: str | None = None
    owns_access_entry: bool = False


@frozen
class Caps:
    """What one pass may do at most, whatever the policy says."""

    launches: int = 100
    removals: int = 10
    added_usd_per_hour: UsdPerHour = UsdPerHour(500_000_000)


@frozen
class Pricing:
    """``overrides`` are dollars an hour by ``TYPE/CAPACITY-TYPE`` (``g5.xlarge/spot``), or by type alone: on-demand.

    ``discounts`` are fractions off by capacity type (``on-demand: 0.2`` is 20 % off), for negotiated prices.
    """

    overrides: Mapping[str, UsdPerHour] = field(factory=dict)
    discounts: Mapping[str, Decimal] = field(factory=dict)
    file: str | None = None


class CatalogSource(str, Enum):
    """Where instance types and zones are read: the data file that the package ships, or EC2's answers of today."""

    SHIPPED = "shipped"
    LIVE = "live"


class ClusterKind(str, Enum):
    """What a sandbox's cluster is: our own simulation, or a real control plane on loopback with kwok's kubelets."""

    SIMULATED = "simulated"
    REAL = "real"


@frozen
class Sandbox:
    """The embedded environment: a cluster of ``pods`` pods drawn with ``seed``, and EC2 on loopback.

    ``manifests`` are further files whose objects the cluster holds.
    """

    pods: int
    seed: int = 1
    manifests: tuple[str, ...] = ()
    cluster: ClusterKind = ClusterKind.SIMULATED


@frozen
class Running:
    """How ``nodewright run`` paces itself.

    A pass begins once nothing has happened for ``batch_idle``, and at the latest ``batch_max`` after the first event.
    ``every`` is the longest time without a pass; ``cloud_every`` how old EC2's answers may be. ``hold_new_nodes``: a
    node stays closed to pods until a pass has seen it; None is yes where a Deployment of ours runs in the cluster, and
    no where nothing may look for minutes.
    """

    batch_idle: timedelta = timedelta(milliseconds=50)
    batch_max: timedelta = timedelta(seconds=1)
    every: timedelta = timedelta(minutes=1)
    cloud_every: timedelta = timedelta(seconds=30)
    hold_new_nodes: bool | None = None


@frozen
class Lanes:
    """Further stacks for launches, ``ENVIRONMENT.1`` and so on: used when the main one is busy or holds ``claims``."""

    most: int = 8
    claims: int = 100


class RunnerKind(str, Enum):
    CRON_JOB = "cronJob"
    DEPLOYMENT = "deployment"
    NONE = "none"


@frozen
class InCluster:
    """What the environment installs in its cluster, through Pulumi.

    ``image`` holds Nodewright and the project; ``schedule`` is the CronJob's. ``pre_pull``: a DaemonSet for each pool
    pulls the images of the pool's workloads before pods need them.
    """

    namespace: str = "nodewright-system"
    runner: RunnerKind = RunnerKind.NONE
    image: str = ""
    schedule: str = "*/5 * * * *"
    pre_pull: bool = False


@frozen
class Environment:
    """One stack file, as a value. ``endpoint_url`` None is AWS itself. ``paused`` says why, empty is not paused.

    ``params`` are values for the rules' parameters, by rule and parameter name; ``enforcement`` overrides a rule's own.
    ``interruption_queue`` is the SQS queue, by name or URL, of AWS's interruption messages; empty is none.
    ``owns_interruption_queue``: this environment makes it, and what feeds it.
    ``rule_positions`` tell where those two stand in the file (``params[RULE][NAME]``, ``enforcement[RULE]``).
    """

    name: str
    region: str
    cluster: Cluster
    network: Network
    policies: tuple[str, ...] = ("policies",)
    default_node_class: str | None = None
    limits: Mapping[str, Resources] = field(factory=dict)
    caps: Caps = Caps()
    catalog: CatalogSource = CatalogSource.SHIPPED
    pricing: Pricing = Pricing()
    tags: Mapping[str, str] = field(factory=dict)
    node_role_policies: tuple[str, ...] = ()
    endpoint_url: str | None = None
    sandbox: Sandbox | None = None
    store: str = ".nodewright"
    backend: str | None = None
    vm_memory_overhead_percent: Decimal = Decimal("0.075")
    run: Running = Running()
    lanes: Lanes = Lanes()
    in_cluster: InCluster | None = None
    paused: str = ""
    params: Mapping[str, Mapping[str, ParameterValue]] = field(factory=dict)
    enforcement: Mapping[str, Enforcement] = field(factory=dict)
    cel_engine: str = "cel-expr"
    interruption_queue: str = ""
    owns_interruption_queue: bool = False
    rule_positions: Mapping[str, Position] = field(factory=dict, eq=False, repr=False)

    @property
    def holds_new_nodes(self) -> bool:
        if self.run.hold_new_nodes is not None:
            return self.run.hold_new_nodes
        return self.in_cluster is not None and self.in_cluster.runner is RunnerKind.DEPLOYMENT

    def pool_limits(self, pool: str, declared: Resources) -> Resources:
        """A pool's limits with this environment's overrides laid over those in its file."""
        return Resources({**declared, **self.limits.get(pool, NOTHING)})
