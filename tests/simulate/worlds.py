"""Small simulated worlds for tests: one pool, a few pods, nothing drawn by chance but what a test asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from attrs import evolve

from engine.decide import decide
from engine.model.environment import Environment
from engine.model.plan import Plan
from engine.model.pod import Owner, Pod, PodKey
from engine.model.policy import Disruption, NodePool, Policy
from engine.model.snapshot import Snapshot
from engine.model.workload import PodDisruptionBudget, Workload
from engine.simulate.beginning import empty_world
from engine.simulate.binding import Scoring
from engine.simulate.conditions import Conditions, Latencies, PlannedFault, Shortage, Spread
from engine.simulate.simulation import Pace, Simulation
from engine.simulate.tasks import Stay, Task
from engine.simulate.world import Decider, World
from tests.builders import NOON, catalog, environment, minutes, node_class, node_pool, pod

# Everything takes as long as it says, so that tests can tell when.
STEADY = Latencies(
    run=Spread.seconds(30),
    register=Spread.seconds(30),
    ready=Spread.seconds(10),
    plugin=Spread.seconds(20),
    start=Spread.seconds(30),
    converge=Spread.seconds(2),
    terminate=Spread.seconds(60),
    recreate=Spread.seconds(1),
)
ENVIRONMENT = environment()
CATALOG = catalog(capacity_types=("on-demand",))


def policy(*pools: NodePool) -> Policy:
    return Policy(node_pools=pools or (gpu_pool(),), node_classes=(node_class(),), digest="test-policy")


def gpu_pool(name: str = "gpu", *, after: float | None = 5, **more: object) -> NodePool:
    """``after``: minutes of consolidateAfter."""
    disruption = Disruption(consolidate_after=None if after is None else minutes(after))
    return node_pool(name, **{"disruption": disruption, "open_to_all_pods": True, **more})


def gpu_pod(name: str = "one", *, gpu: int = 1, owner: str | None = "set", **more: object) -> Pod:
    return pod(name, gpu=gpu, owner=Owner("ReplicaSet", owner) if owner else None, **more)  # type: ignore[arg-type]


def task(
    name: str = "one", *, after: float = 0, lasts: float | None = None, stay: Stay = Stay.JOB, **more: object
) -> Task:
    """Minutes after NOON, and minutes that it lasts."""
    length = None if lasts is None else minutes(lasts)
    return Task(minutes(after), gpu_pod(name, **more), length, stay)  # type: ignore[arg-type]


def world(
    *tasks: Task,
    of: Policy | None = None,
    shortages: Iterable[Shortage] = (),
    faults: Iterable[PlannedFault] = (),
    new_images: Iterable[datetime] = (),
    quotas: Mapping[str, int] | None = None,
    budgets: tuple[PodDisruptionBudget, ...] = (),
    start: Snapshot | None = None,
) -> World:
    begin = start or empty_world(ENVIRONMENT, of or policy(), CATALOG, NOON)
    begin = evolve(begin, workload=Workload(disruption_budgets=budgets))
    conditions = Conditions(
        latencies=STEADY,
        shortages=tuple(shortages),
        faults=tuple(faults),
        new_images=tuple(new_images),
        vcpu_quotas=quotas or {},
        scoring=Scoring.MOST_ALLOCATED,
    )
    return World(begin, tasks, CATALOG, conditions)


def simulation(
    of: World, policies: Policy | None = None, decider: Decider = decide, within: Environment = ENVIRONMENT
) -> Simulation:
    return Simulation(of, policies or policy(), CATALOG, within, pace=Pace(), decider=decider)


def key(name: str) -> PodKey:
    return PodKey("default", name)


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def decided(of: World) -> Plan:
    """What a pass would do now."""
    return decide(of.snapshot(), policy(), CATALOG, ENVIRONMENT)
