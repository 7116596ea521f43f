"""Random clusters from a seed: whole worlds with a decision to make, of every state and constraint that the model has.

The same seed and knobs give the same cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from attrs import evolve, frozen

from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.constraint import Requirement, Taint
from engine.model.environment import Caps, Environment, Network, NetworkMode
from engine.model.ledger import FailedBringUps, Ledger, Unavailable
from engine.model.money import UsdPerHour
from engine.model.pod import DaemonSet, Pod
from engine.model.policy import BlockDevice, Budget, Disruption, NodeClass, NodePool, Policy
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.snapshot import CloudFacts, KarpenterFacts, ResolvedSubnet, Snapshot
from tests.builders import (
    ANYTHING,
    NOON,
    PRICES,
    TYPES,
    ZONES,
    catalog,
    daemon_set,
    document,
    environment,
    instance_type,
    minutes,
    node_class,
    node_pool,
    requirement,
    snapshot,
    toleration,
)
from tests.decide.world import IMAGES, policy
from tests.scheduling.random_draw import Dice, Knobs
from tests.scheduling.random_machines import GPU_TAINT, SOFT_TAINT, STARTING, TEAM_TAINT, Machines
from tests.scheduling.random_pods import TEAM, TIER, ZONE_A, pods_that_want_nothing, random_shape
from tests.scheduling.random_ties import Ties

SMALL = Knobs()
MIDDLE = Knobs(pools=5, types=9, shapes=20, copies=12, machines=30, foreign=6)
# What an exhaustive search can go through.
TINY = Knobs(
    pools=2, types=3, shapes=4, copies=1, machines=1, foreign=1, daemon_sets=1, zones=2, troubles=False, oddities=False
)
TIED = evolve(SMALL, spreads=True, affinity=True, host_ports=True, volumes=True, preferences=True, min_values=True)

_TYPES = (
    *TYPES,
    instance_type("m5.4xlarge", vcpus=16, memory_gib=64, max_pods=234),
    instance_type("m7g.xlarge", vcpus=4, memory_gib=16, arch="arm64"),
)
_PRICES = {**PRICES, "m5.4xlarge": "0.77", "m7g.xlarge": "0.163"}
_IMAGES = {**IMAGES, "standard-arm64": "ami-standard-arm64"}
_REQUIREMENTS: tuple[tuple[Requirement, ...], ...] = (
    (requirement(keys.CAPACITY_TYPE, "In", keys.ON_DEMAND),),
    (requirement(keys.ZONE, "NotIn", ZONE_A),),
    (requirement(keys.INSTANCE_CPU, "Gt", "2"), requirement(keys.ARCH, "In", "amd64")),
    (requirement("beta.kubernetes.io/arch", "In", "amd64", "arm64"),),
    (requirement(TEAM, "In", "a", "b"),),
    (requirement(TEAM, "Exists"),),
    (requirement(keys.INSTANCE_GPU_COUNT, "DoesNotExist"),),
)
_TAINTS: tuple[tuple[Taint, ...], ...] = ((GPU_TAINT,), (SOFT_TAINT,), (TEAM_TAINT, SOFT_TAINT))
_LIMITS: tuple[Mapping[str, str | int], ...] = (
    {"cpu": "24"},
    {NVIDIA_GPU: 2},
    {"nodes": 2},
    {"memory": "64Gi", "nodes": 4},
    {"cpu": "0"},
)
_BASES: tuple[Mapping[str, object], ...] = ({"min_nodes": 1}, {"min_nodes": 2}, {"replicas": 1})
_NO_REQUIREMENTS: tuple[Requirement, ...] = ()
_NO_TAINTS: tuple[Taint, ...] = ()
_NO_LIMITS: Mapping[str, str | int] = {}
_NO_BASE: Mapping[str, object] = {}


@frozen
class Cluster:
    """Everything that ``decide`` asks for."""

    snapshot: Snapshot
    policy: Policy
    catalog: Catalog
    environment: Environment


def random_cluster(seed: int, knobs: Knobs = SMALL) -> Cluster:
    """The cluster of a seed. Some seeds are full of constraints, some nearly free of them."""
    random = Random(seed)
    cluster = _Draw(Dice(random, strictness=random.choice([2, 5, 12])), knobs).cluster()
    if not knobs.has_ties:
        return cluster
    ties = Ties(seed, knobs)
    return evolve(cluster, snapshot=ties.snapshot(cluster.snapshot), policy=ties.policy(cluster.policy))


class _Draw:
    """Draws one cluster; remembers what belongs together."""

    def __init__(self, dice: Dice, knobs: Knobs) -> None:
        self._dice = dice
        self._knobs = knobs
        self._zones = sorted(ZONES)[: knobs.zones]
        self._types = dice.some(_TYPES, min(3, knobs.types), knobs.types)
        self._pools = [self._pool(f"pool-{number}") for number in range(dice.upto(knobs.pools, least=1))]
        self._class = self._node_class()
        self._subnets = self._subnets_of_others() if knobs.oddities and dice.one_in(3) else ()
        self._daemon_sets = [self._daemon_set(number) for number in range(dice.upto(knobs.daemon_sets))]

    def cluster(self) -> Cluster:
        dice, knobs = self._dice, self._knobs
        stand = Machines(dice, knobs, self._pools, self._types, self._zones, self._daemon_sets)
        for number in range(dice.upto(knobs.machines)):
            stand.add_machine(number)
        for number in range(dice.upto(knobs.foreign)):
            stand.add_foreign_node(number)
        waiting = self._waiting_pods(stand)
        sold, version = self._catalog(), dice.upto(9, least=1)
        records = tuple(sorted(stand.records, key=lambda each: each.claim))
        published = document(*stand.claims, version=version, removals=records)
        seen = snapshot(
            pods=[*stand.pods, *waiting, *self._others()],
            nodes=stand.nodes,
            daemon_sets=self._daemon_sets,
            cloud=CloudFacts(
                instances=tuple(stand.instances),
                images={self._class.name: _IMAGES},
                subnets={self._class.name: self._subnets},
                security_group_ids={self._class.name: ("sg-1",)},
                absent_claims=tuple(stand.absent),
            ),
            document=published if stand.claims or records else None,
            ledger=evolve(self._ledger(sold, waiting, stand), settled_version=version - dice.upto(1)),
            karpenter=self._karpenter(stand),
        )
        return Cluster(seen, policy(*self._pools, node_classes=(self._class,)), sold, self._environment())

    def _catalog(self) -> Catalog:
        prices = {name: price for name, price in _PRICES.items() if not self._dice.one_in(12)}
        sold = catalog(self._types, zones={zone: ZONES[zone] for zone in self._zones}, prices=prices)
        kept = tuple(each for each in sold.offerings if not self._dice.one_in(8))
        return evolve(sold, offerings=kept, ebs_usd_per_gib_month={"gp3": 0.08})

    def _node_class(self) -> NodeClass:
        size = self._dice.pick([None, 50, 200])
        if size is None:
            return node_class()
        return node_class(block_devices=(BlockDevice("/dev/xvda", volume_size_gib=size, is_root=True),))

    def _subnets_of_others(self) -> tuple[ResolvedSubnet, ...]:
        """Of a network that is there already: not in each zone, and several in one."""
        zones = [*self._dice.some(self._zones, 1, len(self._zones)), self._zones[0]]
        return tuple(
            ResolvedSubnet(f"subnet-{number}", zone, self._dice.upto(200)) for number, zone in enumerate(zones)
        )

    def _pool(self, name: str) -> NodePool:
        dice, knobs = self._dice, self._knobs
        return node_pool(
            name,
            weight=10 if knobs.oddities and dice.one_in(4) else 0,
            requirements=dice.maybe(_NO_REQUIREMENTS, _REQUIREMENTS),
            labels=dice.pick([{}, {}, {TIER: "gold"}]),
            taints=dice.maybe(_NO_TAINTS, _TAINTS),
            startup_taints=dice.pick([(), (STARTING,)]),
            open_to_all_pods=dice.one_in(3),
            limits=dice.maybe(_NO_LIMITS, _LIMITS) if knobs.bounds else {},
            disruption=Disruption(
                consolidate_after=dice.pick([None, minutes(0), minutes(15)]),
                budgets=dice.pick([(), (Budget(nodes=1),)]),
            ),
            paused="by hand" if knobs.bounds and dice.one_in(16) else "",
            **(dice.maybe(_NO_BASE, _BASES) if knobs.oddities else {}),
        )

    def _environment(self) -> Environment:
        network = Network(mode=NetworkMode.EXISTING if self._subnets else NetworkMode.OWNED, zones=ZONES)
        if not self._knobs.bounds:
            return environment(network=network)
        overrides = {}
        if self._dice.one_in(4):
            overrides = {self._pools[0].name: Resources.parse(self._dice.pick([{"nodes": 3}, {NVIDIA_GPU: 1}]))}
        few, cheap = Caps(launches=2), Caps(added_usd_per_hour=UsdPerHour(2_500_000))
        return environment(
            network=network, limits=overrides, caps=self._dice.pick([Caps(), Caps(), Caps(), few, cheap])
        )

    def _karpenter(self, stand: Machines) -> KarpenterFacts:
        if self._knobs.bounds and self._dice.one_in(16):
            theirs = tuple(each.name for each in stand.nodes if each.name.startswith("foreign"))
            return KarpenterFacts(is_live=True, node_pools=(self._pools[-1].name,), nodes=theirs)
        return KarpenterFacts()

    def _daemon_set(self, number: int) -> DaemonSet:
        pick = self._dice.pick
        return daemon_set(
            f"daemon-{number}",
            cpu=pick(["100m", "250m"]),
            selector=pick([{}, {}, {keys.INITIALIZED: "true"}, {keys.ARCH: "amd64"}]),
            affinity=pick([(), (), ((requirement(keys.INSTANCE_GPU_COUNT, "Exists"),),)]),
            tolerations=pick([(ANYTHING,), (ANYTHING,), (), (toleration("gpu"),)]),
        )

    def _waiting_pods(self, stand: Machines) -> list[Pod]:
        """Pods of some shapes; now and then kube-scheduler has nominated some to a node."""
        found: list[Pod] = []
        for number in range(self._dice.upto(self._knobs.shapes, least=1)):
            shape = random_shape(f"pod-{number}", self._dice, self._knobs)
            if self._knobs.troubles and stand.nodes and self._dice.one_in(10):
                shape = evolve(shape, nominated_node_name=self._dice.pick(stand.nodes).name)
            copies = range(self._dice.upto(self._knobs.copies, least=1))
            found += [evolve(shape, key=evolve(shape.key, name=f"pod-{number}-{copy}")) for copy in copies]
        return found

    def _others(self) -> list[Pod]:
        every = pods_that_want_nothing()
        return self._dice.some(every, 0, len(every)) if self._knobs.oddities else []

    def _ledger(self, sold: Catalog, waiting: list[Pod], stand: Machines) -> Ledger:
        dice = self._dice
        unavailable: dict[str, Unavailable] = {}
        bring_ups: dict[str, FailedBringUps] = {}
        if self._knobs.bounds:
            for each in sold.offerings:
                if dice.one_in(8):
                    until = NOON + minutes(dice.pick([-2, 0, 6]))
                    unavailable[each.key] = Unavailable(until=until, refusals=1, code="InsufficientInstanceCapacity")
            if dice.one_in(16):
                until = NOON + minutes(dice.pick([-1, 20]))
                bring_ups[self._pools[0].name] = FailedBringUps(failures=3, until=until)
        planned = [each for each in waiting if stand.claims and each.is_waiting and dice.one_in(5)]
        return Ledger(
            unavailable=unavailable,
            instance_ids=stand.ids,
            outcomes=tuple(stand.outcomes),
            milestones=stand.milestones,
            planned={str(each.key): dice.pick(stand.claims).name for each in planned},
            bring_ups=bring_ups,
        )
