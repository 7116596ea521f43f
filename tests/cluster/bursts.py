"""Two hundred pods at once on an empty cluster: what their nodes cost once the real kube-scheduler has bound all pods.

Pods are drawn from the commonest classes of a production trace; nodes are all x86 types of the shipped catalog that are
sold on demand with whole NVIDIA GPUs or none. A pool of those with GPUs is tainted for others. Volumes cost nothing
here, so that prices compare with those of other planners.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

from attrs import evolve, frozen

from engine.catalog.build import build_catalog
from engine.catalog.node_shape import node_shape
from engine.model import labels as keys
from engine.model.catalog import Catalog, InstanceType
from engine.model.environment import Caps, Environment
from engine.model.money import UsdPerHour
from engine.model.policy import NodeClass
from engine.model.quantity import CPU, MEMORY, NVIDIA_GPU, PODS
from engine.observe.catalog_source import read_catalog_data
from engine.sandbox.workload import workload_classes
from engine.scheduling.packing.pack import pack
from engine.scheduling.packing.problem import NodeKind, PackClass, Packing, PackingProblem
from tests.builders import environment
from tests.cluster.pod_groups import RUN
from tests.cluster.promised_world import Stage, World, clear, play
from tests.cluster.workloads import GPU_TAINT, Workload

PODS_AT_ONCE = 200
_COMMONEST = 50
_MIB = 2**20
_MOST_ROUNDS = 6
# So many that the best packing found is the best there is, or next to it.
_STEPS = 3_000_000
EQUAL = "equal"


@frozen(order=True)
class Ask:
    """What one pod asks for."""

    cpu_milli: int
    memory_mib: int
    gpus: int


@frozen
class Bill:
    """Dollars an hour: of the nodes that hold pods, of the best packing that is known, and the proven least.

    ``planned`` is what the first plan's nodes cost; ``empty`` nodes are not in the bill; ``waiting`` pods found none.
    """

    usd: float
    best_known: float
    bound: float
    planned: float
    nodes: int
    empty: int
    bought: tuple[int, ...]
    waiting: int

    @property
    def over_bound(self) -> float:
        return self.usd / self.bound - 1

    @property
    def over_best_known(self) -> float:
        return self.usd / self.best_known - 1

    @property
    def over_optimum(self) -> float:
        """Over the least whole nodes that hold all pods, as far as it is known: no better packing has been found in
        millions of steps, and ``bound`` is that of parts of nodes, which nobody can buy."""
        return self.usd / min(self.best_known, self.planned) - 1


def equal_pods() -> list[Ask]:
    return [Ask(3500, 12_000, 1)] * PODS_AT_ONCE


def mixed_pods(seed: int) -> list[Ask]:
    """Drawn from the trace's commonest classes, as often as these occur."""
    counts: Counter[Ask] = Counter()
    for each in workload_classes():
        counts[Ask(each.cpu_milli, each.memory_mib, each.gpus)] += each.pods
    commonest = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_COMMONEST]
    return random.Random(seed).choices(
        [ask for ask, _ in commonest], weights=[often for _, often in commonest], k=PODS_AT_ONCE
    )


def bill(stage: Stage, name: str, asked: Iterable[Ask]) -> Bill:
    """Plays the burst until no plan buys anything more, and leaves the cluster as it was."""
    pods = list(asked)
    where, sold = market()
    world = World(burst(name, pods, kinds_of(sold)), stage, where, sold)
    play(stage, [world], _MOST_ROUNDS)
    there = stage.list("Pod")
    empty = world.empty_claims(there)
    # One that was deleted and not made again has no node either.
    waiting = len(pods) - sum(1 for pod in world.own(there) if pod["spec"].get("nodeName"))
    assert world.document is not None
    claims = tuple(world.document.claims)
    clear(stage, [world])
    best = packed_anew(pods, sold, world.policy.node_classes[0], where)
    first = {name for name, _ in list(world.instances.items())[: world.bought[0]]}
    return Bill(
        usd=sum(claim.usd_per_hour.micros for claim in claims if claim.name not in empty) / 1e6,
        best_known=best.cost_micros / 1e6,
        bound=best.lower_bound_micros / 1e6,
        planned=sum(claim.usd_per_hour.micros for claim in claims if claim.name in first) / 1e6,
        nodes=len(claims) - len(empty),
        empty=len(empty),
        bought=tuple(world.bought),
        waiting=waiting,
    )


def market() -> tuple[Environment, Catalog]:
    """The environment, which caps nothing, and what is for sale."""
    where = environment(caps=Caps(launches=10_000, removals=10_000, added_usd_per_hour=UsdPerHour(10**12)))
    sold = build_catalog(where.region, where.network.zones, read_catalog_data(), where.pricing)
    return where, evolve(sold, ebs_usd_per_gib_month=dict.fromkeys(sold.ebs_usd_per_gib_month, 0.0))


def packed_anew(pods: Iterable[Ask], sold: Catalog, node_class: NodeClass, where: Environment) -> Packing:
    """The best packing of these pods that is known, with nothing of the cluster's."""
    return pack(_question(pods, kinds_of(sold), sold, node_class, where), _STEPS)


def kinds_of(sold: Catalog) -> list[InstanceType]:
    priced = _prices(sold)
    return [
        kind
        for kind in sold.instance_types
        if kind.name in priced
        and kind.arch == "amd64"
        and "metal" not in kind.name
        and set(kind.accelerators) <= {NVIDIA_GPU}
        and kind.is_accelerated == bool(kind.accelerators)
    ]


def _prices(sold: Catalog) -> dict[str, int]:
    return {
        each.instance_type: each.usd_per_hour.micros
        for each in sold.offerings
        if each.capacity_type == keys.ON_DEMAND and each.usd_per_hour is not None
    }


def _question(
    pods: Iterable[Ask], kinds: Iterable[InstanceType], sold: Catalog, node_class: NodeClass, where: Environment
) -> PackingProblem:
    """The same as the plan's, without anything of the cluster's."""
    priced, every = _prices(sold), list(kinds)
    rooms = [node_shape(kind, node_class, where).allocatable for kind in every]
    return PackingProblem(
        classes=tuple(
            PackClass(
                (ask.cpu_milli, ask.memory_mib, ask.gpus, 1),
                count,
                frozenset(index for index, kind in enumerate(every) if bool(ask.gpus) == bool(kind.accelerators)),
            )
            for ask, count in sorted(Counter(pods).items())
        ),
        kinds=tuple(
            NodeKind(
                (room.amount(CPU), room.amount(MEMORY) // _MIB, room.amount(NVIDIA_GPU), room.amount(PODS)),
                priced[kind.name],
            )
            for kind, room in zip(every, rooms, strict=True)
        ),
    )


def burst(name: str, pods: Iterable[Ask], kinds: Iterable[InstanceType]) -> Workload:
    """The pods, bare ones, and the two pools that buy for them."""
    every = list(kinds)
    return Workload(
        name=name,
        pools=(
            _pool(f"{name}-gpu", name, [kind.name for kind in every if kind.accelerators], [GPU_TAINT]),
            _pool(f"{name}-cpu", name, [kind.name for kind in every if not kind.accelerators], []),
        ),
        pods=tuple(pod_of(name, number, ask) for number, ask in enumerate(pods)),
        daemon_sets=(),
        namespaces=({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},),
    )


def _pool(name: str, run: str, types: list[str], taints: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"labels": {RUN: run}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "taints": taints,
                    "requirements": [
                        {"key": keys.INSTANCE_TYPE, "operator": "In", "values": types},
                        {"key": keys.CAPACITY_TYPE, "operator": "In", "values": [keys.ON_DEMAND]},
                    ],
                },
            },
        },
    }


def pod_of(run: str, number: int, ask: Ask) -> dict[str, Any]:
    requests = {"cpu": f"{ask.cpu_milli}m", "memory": f"{ask.memory_mib}Mi"}
    devices = {NVIDIA_GPU: str(ask.gpus)} if ask.gpus else {}
    container = {"name": "main", "image": "model:1", "resources": {"requests": requests | devices, "limits": devices}}
    tolerations = [{"key": NVIDIA_GPU, "operator": "Exists"}] if ask.gpus else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{run}-{number:03d}", "namespace": run, "labels": {RUN: run}},
        "spec": {"nodeSelector": {RUN: run}, "tolerations": tolerations, "containers": [container]},
    }
