"""What-if: policies over a simulated world that begins as a recorded snapshot, or empty, with the pods of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import evolve, frozen

from engine.model.catalog import Catalog
from engine.model.diagnostic import InvalidInput
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.reconcile.assembly import catalog_of
from engine.reconcile.planning import read_snapshot
from engine.reconcile.workspace import Workspace
from engine.simulate.beginning import supposed_cloud
from engine.simulate.conditions import Conditions
from engine.simulate.drawn_worlds import drawn_faults, drawn_shortages
from engine.simulate.record import Run
from engine.simulate.simulation import Pace, Simulation
from engine.simulate.tasks import Task
from engine.simulate.trace import read_trace
from engine.simulate.world import World

# A Monday, so that a week of windows begins at its begin.
_SUPPOSED_BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
# How far it has come, of all runs together: 0 to 1, and the name of the run.
Progress = Callable[[float, str], None]


@frozen
class Wanted:
    """What to simulate. ``policies`` are folders or files, one policy each; none: the environment's own.

    ``at`` None begins when the snapshot was taken, or on a supposed Monday. ``rough``: things go wrong, drawn by
    ``seed``. ``every`` is the shortest time between two passes.
    """

    environment: str
    snapshot: Path | None
    trace: Path | None
    policies: tuple[str, ...]
    length: timedelta
    seed: int = 1
    rough: bool = False
    every: timedelta = timedelta(seconds=2)
    at: datetime | None = None


@frozen
class Simulated:
    """One run for each policy, in their order; ``notes`` are what was supposed, each a sentence."""

    runs: tuple[Run, ...]
    notes: tuple[str, ...]


def simulate(workspace: Workspace, wanted: Wanted, progress: Progress) -> Simulated:
    """Play it all. Asks no cluster and no account. Raises Fault, InvalidInput."""
    if wanted.snapshot is None and wanted.trace is None:
        raise Fault(
            "there is nothing to simulate: neither a recorded snapshot nor a trace of pods",
            (
                "nodewright snapshot ENV --file FILE records one, for --snapshot FILE",
                "docs/simulate.md tells what a trace is, for --trace FILE",
            ),
        )
    environment = workspace.environment(wanted.environment)
    catalog = catalog_of(workspace, environment)
    sides = [_side(workspace, environment, named) for named in wanted.policies or ("",)]
    tasks = _read_tasks(wanted.trace)
    recorded = read_snapshot(wanted.snapshot) if wanted.snapshot is not None else None
    runs = []
    for number, (name, of, policy) in enumerate(sides):
        start = _beginning(of, policy, catalog, recorded, wanted.at)

        def told(share: float, name: str = name, before: int = number) -> None:
            progress((before + share) / len(sides), name)

        runs.append(_played(name, start, tasks, policy, catalog, of, wanted, told))
    return Simulated(tuple(runs), tuple(_notes(wanted, recorded, tasks)))


def _side(workspace: Workspace, environment: Environment, named: str) -> tuple[str, Environment, Policy]:
    """A policy with the name that reports call it by."""
    if not named:
        return "as it is", environment, workspace.policy(environment)
    place = Path(named)
    if not place.exists() and not (workspace.root / named).exists():
        raise Fault(f"--policies: {named} does not exist", "name a folder or a file of policies")
    path = str(place.resolve()) if place.exists() else named
    of = evolve(environment, policies=(path,))
    try:
        return named, of, workspace.policy(of)
    except InvalidInput:
        raise
    except Fault as fault:
        raise Fault(f"--policies {named}: {fault}", fault.hints) from None


def _read_tasks(trace: Path | None) -> tuple[Task, ...]:
    if trace is None:
        return ()
    try:
        content = trace.read_bytes()
    except OSError as error:
        raise Fault(f"{trace} cannot be read: {error.strerror}", "name a CSV of pods: docs/simulate.md") from None
    return read_trace(str(trace), content)


def _beginning(
    environment: Environment, policy: Policy, catalog: Catalog, recorded: Snapshot | None, at: datetime | None
) -> Snapshot:
    """Node classes that a recorded snapshot does not know find what they select, as in an empty world."""
    supposed = supposed_cloud(environment, policy, catalog)
    if recorded is None:
        return Snapshot(environment=environment.name, taken_at=at or _SUPPOSED_BEGIN, cloud=supposed)
    cloud = evolve(
        recorded.cloud,
        images={**supposed.images, **recorded.cloud.images},
        subnets={**supposed.subnets, **recorded.cloud.subnets},
        security_group_ids={**supposed.security_group_ids, **recorded.cloud.security_group_ids},
        network_stands=True,
    )
    return evolve(recorded, cloud=cloud, taken_at=at or recorded.taken_at, busy_stacks=(), paused="")


def _played(
    name: str,
    start: Snapshot,
    tasks: Sequence[Task],
    policy: Policy,
    catalog: Catalog,
    environment: Environment,
    wanted: Wanted,
    told: Callable[[float], None],
) -> Run:
    hours = max(1, round(wanted.length / timedelta(hours=1)))
    conditions = Conditions(seed=wanted.seed)
    if wanted.rough:
        conditions = evolve(
            conditions,
            shortages=drawn_shortages(wanted.seed, start.taken_at, hours, sorted(environment.network.zones)),
            faults=drawn_faults(wanted.seed, start.taken_at, hours),
        )
    world = World(start, tasks, catalog, conditions)
    pace = evolve(Pace(), urgent=wanted.every, calm=max(wanted.every, Pace().calm))
    simulation = Simulation(
        world,
        policy,
        catalog,
        environment,
        pace=pace,
        watch=lambda now, plan: told(min(1.0, (now - start.taken_at) / wanted.length)),
    )
    return simulation.run(wanted.length, name)


def _notes(wanted: Wanted, recorded: Snapshot | None, tasks: Sequence[Task]) -> list[str]:
    notes = []
    if recorded is not None:
        notes.append(f"begins as {wanted.snapshot} shows it, with {len(recorded.pods):,} pods that stay")
    else:
        notes.append("begins with no node and no daemonset")
    if tasks:
        notes.append(f"{len(tasks):,} pods come by {wanted.trace}")
    late = sum(task.after >= wanted.length for task in tasks)
    if late:
        notes.append(f"{late:,} of them would come after its end")
    if wanted.rough:
        notes.append(f"shortages, lost machines and bad reads are drawn by seed {wanted.seed}")
    return notes
