"""Small values for tests: pods, pools, types, nodes, claims and snapshots with sane defaults.

Amounts are Kubernetes quantities as text, prices dollars an hour as text, times minutes after NOON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from engine.model import labels as keys
from engine.model.catalog import Catalog, InstanceType, Offering
from engine.model.claim import Claim, ClaimInputs
from engine.model.constraint import Operator, Requirement, Taint, TaintEffect, Toleration
from engine.model.diagnostic import Position
from engine.model.document import DesiredDocument, Foundation, node_sets
from engine.model.environment import Cluster, Environment, Network, NetworkMode
from engine.model.ledger import Unavailable
from engine.model.money import UsdPerHour
from engine.model.node import Node
from engine.model.pod import DaemonSet, Owner, Placing, Pod, PodKey, PodPhase
from engine.model.policy import AmiFamily, NodeClass, NodePool, SelectorTerm
from engine.model.quantity import NVIDIA_GPU, Resources, base_units
from engine.model.snapshot import CloudFacts, Snapshot
from engine.scheduling.problem import ExistingNode, NodeOption, PoolState

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ZONES = {"us-east-1a": "use1-az1", "us-east-1b": "use1-az2", "us-east-1c": "use1-az4"}
ANYTHING = Toleration(exists=True)
SOMEWHERE = Position(file="policies/test.yaml", line=1, column=1)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def requirement(text: str, operator: str = "In", *values: str) -> Requirement:
    """``requirement("zone-key", "In", "a", "b")``."""
    return Requirement(key=text, operator=Operator(operator), values=values)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=TaintEffect(effect))


def toleration(key: str, value: str | None = None, effect: str | None = None) -> Toleration:
    """Of one value, or, without one, of every value of the key."""
    return Toleration(
        key=key, exists=value is None, value=value or "", effect=TaintEffect(effect) if effect is not None else None
    )


# --- pods


def requests(cpu: str = "1", memory: str = "1Gi", gpu: int | str | None = None, **more: str) -> Resources:
    """Effective requests of a pod, its one ``pods`` included. Further names: ``requests(ephemeral_storage="1Gi")``."""
    amounts: dict[str, str | int | float] = {"cpu": cpu, "memory": memory, "pods": 1}
    if gpu is not None:
        amounts[NVIDIA_GPU] = gpu
    amounts.update({name.replace("_", "-"): amount for name, amount in more.items()})
    return Resources.parse(amounts)


def pod(
    name: str = "pod",
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    gpu: int | str | None = None,
    resources: Mapping[str, str | int] | None = None,
    selector: Mapping[str, str] | None = None,
    affinity: Sequence[Sequence[Requirement]] = (),
    tolerations: Iterable[Toleration] = (),
    unsupported: tuple[str, ...] = (),
    namespace: str = "default",
    node: str | None = None,
    phase: PodPhase | None = None,
    priority: int = 0,
    owner: Owner | None = None,
    do_not_disrupt: bool = False,
    created: datetime = NOON,
) -> Pod:
    """A pending pod; with ``node`` a running one. ``resources`` adds to or replaces what the rest asks for."""
    asked = Resources({**requests(cpu, memory, gpu), **Resources.parse(resources or {})})
    return Pod(
        key=PodKey(namespace, name),
        placing=Placing(
            requests=asked,
            node_selector=dict(selector or {}),
            affinity_terms=tuple(tuple(term) for term in affinity),
            tolerations=tuple(tolerations),
            unsupported=unsupported,
        ),
        created_at=created,
        phase=phase or (PodPhase.RUNNING if node else PodPhase.PENDING),
        node_name=node,
        priority=priority,
        owner=owner,
        do_not_disrupt=do_not_disrupt,
    )


def daemon_set(
    name: str = "agent",
    *,
    cpu: str = "100m",
    memory: str = "100Mi",
    selector: Mapping[str, str] | None = None,
    affinity: Sequence[Sequence[Requirement]] = (),
    tolerations: Iterable[Toleration] = (ANYTHING,),
) -> DaemonSet:
    template = pod(cpu=cpu, memory=memory, selector=selector, affinity=affinity, tolerations=tolerations)
    return DaemonSet(name=name, placing=template.placing)


# --- the catalog


def instance_type(
    name: str,
    *,
    vcpus: int,
    memory_gib: int,
    accelerators: Mapping[str, int] | None = None,
    gpu_name: str = "a10g",
    gpu_memory_gib: int = 24,
    arch: str = "amd64",
    max_pods: int = 58,
    is_accelerated: bool | None = None,
    labels: Mapping[str, str] | None = None,
) -> InstanceType:
    family, size = name.split(".")
    carried = Resources(accelerators or {})
    told = {
        keys.INSTANCE_TYPE: name,
        keys.ARCH: arch,
        keys.OS: "linux",
        keys.INSTANCE_CATEGORY: family[0],
        keys.INSTANCE_FAMILY: family,
        keys.INSTANCE_GENERATION: "".join(digit for digit in family if digit.isdigit())[:1],
        keys.INSTANCE_SIZE: size,
        keys.INSTANCE_CPU: str(vcpus),
        keys.INSTANCE_MEMORY: str(memory_gib * 1024),
    }
    for resource, count in carried.items():
        told[keys.INSTANCE_GPU_COUNT] = str(count)
        told[keys.INSTANCE_GPU_MANUFACTURER] = resource.split(".")[0]
        told[keys.INSTANCE_GPU_NAME] = gpu_name
        told[keys.INSTANCE_GPU_MEMORY] = str(gpu_memory_gib * 1024)
    return InstanceType(
        name=name,
        arch=arch,
        vcpus=vcpus,
        memory_bytes=memory_gib * 2**30,
        accelerators=carried,
        is_accelerated=bool(carried) if is_accelerated is None else is_accelerated,
        accelerator_memory_bytes=gpu_memory_gib * 2**30 if carried else 0,
        local_nvme_bytes=0,
        max_pods=max_pods,
        network_gbps=10.0,
        efa_interfaces=0,
        labels={**told, **(labels or {})},
    )


def _nvidia(count: int) -> dict[str, int]:
    return {NVIDIA_GPU: count}


G5_XLARGE = instance_type("g5.xlarge", vcpus=4, memory_gib=16, accelerators=_nvidia(1))
G5_2XLARGE = instance_type("g5.2xlarge", vcpus=8, memory_gib=32, accelerators=_nvidia(1))
G5_12XLARGE = instance_type("g5.12xlarge", vcpus=48, memory_gib=192, accelerators=_nvidia(4), max_pods=737)
P5_48XLARGE = instance_type(
    "p5.48xlarge", vcpus=192, memory_gib=2048, accelerators=_nvidia(8), gpu_name="h100", gpu_memory_gib=80
)
G4AD_2XLARGE = instance_type(
    "g4ad.2xlarge", vcpus=8, memory_gib=32, accelerators={"amd.com/gpu": 1}, gpu_name="radeon-pro-v520"
)
G6F_LARGE = instance_type("g6f.large", vcpus=2, memory_gib=8, is_accelerated=True)
M5_LARGE = instance_type("m5.large", vcpus=2, memory_gib=8, max_pods=29)

# Fixture prices, on-demand; spot is 40 % of them.
PRICES = {
    "g5.xlarge": "1.0",
    "g5.2xlarge": "1.2",
    "g5.12xlarge": "5.7",
    "p5.48xlarge": "98",
    "g4ad.2xlarge": "0.541",
    "g6f.large": "0.05",
    "m5.large": "0.1",
}
TYPES = (G5_XLARGE, G5_2XLARGE, G5_12XLARGE, P5_48XLARGE, G4AD_2XLARGE, G6F_LARGE, M5_LARGE)


def usd(text: str | int | float) -> UsdPerHour:
    return UsdPerHour.parse(text)


def offerings(
    types: Iterable[InstanceType] = TYPES,
    *,
    zones: Iterable[str] = tuple(ZONES),
    capacity_types: Iterable[str] = (keys.ON_DEMAND, keys.SPOT),
    prices: Mapping[str, str] = PRICES,
) -> tuple[Offering, ...]:
    """Every combination; a type that ``prices`` lacks has offerings without a price. Spot costs 40 %."""
    every = []
    for kind in types:
        price = usd(prices[kind.name]) if kind.name in prices else None
        for zone in zones:
            for capacity_type in capacity_types:
                spot = UsdPerHour(price.micros * 2 // 5) if price is not None else None
                paid = spot if capacity_type == keys.SPOT else price
                every.append(Offering(kind.name, zone, capacity_type, paid))
    return tuple(every)


def catalog(
    types: Sequence[InstanceType] = TYPES,
    *,
    zones: Mapping[str, str] | None = None,
    prices: Mapping[str, str] = PRICES,
    capacity_types: Iterable[str] = (keys.ON_DEMAND, keys.SPOT),
) -> Catalog:
    """A catalog whose volumes cost nothing, so that a node's price is its instance's."""
    sold_in = zones or ZONES
    return Catalog(
        region="us-east-1",
        source="test",
        as_of=date(2026, 11, 1),
        instance_types=tuple(types),
        offerings=offerings(types, zones=sold_in, prices=prices, capacity_types=capacity_types),
        zone_ids=sold_in,
        ebs_usd_per_gib_month={},
        ebs_usd_per_extra_iops_month=0.0,
        ebs_usd_per_extra_throughput_mib_month=0.0,
        digest="test-catalog",
    )


# --- policy


def node_pool(
    name: str = "gpu",
    *,
    requirements: Iterable[Requirement] = (),
    limits: Mapping[str, str | int] | None = None,
    taints: Iterable[Taint] = (),
    startup_taints: Iterable[Taint] = (),
    labels: Mapping[str, str] | None = None,
    **more: object,
) -> NodePool:
    """``more`` are fields of NodePool: weight, disruption, replicas, min_nodes, open_to_all_pods…"""
    fields: dict[str, object] = {"node_class": "default", "position": SOMEWHERE, **more}
    return NodePool(
        name=name,
        requirements=tuple(requirements),
        limits=Resources.parse(limits or {}),
        taints=tuple(taints),
        startup_taints=tuple(startup_taints),
        labels=dict(labels or {}),
        **fields,  # type: ignore[arg-type]
    )


def node_class(name: str = "default", **more: object) -> NodeClass:
    fields: dict[str, object] = {
        "ami_family": AmiFamily.AL2023,
        "ami_selector_terms": (SelectorTerm(alias="al2023@latest"),),
        **more,
    }
    return NodeClass(name=name, position=SOMEWHERE, **fields)  # type: ignore[arg-type]


# --- the scheduler's question


def capacity_of(kind: InstanceType) -> Resources:
    return Resources(
        {
            "cpu": kind.vcpus * 1000,
            "memory": kind.memory_bytes,
            "pods": kind.max_pods,
            "ephemeral-storage": base_units("ephemeral-storage", "100Gi"),
            **kind.accelerators,
        }
    )


def option(
    kind: InstanceType = G5_XLARGE,
    *,
    pool: NodePool | None = None,
    zone: str = "us-east-1a",
    capacity_type: str = keys.ON_DEMAND,
    price: str | None = "",
    allocatable: Mapping[str, str | int] | None = None,
    is_available: bool = True,
    refused: Unavailable | None = None,
) -> NodeOption:
    """Nothing is reserved, so allocatable is capacity, except what ``allocatable`` names. ``price`` None: unpriced.

    ``refused`` is what bars it, so that it is not available.
    """
    own = pool or node_pool()
    paid = usd(price or PRICES[kind.name]) if price is not None else None
    capacity = capacity_of(kind)
    return NodeOption(
        instance_type=kind,
        offering=Offering(kind.name, zone, capacity_type, paid),
        capacity=capacity,
        allocatable=Resources({**capacity, **Resources.parse(allocatable or {})}),
        usd_per_hour=paid,
        labels={
            **kind.labels,
            **own.labels,
            keys.ZONE: zone,
            keys.REGION: "us-east-1",
            keys.CAPACITY_TYPE: capacity_type,
            keys.NODE_POOL: own.name,
        },
        is_available=is_available and refused is None,
        refused=refused,
    )


def pool_state(
    pool: NodePool | None = None,
    options: Iterable[NodeOption] | None = None,
    *,
    types: Iterable[InstanceType] = (G5_XLARGE, G5_2XLARGE, G5_12XLARGE),
    zones: Iterable[str] = ("us-east-1a",),
    capacity_types: Iterable[str] = (keys.ON_DEMAND,),
    prices: Mapping[str, str] = PRICES,
    used: Mapping[str, str | int] | None = None,
    **more: object,
) -> PoolState:
    """A pool whose options are every type in every zone at every capacity type; spot costs 40 %."""
    own = pool or node_pool()
    by_name = {kind.name: kind for kind in types}
    if options is None:
        sold = offerings(by_name.values(), zones=zones, capacity_types=capacity_types, prices=prices)
        options = [
            option(
                by_name[each.instance_type],
                pool=own,
                zone=each.zone,
                capacity_type=each.capacity_type,
                price=None if each.usd_per_hour is None else str(each.usd_per_hour.micros / 10**6),
            )
            for each in sold
        ]
    fields: dict[str, object] = {"limits": own.limits, **more}
    return PoolState(pool=own, used=Resources.parse(used or {}), options=tuple(options), **fields)  # type: ignore[arg-type]


def existing(
    name: str = "node-1",
    kind: InstanceType = G5_XLARGE,
    *,
    room: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    in_flight: bool = False,
) -> ExistingNode:
    """An empty node of a type, less or more where ``room`` says so; ``in_flight``: a claim without a node yet."""
    return ExistingNode(
        node=None if in_flight else name,
        claim=f"claim-{name}",
        labels={**kind.labels, keys.ZONE: "us-east-1a", keys.CAPACITY_TYPE: keys.ON_DEMAND, **(labels or {})},
        taints=tuple(taints),
        room=Resources({**capacity_of(kind), **Resources.parse(room or {})}),
        is_accelerated=kind.is_accelerated,
    )


# --- nodes, claims, snapshots


def claim(
    name: str = "gpu-00001",
    kind: InstanceType = G5_XLARGE,
    *,
    pool: NodePool | None = None,
    zone: str = "us-east-1a",
    capacity_type: str = keys.ON_DEMAND,
    price: str | None = None,
    created: datetime = NOON,
) -> Claim:
    own = pool or node_pool()
    of = option(kind, pool=own, zone=zone, capacity_type=capacity_type)
    return Claim(
        name=name,
        node_pool=own.name,
        node_class=own.node_class,
        stack="test",
        inputs=ClaimInputs(
            instance_type=kind.name,
            zone=zone,
            capacity_type=capacity_type,
            launch_template=f"test-{own.name}-0123456789",
            tags={keys.TAG_CLAIM: name, keys.TAG_NODE_POOL: own.name, keys.TAG_ENVIRONMENT: "test"},
        ),
        usd_per_hour=usd(price or PRICES[kind.name]),
        capacity=of.capacity,
        allocatable=of.allocatable,
        created_at=created,
        labels=of.labels,
        taints=own.taints,
        startup_taints=own.startup_taints,
    )


def node(
    name: str = "node-1",
    kind: InstanceType = G5_XLARGE,
    *,
    instance_id: str = "",
    zone: str = "us-east-1a",
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    created: datetime = NOON,
    **more: object,
) -> Node:
    """A ready node of a type; ``more`` are fields of Node: unschedulable, ready, deleting…"""
    return Node(
        name=name,
        allocatable=capacity_of(kind),
        created_at=created,
        provider_id=f"aws:///{zone}/{instance_id}" if instance_id else "",
        labels={
            **kind.labels,
            keys.ZONE: zone,
            keys.CAPACITY_TYPE: keys.ON_DEMAND,
            keys.HOSTNAME: name,
            **(labels or {}),
        },
        taints=tuple(taints),
        **more,  # type: ignore[arg-type]
    )


def environment(name: str = "test", **more: object) -> Environment:
    fields: dict[str, object] = {
        "cluster": Cluster(
            name="cluster",
            endpoint="https://127.0.0.1:6443",
            certificate_authority="dGVzdA==",
            service_cidr="10.100.0.0/16",
        ),
        "network": Network(mode=NetworkMode.OWNED, zones=ZONES),
        "region": "us-east-1",
        **more,
    }
    return Environment(name=name, **fields)  # type: ignore[arg-type]


def document(*claims: Claim, version: int = 1, **more: object) -> DesiredDocument:
    """A published document that holds the claims."""
    foundation = Foundation(
        network_mode=NetworkMode.OWNED,
        cidr="10.0.0.0/16",
        zones=ZONES,
        discovery_tags={},
        roles=(),
        role_policies=(),
        launch_templates=(),
    )
    fields: dict[str, object] = {"foundation": foundation, **more}
    return DesiredDocument(
        environment="test",
        version=version,
        node_sets=node_sets(claims),
        **fields,  # type: ignore[arg-type]
    )


def snapshot(
    *,
    pods: Iterable[Pod] = (),
    nodes: Iterable[Node] = (),
    daemon_sets: Iterable[DaemonSet] = (),
    taken_at: datetime = NOON,
    **more: object,
) -> Snapshot:
    """``more`` are fields of Snapshot: cloud, document, ledger."""
    fields: dict[str, object] = {"cloud": CloudFacts(), **more}
    return Snapshot(
        environment="test",
        taken_at=taken_at,
        pods=tuple(pods),
        nodes=tuple(nodes),
        daemon_sets=tuple(daemon_sets),
        **fields,  # type: ignore[arg-type]
    )
