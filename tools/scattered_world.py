"""A burst that is over: the nodes that were bought for its pods, of which most have gone.

The types are those of the shipped catalog that are x86 and have whole NVIDIA GPUs or none, at on-demand prices. Volumes
cost nothing here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from random import Random

from attrs import evolve, frozen

from engine.catalog.build import build_catalog
from engine.decide.ceilings import Ceilings
from engine.decide.guarding import NOTHING_CLOSED
from engine.decide.question import problem_of, see
from engine.decide.requirement_rules import RequirementRules
from engine.model import labels as keys
from engine.model.catalog import Catalog, InstanceType
from engine.model.constraint import Toleration
from engine.model.environment import Caps, Cluster, Environment, Network, NetworkMode
from engine.model.money import UsdPerHour
from engine.model.pod import Placing, Pod, PodKey
from engine.model.policy import Policy
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.snapshot import CloudFacts, ResolvedSubnet, Snapshot
from engine.observe.catalog_source import read_catalog_data
from engine.policy.load import load_policy
from engine.sandbox.workload import workload_classes
from engine.scheduling.estate import Estate
from engine.scheduling.packing.pack import pack
from engine.scheduling.packing.problem import NodeKind, PackClass, PackingProblem
from engine.scheduling.problem import Problem
from engine.scheduling.solve import solve

_NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
_ZONES = {"us-east-1a": "use1-az1", "us-east-1b": "use1-az2", "us-east-1c": "use1-az3"}
_COMMONEST = 50
_FILES = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: gpu}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      taints: [{{key: nvidia.com/gpu, value: "true", effect: NoSchedule}}]
      requirements:
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [{gpu}]}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: cpu}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [{cpu}]}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec:
  role: bench-nodes
  amiSelectorTerms: [{{alias: al2023@latest}}]
  subnetSelectorTerms: [{{tags: {{karpenter.sh/discovery: bench}}}}]
  securityGroupSelectorTerms: [{{tags: {{karpenter.sh/discovery: bench}}}}]
"""
# CPU in thousandths, memory in MiB, GPUs.
Ask = tuple[int, int, int]


@frozen
class Load:
    """A burst's pods; the types that could be had when it came, and the families that can be had now; None: all."""

    asks: tuple[Ask, ...]
    bought_of: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None

    def was_for_sale(self, kind: InstanceType) -> bool:
        return self.bought_of is None or kind.name in self.bought_of


def equal_pods(count: int) -> Load:
    """Of one GPU each; only the large ones of g5 were to be had."""
    return Load(((3500, 12_000, 1),) * count, ("g5.12xlarge", "g5.48xlarge"), ("g5",))


def openb_pods(count: int, seed: int) -> Load:
    """Drawn from the trace's commonest classes, as often as these occur."""
    counts: Counter[Ask] = Counter()
    for each in workload_classes():
        counts[each.cpu_milli, each.memory_mib, each.gpus] += each.pods
    commonest = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_COMMONEST]
    drawn = Random(seed).choices([ask for ask, _ in commonest], weights=[often for _, often in commonest], k=count)
    return Load(tuple(drawn))


def sized_pods(count: int, seed: int) -> Load:
    """Of ten sizes without a GPU, for which nodes of 16 CPUs were to be had."""
    sizes = [(100 + 140 * number, 100 + number * 977 % 10 * 400, 0) for number in range(10)]
    drawn = Random(seed).choices(sizes, k=count)
    return Load(tuple(drawn), ("m5.4xlarge", "c5.4xlarge"), ("m5", "c5", "r5"))


def scattered(load: Load, left: float, seed: int) -> Estate:
    """The nodes bought for all pods of the load, once so many of the pods, a part of them, are left on them."""
    pods = tuple(pod_of(number, ask) for number, ask in enumerate(load.asks))
    buying = _problem(load.was_for_sale, load.families, pods)
    empty = Estate.of(evolve(_problem(lambda kind: True, load.families, ()), pods=pods), ())
    answer = solve(Estate.of(buying, ()).problem)
    if answer.unplaced:
        raise SystemExit(f"bench-scattered: {len(answer.unplaced)} pods of the burst found no node")
    full = _named(empty.after((), answer))
    staying = {pod.key for pod in Random(seed).sample(pods, round(len(pods) * left))}
    return Estate(
        evolve(
            full.problem,
            existing=tuple(
                evolve(
                    node,
                    room=sum((pod.placing.requests for pod in own.pods if pod.key not in staying), start=node.room),
                )
                for node, own in zip(
                    sorted(full.problem.existing, key=lambda each: each.claim or ""), full.movable, strict=True
                )
            ),
            standing=tuple(
                evolve(node, pods=tuple(pod for pod in node.pods if pod.key in staying))
                for node in full.problem.standing
            ),
        ),
        tuple(evolve(node, pods=tuple(pod for pod in node.pods if pod.key in staying)) for node in full.movable),
    )


def _named(estate: Estate) -> Estate:
    """As nodes that are there: under names of their own."""
    names = {each.claim: f"node-{number:05d}" for number, each in enumerate(estate.movable)}
    problem = evolve(
        estate.problem,
        existing=tuple(
            evolve(
                each,
                node=names[each.claim or ""],
                claim=names[each.claim or ""],
                labels={**each.labels, keys.HOSTNAME: names[each.claim or ""]},
            )
            for each in estate.problem.existing
        ),
        standing=tuple(
            evolve(each, name=names[each.name], labels={**each.labels, keys.HOSTNAME: names[each.name]})
            for each in estate.problem.standing
        ),
    )
    return Estate(
        problem, tuple(evolve(each, node=names[each.claim], claim=names[each.claim]) for each in estate.movable)
    )


def least_usd(estate: Estate, steps: int) -> tuple[float, float]:
    """Of the pods that are left, packed anew on whatever is on sale: the cost of the best packing, and the bound."""
    counts = Counter(pod.placing.requests for node in estate.movable for pod in node.pods)
    names = ("cpu", "memory", NVIDIA_GPU, "pods")
    kinds: dict[tuple[bool, tuple[int, ...], int], None] = {}
    for state in estate.problem.pools:
        for each in state.options:
            if each.usd_per_hour is not None:
                room = tuple(each.allocatable.amount(name) for name in names)
                kinds[state.pool.name == "gpu", room, each.usd_per_hour.micros] = None
    every = list(kinds)
    answer = pack(
        PackingProblem(
            tuple(
                PackClass(
                    tuple(asked.amount(name) for name in names),
                    count,
                    frozenset(at for at, kind in enumerate(every) if kind[0] == bool(asked.amount(NVIDIA_GPU))),
                )
                for asked, count in sorted(counts.items(), key=repr)
            ),
            tuple(NodeKind(room, micros) for _, room, micros in every),
        ),
        steps,
    )
    return answer.cost_micros / 1e6, answer.lower_bound_micros / 1e6


def market(may: Callable[[InstanceType], bool], families: Sequence[str] | None) -> tuple[Environment, Policy, Catalog]:
    """Where the pools may buy nodes of these types and families, and what those cost."""
    environment = Environment(
        name="bench-scattered",
        region="us-east-1",
        cluster=Cluster("bench-scattered", "https://127.0.0.1:6443", "dGVzdA==", "10.100.0.0/16"),
        network=Network(mode=NetworkMode.EXISTING, zones=_ZONES),
        caps=Caps(launches=10**6, removals=10**6, added_usd_per_hour=UsdPerHour(10**15)),
        vm_memory_overhead_percent=Decimal("0.075"),
    )
    sold = build_catalog(environment.region, _ZONES, read_catalog_data(), environment.pricing)
    sold = evolve(sold, ebs_usd_per_gib_month=dict.fromkeys(sold.ebs_usd_per_gib_month, 0.0))
    kinds = [kind for kind in sold.instance_types if _is_plain(kind) and may(kind)]
    kinds = [kind for kind in kinds if families is None or kind.name.split(".")[0] in families]
    types = {
        "gpu": ", ".join(kind.name for kind in kinds if kind.accelerators) or "none",
        "cpu": ", ".join(kind.name for kind in kinds if not kind.accelerators) or "none",
    }
    policy = load_policy([("bench.yaml", _FILES.format(**types).encode())], environment)
    return environment, policy, sold


def cluster_of(pods: Iterable[Pod]) -> Snapshot:
    """Nothing but these pods, in a cloud where every selector finds something."""
    cloud = CloudFacts(
        images={"default": {"standard-amd64": "ami-bench", "nvidia-amd64": "ami-bench"}},
        subnets={"default": tuple(ResolvedSubnet(f"subnet-{zone}", zone, 10**6) for zone in _ZONES)},
        security_group_ids={"default": ("sg-bench",)},
    )
    return Snapshot("bench-scattered", _NOON, cloud=cloud, pods=tuple(pods))


def _problem(may: Callable[[InstanceType], bool], families: Sequence[str] | None, pods: Iterable[Pod]) -> Problem:
    environment, policy, sold = market(may, families)
    seen = see(cluster_of(pods), policy, sold, environment)
    rules = RequirementRules(policy, sold, environment, seen.snapshot)
    ceilings = Ceilings(seen.fleet, seen.gone, seen.owed, policy, environment)
    waiting = seen.fleet.waiting_pods or (pod_of(0, (1, 1, 0)),)
    return problem_of(seen, waiting, rules, ceilings, NOTHING_CLOSED)


def _is_plain(kind: InstanceType) -> bool:
    whole = set(kind.accelerators) <= {NVIDIA_GPU} and kind.is_accelerated == bool(kind.accelerators)
    return kind.arch == "amd64" and "metal" not in kind.name and whole


def pod_of(number: int, ask: Ask) -> Pod:
    cpu, mib, gpus = ask
    amounts: dict[str, str | int] = {"cpu": f"{cpu}m", "memory": f"{mib}Mi", "pods": 1}
    if gpus:
        amounts[NVIDIA_GPU] = gpus
    tolerations = (Toleration(key=NVIDIA_GPU, exists=True),) if gpus else ()
    placing = Placing(Resources.parse(amounts), tolerations=tolerations)
    return Pod(PodKey("default", f"pod-{number:05d}"), placing, _NOON)
