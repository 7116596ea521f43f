"""The cluster of the benches of whole decisions: made-up instance types, one pool, and nodes where they are asked for.

Number i of the types has i + 1 CPUs, twice as many GiB and ten times as many pods, as in Karpenter's own benchmark.
Five offerings of each: spot in two zones, on-demand in three, at one price, so much for a CPU and so much for a GB.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from attrs import evolve, frozen
from mix_pods import NAMESPACE, NOON, requests
from running_machines import running_instance

from engine.decide import decide
from engine.decide.ceilings import Ceilings
from engine.decide.guarding import NOTHING_CLOSED
from engine.decide.question import problem_of, see
from engine.decide.requirement_rules import RequirementRules
from engine.model import labels as keys
from engine.model.catalog import Catalog, InstanceType, Offering
from engine.model.claim import Claim
from engine.model.environment import Caps, Cluster, Environment, Network, NetworkMode
from engine.model.money import UsdPerHour
from engine.model.node import Instance, Node
from engine.model.pod import Placing, Pod, PodKey, PodPhase
from engine.model.policy import Policy
from engine.model.quantity import NOTHING
from engine.model.snapshot import CloudFacts, ResolvedSubnet, Snapshot
from engine.policy.load import load_policy
from engine.scheduling.problem import Problem

ENVIRONMENT = "bench-mix"
ZONES = {"us-east-1a": "use1-az1", "us-east-1b": "use1-az2", "us-east-1c": "use1-az3"}
_SPOT_ZONES = 2
_GB, _GIB = 10**9, 2**30
# The type that existing nodes are of: 16 CPUs.
_STANDING_TYPE = 15

# What is kept for the kubelet is as little as the types of Karpenter's benchmark keep.
FILES = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: mix}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: mix}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: mix}
spec:
  role: bench-nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: bench}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: bench}}]
  kubelet:
    kubeReserved: {cpu: 100m, memory: 10Mi}
"""


@frozen
class World:
    """Everything that ``decide`` asks for."""

    snapshot: Snapshot
    policy: Policy
    catalog: Catalog
    environment: Environment

    def with_pods(self, pods: Sequence[Pod]) -> World:
        """The same with so many more pods."""
        return evolve(self, snapshot=evolve(self.snapshot, pods=(*self.snapshot.pods, *pods)))

    def problem(self) -> Problem:
        """What a decision asks of the scheduler."""
        seen = see(self.snapshot, self.policy, self.catalog, self.environment)
        rules = RequirementRules(self.policy, self.catalog, self.environment, seen.snapshot)
        ceilings = Ceilings(seen.fleet, seen.gone, seen.owed, self.policy, self.environment)
        return problem_of(seen, seen.fleet.waiting_pods, rules, ceilings, NOTHING_CLOSED)


def world(types: int) -> World:
    """Nothing is there, and nobody waits."""
    environment = Environment(
        name=ENVIRONMENT,
        region="us-east-1",
        cluster=Cluster(ENVIRONMENT, "https://127.0.0.1:6443", "dGVzdA==", "10.100.0.0/16"),
        network=Network(mode=NetworkMode.EXISTING, zones=ZONES),
        caps=Caps(launches=10**6, removals=10, added_usd_per_hour=UsdPerHour(10**15)),
        vm_memory_overhead_percent=Decimal(0),
    )
    subnets = tuple(ResolvedSubnet(f"subnet-{zone}", zone, 10**6) for zone in ZONES)
    cloud = CloudFacts(
        images={"mix": {"standard-amd64": "ami-bench"}},
        subnets={"mix": subnets},
        security_group_ids={"mix": ("sg-bench",)},
    )
    policy = load_policy([("bench.yaml", FILES.encode())], environment)
    return World(Snapshot(ENVIRONMENT, NOON, cloud=cloud), policy, made_up_catalog(types), environment)


def standing(empty: World, nodes: int, pods: Sequence[Pod]) -> World:
    """So many nodes of 16 CPUs, decided for by ``decide``, in use; ``pods`` run there, as many on each as on any."""
    if not nodes:
        return empty
    fillers = [filler(number) for number in range(nodes)]
    asked = empty.with_pods(fillers)
    document = decide(asked.snapshot, asked.policy, asked.catalog, asked.environment).document
    claims = tuple(document.claims)
    if len(claims) != nodes:
        raise SystemExit(f"bench: {len(claims)} nodes came of {nodes} pods that fill one each")
    instances = [running_instance(number, claim) for number, claim in enumerate(claims)]
    found = [node_of(claim, instance) for claim, instance in zip(claims, instances, strict=True)]
    running = tuple(
        evolve(pod, phase=PodPhase.RUNNING, node_name=found[number % nodes].name) for number, pod in enumerate(pods)
    )
    there = evolve(
        empty.snapshot,
        pods=running,
        nodes=tuple(found),
        document=document,
        cloud=evolve(empty.snapshot.cloud, instances=tuple(instances)),
        ledger=evolve(empty.snapshot.ledger, settled_version=document.version),
    )
    return evolve(empty, snapshot=there)


def made_up_catalog(types: int) -> Catalog:
    kinds = tuple(_instance_type(number) for number in range(types))
    return Catalog(
        region="us-east-1",
        source="made up",
        as_of=date(2026, 11, 30),
        instance_types=kinds,
        offerings=tuple(offering for kind in kinds for offering in _offerings(kind)),
        zone_ids=ZONES,
        ebs_usd_per_gib_month={"gp3": 0.0, "gp2": 0.0},
        ebs_usd_per_extra_iops_month=0.0,
        ebs_usd_per_extra_throughput_mib_month=0.0,
        digest=f"mix-{types}",
    )


def _instance_type(number: int) -> InstanceType:
    vcpus, gib = number + 1, 2 * (number + 1)
    name = _name(number)
    return InstanceType(
        name=name,
        arch="amd64",
        vcpus=vcpus,
        memory_bytes=gib * _GIB,
        accelerators=NOTHING,
        is_accelerated=False,
        accelerator_memory_bytes=0,
        local_nvme_bytes=0,
        max_pods=10 * vcpus,
        network_gbps=10.0,
        efa_interfaces=0,
        labels={
            keys.INSTANCE_TYPE: name,
            keys.ARCH: "amd64",
            keys.OS: "linux",
            keys.INSTANCE_CATEGORY: "fake",
            keys.INSTANCE_FAMILY: "fake",
            keys.INSTANCE_SIZE: str(number),
            keys.INSTANCE_CPU: str(vcpus),
            keys.INSTANCE_MEMORY: str(gib * 1024),
        },
    )


def _name(number: int) -> str:
    return f"fake.{number}"


def _offerings(kind: InstanceType) -> list[Offering]:
    price = UsdPerHour(100_000 * kind.vcpus + 100_000 * kind.memory_bytes // _GB)
    zones = sorted(ZONES)
    sold = [(keys.SPOT, zone) for zone in zones[:_SPOT_ZONES]] + [(keys.ON_DEMAND, zone) for zone in zones]
    return [Offering(kind.name, zone, capacity_type, price) for capacity_type, zone in sold]


def filler(number: int) -> Pod:
    """All but half a CPU of one node."""
    selector = {keys.INSTANCE_TYPE: _name(_STANDING_TYPE), keys.ZONE: sorted(ZONES)[number % len(ZONES)]}
    placing = Placing(requests(15_400, 1024), node_selector=selector)
    return Pod(PodKey(NAMESPACE, f"filler-{number:05d}"), placing, NOON)


def node_of(claim: Claim, instance: Instance) -> Node:
    """The node of a machine that is up."""
    name = f"node-{instance.id}"
    return Node(
        name=name,
        allocatable=claim.allocatable,
        created_at=claim.created_at,
        provider_id=f"aws:///{instance.zone}/{instance.id}",
        labels={**claim.labels, keys.HOSTNAME: name, keys.REGISTERED: "true", keys.INITIALIZED: "true"},
        taints=claim.taints,
    )
