"""Scattered load taken apart pass by pass: real decisions over a simulated cluster, within disruption budgets."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from random import Random

from attrs import define, evolve, field, frozen
from mix_world import node_of
from running_machines import running_instance
from scattered_world import Load, cluster_of, market, pod_of

from engine.decide import decide
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.plan import Plan
from engine.model.pod import Owner, Pod, PodPhase
from engine.model.policy import Budget, ConsolidationPolicy, Disruption, Policy
from engine.model.snapshot import Snapshot
from engine.simulate.simulation import Pace, Simulation
from engine.simulate.world import World

# Long enough for every node to be old.
_LATER = timedelta(hours=1)
_PACE = Pace(urgent=timedelta(seconds=20))
_MOST_PASSES = 2_000


@frozen
class Settled:
    """``usd`` an hour at rest, how long that took in the simulated cluster, and what went on meanwhile;
    ``longest_cpu_seconds`` is what the slowest of the passes took to decide. ``violations`` are told by rule."""

    usd: float
    nodes: int
    took: timedelta
    passes: int
    evicted: int
    longest_cpu_seconds: float
    cpu_seconds: float
    waiting: int
    violations: tuple[str, ...]


@define
class _Clock:
    """Decides, and notes how long that took."""

    seconds: list[float] = field(factory=list)
    evicted: int = 0
    last_change: datetime | None = None

    def decide(self, snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
        began = time.process_time()
        plan = decide(snapshot, policy, catalog, environment)
        self.seconds.append(time.process_time() - began)
        return plan

    def watch(self, now: datetime, plan: Plan) -> None:
        self.evicted += sum(len(each.pods) for each in plan.removals)
        if not plan.is_empty:
            self.last_change = now


def settled(load: Load, left: float, seed: int, budget_percent: int) -> Settled:
    """The nodes that were bought for all pods of the load, once so many of the pods, a part of them, are left, until
    passes find nothing more to do."""
    environment, policy, sold = market(lambda kind: True, load.families)
    _, buying, _ = market(load.was_for_sale, load.families)
    disruption = Disruption(
        consolidate_after=timedelta(0),
        consolidation_policy=ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED,
        budgets=(Budget(percent=budget_percent),),
    )
    policy = evolve(policy, node_pools=tuple(evolve(pool, disruption=disruption) for pool in policy.node_pools))
    start = _bought(load, buying, sold, environment)
    staying = {pod.key for pod in Random(seed).sample(start.pods, round(len(start.pods) * left))}
    start = evolve(start, pods=tuple(pod for pod in start.pods if pod.key in staying))
    world, clock = World(start, (), sold), _Clock()
    simulation = Simulation(world, policy, sold, environment, pace=_PACE, decider=clock.decide, watch=clock.watch)
    simulation.come_to_rest(_MOST_PASSES, _MOST_PASSES)
    assert world.document is not None
    claims = tuple(world.document.claims)
    return Settled(
        usd=sum(claim.usd_per_hour.micros for claim in claims) / 1e6,
        nodes=len(claims),
        took=(clock.last_change or start.taken_at) - start.taken_at,
        passes=len(clock.seconds),
        evicted=clock.evicted,
        longest_cpu_seconds=max(clock.seconds),
        cpu_seconds=sum(clock.seconds),
        waiting=len(world.cluster.waiting),
        violations=tuple(sorted(f"{each.rule}: {each.what}" for each in simulation.violations)),
    )


def _bought(load: Load, policy: Policy, sold: Catalog, environment: Environment) -> Snapshot:
    """An hour after the burst: its pods run where the plan had them."""
    sets = {ask: f"set-{number}" for number, ask in enumerate(sorted(set(load.asks)))}
    pods = [evolve(pod_of(number, ask), owner=Owner("ReplicaSet", sets[ask])) for number, ask in enumerate(load.asks)]
    empty = cluster_of(pods)
    plan = decide(empty, policy, sold, environment)
    if plan.unplaced:
        raise SystemExit(f"bench-scattered: {len(plan.unplaced)} pods of the burst found no node")
    instances = {
        launch.claim.name: running_instance(number, launch.claim) for number, launch in enumerate(plan.launches)
    }
    nodes = [node_of(launch.claim, instances[launch.claim.name]) for launch in plan.launches]
    homes = {pod: node.name for launch, node in zip(plan.launches, nodes, strict=True) for pod in launch.pods}
    return evolve(
        empty,
        taken_at=empty.taken_at + _LATER,
        pods=tuple(_bound(pod, homes[pod.key]) for pod in pods),
        nodes=tuple(nodes),
        cloud=evolve(empty.cloud, instances=tuple(instances.values())),
        document=plan.document,
        ledger=evolve(plan.ledger, settled_version=plan.document.version),
    )


def _bound(pod: Pod, node: str) -> Pod:
    return evolve(pod, node_name=node, phase=PodPhase.RUNNING, started_at=pod.created_at, ready_at=pod.created_at)
