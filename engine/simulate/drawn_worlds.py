"""Worlds drawn by a seed: pods that come and go, and everything that can go wrong meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from attrs import evolve, frozen

from engine.decide import decide
from engine.model.catalog import Catalog
from engine.model.constraint import Operator, Requirement
from engine.model.environment import Caps, Cluster, Environment, Network, NetworkMode
from engine.model.money import UsdPerHour
from engine.model.pod import DaemonSet, Owner, Placing, Pod, PodKey
from engine.model.policy import Policy
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.workload import ObjectKey, PodDisruptionBudget, Workload
from engine.simulate.beginning import empty_world
from engine.simulate.binding import Scoring
from engine.simulate.conditions import Conditions, FaultKind, Latencies, PlannedFault, Shortage, Spread
from engine.simulate.drawn_changes import changed
from engine.simulate.drawn_policies import FAMILIES, drawn_objects, loaded
from engine.simulate.record import Run
from engine.simulate.simulation import Pace, PolicyChange, Simulation
from engine.simulate.tasks import Stay, Task
from engine.simulate.witness import Witness
from engine.simulate.world import World

REGION = "us-east-1"
ZONES = {"us-east-1b": "use1-az1", "us-east-1c": "use1-az2", "us-east-1d": "use1-az4"}
_BEGIN = datetime(2026, 11, 30, tzinfo=UTC)
_PACE = Pace(urgent=timedelta(seconds=20), calm=timedelta(minutes=3), quiet=timedelta(minutes=30))
_DAEMON = DaemonSet("agent", Placing(Resources.parse({"cpu": "100m", "memory": "128Mi", "pods": 1})))
# Hours between two of a kind, on average.
_FAULT_HOURS = 3.0
_STORM_HOURS = 8.0
_CHANGE_HOURS = 16.0
_IMAGE_HOURS = 48.0
# What an idle node costs a world that is not at rest: each machine may be marked, released and launched again a while.
_PLANS_A_MACHINE = 6


@frozen
class DrawnWorld:
    """Everything that ``seed`` alone decides. ``hours`` have tasks, faults and changes of policy; then nothing happens
    any more."""

    seed: int
    hours: int
    environment: Environment
    policy: Policy
    changes: tuple[PolicyChange, ...]
    catalog: Catalog
    tasks: tuple[Task, ...]
    conditions: Conditions
    disruption_budgets: tuple[PodDisruptionBudget, ...]

    def world(self) -> World:
        start = empty_world(self.environment, self.policy, self.catalog, _BEGIN, (_DAEMON,))
        workload = Workload(disruption_budgets=self.disruption_budgets)
        return World(evolve(start, workload=workload), self.tasks, self.catalog, self.conditions)


def draw(seed: int, hours: int, catalog: Catalog) -> DrawnWorld:
    """A world of so many hours."""
    chance = Random(seed)
    environment = Environment(
        name="drawn",
        region=REGION,
        cluster=Cluster("drawn", "https://127.0.0.1:6443", "dGVzdA==", "10.100.0.0/16"),
        network=Network(NetworkMode.OWNED, ZONES),
        caps=Caps(
            launches=chance.choice((3, 100)),
            removals=chance.choice((1, 10)),
            added_usd_per_hour=UsdPerHour.parse(chance.choice((20, 500))),
        ),
    )
    objects = drawn_objects(chance)
    return DrawnWorld(
        seed=seed,
        hours=hours,
        environment=environment,
        policy=loaded(objects, environment),
        changes=_changes(Random(f"changes {seed}"), hours, objects, environment),
        catalog=catalog,
        tasks=_tasks(chance, hours),
        conditions=Conditions(
            seed=seed,
            latencies=Latencies(plugin=Spread.seconds(5, chance.choice((30, 240))), recreate=Spread.seconds(1, 20)),
            shortages=drawn_shortages(seed, _BEGIN, hours, tuple(ZONES)),
            vcpu_quotas={"Running On-Demand G and VT instances": 128} if chance.random() < 0.2 else {},
            faults=drawn_faults(seed, _BEGIN, hours),
            new_images=tuple(_BEGIN + at for at in _moments(Random(f"images {seed}"), hours, _IMAGE_HOURS)),
            scoring=chance.choice(tuple(Scoring)),
        ),
        disruption_budgets=_disruption_budgets(seed),
    )


def play(drawn: DrawnWorld, witness: Witness | None = None) -> Run:
    """The world's hours, and then passes until it is at rest; what never comes to rest is a violation. A ``witness``
    looks on."""
    world = drawn.world()
    simulation = Simulation(
        world,
        drawn.policy,
        drawn.catalog,
        drawn.environment,
        pace=_PACE,
        changes=drawn.changes,
        decider=witness.of(world) if witness is not None else decide,
    )
    run = simulation.run(timedelta(hours=drawn.hours), f"seed {drawn.seed}")
    simulation.come_to_rest(most_plans=20 + _PLANS_A_MACHINE * len(world.ec2.alive()))
    if witness is not None:
        witness.close(world)
    return evolve(run, violations=simulation.violations)


def _tasks(chance: Random, hours: int) -> tuple[Task, ...]:
    """Bursts and lulls; most pods want one GPU, some want four, some none, some more than there is room for."""
    found = []
    at, number = timedelta(), 0
    while at < timedelta(hours=hours) * 0.9:
        at += timedelta(seconds=chance.expovariate(1 / chance.choice((1800.0, 3600.0, 14_400.0))))
        for _ in range(chance.choice((1, 1, 2, 6))):
            number += 1
            found.append(Task(at, _pod(chance, number), _length(chance), chance.choice(tuple(Stay))))
    return tuple(found)


def _changes(
    chance: Random, hours: int, objects: list[dict[str, Any]], environment: Environment
) -> tuple[PolicyChange, ...]:
    """What people change in the files, one thing at a time, each on top of those before."""
    found = []
    for number, at in enumerate(_moments(chance, hours, _CHANGE_HOURS)):
        objects = changed(objects, chance, number)
        found.append(PolicyChange(_BEGIN + at, loaded(objects, environment)))
    return tuple(found)


def _disruption_budgets(seed: int) -> tuple[PodDisruptionBudget, ...]:
    """None; half of all pods; or of some sets one at a time, none at all, and one set that two are about."""
    if seed % 3 == 0:
        return (PodDisruptionBudget(ObjectKey("drawn", "kept"), (), max_unavailable="50%"),)
    if seed % 3 == 1:
        return ()
    return (
        PodDisruptionBudget(ObjectKey("drawn", "one"), _of_set(0), max_unavailable="1"),
        PodDisruptionBudget(ObjectKey("drawn", "all"), _of_set(1), min_available="100%"),
        PodDisruptionBudget(ObjectKey("drawn", "first"), _of_set(2), min_available="1"),
        PodDisruptionBudget(ObjectKey("drawn", "second"), _of_set(2), max_unavailable="1"),
    )


def _of_set(number: int) -> tuple[Requirement, ...]:
    return (Requirement("app", Operator.IN, (f"set-{number}",)),)


def _length(chance: Random) -> timedelta | None:
    """Lognormal, as real ones are; a few stay for good."""
    if chance.random() < 0.02:
        return None
    return timedelta(seconds=round(min(2 * 86_400, chance.lognormvariate(8.0, 1.2))))


def _pod(chance: Random, number: int) -> Pod:
    gpus = chance.choice((1, 1, 1, 1, 2, 4))
    asked: dict[str, str | int | float] = {
        "cpu": f"{gpus * chance.choice((1, 2, 3, 6))}",
        "memory": f"{gpus * chance.choice((2, 8, 12))}Gi",
        "pods": 1,
        NVIDIA_GPU: gpus,
    }
    return Pod(
        key=PodKey("drawn", f"pod-{number:05d}"),
        placing=Placing(Resources.parse(asked)),
        created_at=_BEGIN,
        owner=Owner("ReplicaSet", f"set-{number % 7}") if chance.random() < 0.9 else None,
        priority=chance.choice((0, 0, 0, 1000)),
        do_not_disrupt=chance.random() < 0.05,
        labels={"app": f"set-{number % 7}"},
    )


def drawn_shortages(seed: int, begin: datetime, hours: int, zones: Sequence[str]) -> tuple[Shortage, ...]:
    """Storms: a family, a zone, spot as a whole, or everything."""
    chance = Random(f"shortages {seed}")
    found = []
    for at in _moments(chance, hours, _STORM_HOURS):
        begins = begin + at
        found.append(
            Shortage(
                begins,
                begins + timedelta(minutes=chance.choice((5, 60, 240))),
                types=chance.choice(("", *FAMILIES)),
                zone=chance.choice(("", *zones)),
                capacity_type=chance.choice(("", "spot")),
            )
        )
    return tuple(found)


def drawn_faults(seed: int, begin: datetime, hours: int) -> tuple[PlannedFault, ...]:
    """Something goes wrong every few hours, of every kind that there is."""
    chance = Random(f"faults {seed}")
    found: list[PlannedFault] = []
    kinds = [each for each in FaultKind if each is not FaultKind.CLOCK_RIGHT]
    for at in _moments(chance, hours, _FAULT_HOURS):
        kind, when = chance.choice(kinds), begin + at
        if kind is FaultKind.CLOCK_AHEAD:
            ahead = timedelta(minutes=chance.choice((-30, -2, 5, 90)))
            right = when + timedelta(minutes=chance.choice((1, 30)))
            found += [PlannedFault(when, kind, ahead), PlannedFault(right, FaultKind.CLOCK_RIGHT)]
        else:
            lasts = timedelta(minutes=chance.choice((1, 4, 20, 45)))
            found.append(PlannedFault(when, kind, lasts, chance.random()))
    return tuple(found)


def _moments(chance: Random, hours: int, apart: float) -> list[timedelta]:
    """Times at which something happens, so many hours apart on average."""
    found = []
    at = chance.expovariate(1 / apart)
    while at < hours * 0.9:
        found.append(timedelta(seconds=round(at * 3600)))
        at += chance.expovariate(1 / apart)
    return found
