"""Facts as rules read them: plain dicts of the model's values, one for each record of the schema.

Each dict has exactly the record's fields. Prices become dollars an hour here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from engine.model import labels
from engine.model.catalog import InstanceType
from engine.model.claim import Claim
from engine.model.constraint import Toleration
from engine.model.environment import Environment
from engine.model.money import UsdPerHour, total
from engine.model.node import Node
from engine.model.plan import Launch, Plan, Removal, RemovalPhase
from engine.model.pod import Pod
from engine.model.policy import NodePool
from engine.model.quantity import CPU, MEMORY, NEURON_CORE, Resources
from engine.model.rule import ParameterValue
from engine.model.snapshot import Snapshot
from engine.policy.cel.port import Plain

Facts = dict[str, Plain]

_NO_TIME = timedelta(0)
_GIB = 2**30


# A thousand nodes have a few capacities between them, and each pass counts them all.
@lru_cache(maxsize=4096)
def gpu_count(resources: Resources) -> int:
    """Whole accelerators of any maker. Neuron cores are parts of devices: they count where no device is named."""
    carried = resources.accelerators()
    if not carried:
        return 0
    return sum(resources[name] for name in carried if name != NEURON_CORE) or resources[NEURON_CORE]


def dollars(price: UsdPerHour) -> float:
    """Dollars an hour."""
    return price.micros / 1_000_000


# The fields of POD one by one: of thousands of pods, only what some rule reads is worked out.
POD_FIELDS: Mapping[str, Callable[[Pod, datetime], Plain]] = {
    "name": lambda pod, now: pod.key.name,
    "namespace": lambda pod, now: pod.key.namespace,
    "labels": lambda pod, now: pod.labels,
    "ownerKind": lambda pod, now: pod.owner.kind if pod.owner else "",
    "ownerName": lambda pod, now: pod.owner.name if pod.owner else "",
    "priority": lambda pod, now: pod.priority,
    "gpus": lambda pod, now: gpu_count(pod.placing.requests),
    "cpuMillis": lambda pod, now: pod.placing.requests.amount(CPU),
    "memoryBytes": lambda pod, now: pod.placing.requests.amount(MEMORY),
    "requests": lambda pod, now: dict(pod.placing.requests),
    "nodeSelector": lambda pod, now: pod.placing.node_selector,
    "tolerations": lambda pod, now: [_toleration(each) for each in pod.placing.tolerations],
    "waiting": lambda pod, now: max(now - pod.created_at, _NO_TIME) if pod.is_to_be_bound else _NO_TIME,
    "bound": lambda pod, now: pod.node_name is not None,
    "doNotDisrupt": lambda pod, now: pod.do_not_disrupt,
}


def pod_facts(pod: Pod, now: datetime) -> Facts:
    """POD. A pod that was made after ``now``, by a clock that runs fast, has not waited yet."""
    return {name: read(pod, now) for name, read in POD_FIELDS.items()}


def _toleration(toleration: Toleration) -> Facts:
    return {
        "key": toleration.key,
        "operator": "Exists" if toleration.exists else "Equal",
        "value": toleration.value,
        "effect": toleration.effect.value if toleration.effect is not None else "",
    }


def instance_type_facts(
    kind: InstanceType, capacity_type: str, usd_per_hour: UsdPerHour, zones: Sequence[str]
) -> Facts:
    """INSTANCE_TYPE. ``usd_per_hour`` is the instance's, without volumes, in the cheapest of its ``zones``."""
    family, _, size = kind.name.partition(".")
    told = kind.labels
    return {
        "name": kind.name,
        "family": told.get(labels.INSTANCE_FAMILY, family),
        "size": told.get(labels.INSTANCE_SIZE, size),
        "gpuName": told.get(labels.INSTANCE_GPU_NAME) or told.get(labels.INSTANCE_ACCELERATOR_NAME, ""),
        "gpuCount": gpu_count(kind.accelerators),
        "gpuMemoryGiB": kind.accelerator_memory_bytes // _GIB,
        "vcpus": kind.vcpus,
        "memoryBytes": kind.memory_bytes,
        "nvlink": kind.has_nvlink,
        "efa": kind.efa_interfaces > 0,
        "arch": kind.arch,
        "zones": sorted(zones),
        "capacityType": capacity_type,
        "price": dollars(usd_per_hour),
        "labels": told,
    }


def node_pool_facts(pool: NodePool, nodes: int, gpus: int) -> Facts:
    """NODE_POOL. ``nodes`` and ``gpus`` are what it has, launching ones too."""
    return {
        "name": pool.name,
        "labels": pool.labels,
        "weight": pool.weight,
        "nodes": nodes,
        "gpus": gpus,
        "static": pool.is_static,
    }


def node_facts(claim: Claim, node: Node | None, pods: Sequence[Pod], now: datetime) -> Facts:
    """NODE: a claim, the node that it became, and every pod bound to it that has not finished, in any order."""
    workload = sorted((pod for pod in pods if not pod.is_daemon), key=lambda pod: pod.key)
    born = node.created_at if node is not None else claim.created_at
    return {
        "name": node.name if node is not None else claim.name,
        "nodePool": claim.node_pool,
        "instanceType": claim.inputs.instance_type,
        "capacityType": claim.inputs.capacity_type,
        "zone": claim.inputs.zone,
        "age": max(now - born, _NO_TIME),
        "labels": node.labels if node is not None else claim.labels,
        "gpus": gpu_count(claim.capacity),
        "gpusUsed": sum(gpu_count(pod.placing.requests) for pod in pods),
        "pods": [pod_facts(pod, now) for pod in workload],
        "empty": not workload,
        "doNotDisrupt": (node is not None and node.do_not_disrupt) or any(pod.do_not_disrupt for pod in pods),
        "usdPerHour": dollars(claim.usd_per_hour),
    }


def plan_facts(plan: Plan, node_pools: Sequence[str]) -> Facts:
    """PLAN. ``node_pools`` are the names of all pools, so that those without a node are told too."""
    return {
        "launches": [_launch(each) for each in plan.launches],
        "removals": [_removal(each) for each in plan.removals],
        "pools": _pool_changes(plan, node_pools),
        "launchCount": len(plan.launches),
        "removalCount": len(plan.removals),
        "unplaced": len(plan.unplaced),
    }


def _launch(launch: Launch) -> Facts:
    claim = launch.claim
    return {
        "nodePool": claim.node_pool,
        "instanceType": claim.inputs.instance_type,
        "zone": claim.inputs.zone,
        "capacityType": claim.inputs.capacity_type,
        "usdPerHour": dollars(claim.usd_per_hour),
        "gpus": gpu_count(claim.capacity),
        "pods": len(launch.pods),
    }


def _removal(removal: Removal) -> Facts:
    record = removal.record
    return {
        "nodePool": record.node_pool,
        "node": record.node or record.claim,
        "reason": record.reason.value,
        "usdPerHour": dollars(record.usd_per_hour),
        "gpus": gpu_count(record.capacity),
    }


def _pool_changes(plan: Plan, node_pools: Sequence[str]) -> list[Plain]:
    """Counted from the document that the plan proposes, which holds launches and marked machines, released ones not."""
    launched = {launch.claim.name for launch in plan.launches}
    marked = {each.record.claim for each in plan.removals if each.phase is RemovalPhase.MARK}
    before = dict.fromkeys(node_pools, (0, 0))
    after = dict(before)
    for claim in plan.document.claims:
        if claim.name not in launched:
            _count(before, claim.node_pool, claim.capacity)
        if claim.name not in marked:
            _count(after, claim.node_pool, claim.capacity)
    for removal in plan.removals:
        if removal.phase is RemovalPhase.RELEASE:
            _count(before, removal.record.node_pool, removal.record.capacity)
    return [
        {
            "name": name,
            "before": before.get(name, (0, 0))[0],
            "after": after.get(name, (0, 0))[0],
            "gpusBefore": before.get(name, (0, 0))[1],
            "gpusAfter": after.get(name, (0, 0))[1],
        }
        for name in sorted(before.keys() | after.keys())
    ]


def _count(counts: dict[str, tuple[int, int]], pool: str, capacity: Resources) -> None:
    nodes, gpus = counts.get(pool, (0, 0))
    counts[pool] = (nodes + 1, gpus + gpu_count(capacity))


def cost_facts(plan: Plan) -> Facts:
    """COST."""
    return {
        "hourlyBefore": dollars(plan.usd_per_hour_before),
        "hourlyAfter": dollars(plan.usd_per_hour_after),
        "hourlyAdded": dollars(total(launch.claim.usd_per_hour for launch in plan.launches)),
    }


def cluster_facts(environment: Environment, snapshot: Snapshot) -> Facts:
    """CLUSTER."""
    return {
        "environment": environment.name,
        "region": environment.region,
        "nodes": len(snapshot.nodes),
        "gpus": sum(gpu_count(node.allocatable) for node in snapshot.nodes),
        "pendingPods": len(snapshot.waiting_pods),
        "pendingGpus": sum(gpu_count(pod.placing.requests) for pod in snapshot.waiting_pods),
    }


def params_facts(params: Mapping[str, ParameterValue]) -> Facts:
    """The fields of `params_record` of the same parameters."""
    return dict(params)


def window_facts(is_open: Mapping[str, bool]) -> Facts:
    """The fields of `windows_record` of the same names."""
    return dict(is_open)
