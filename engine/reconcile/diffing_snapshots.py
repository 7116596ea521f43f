"""The moments that policies are compared on: recorded snapshots, or a sandbox's pods as they would be generated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import evolve

from engine.model.environment import Environment, NetworkMode
from engine.model.policy import NodeClass
from engine.model.snapshot import CloudFacts, ResolvedSubnet, Snapshot
from engine.observe.cluster import decode_cluster
from engine.policy.launch_template import image_variant
from engine.reconcile.diffing_moments import Loaded, Recorded
from engine.reconcile.planning import read_snapshot
from engine.reconcile.revisions import SNAPSHOTS
from engine.reconcile.workspace import Workspace
from engine.report.snapshot_words import moved_words
from engine.sandbox.manifests import read_manifests
from engine.sandbox.workload import sandbox_objects

# A working day at noon, so that what is made up is the same each time.
_SUPPOSED_NOW = datetime(2026, 1, 7, 12, tzinfo=UTC)
_SUPPOSED_WAIT = timedelta(seconds=30)


def named_snapshots(files: Iterable[Path]) -> tuple[Recorded, ...]:
    """Raises Fault for a file that is no snapshot."""
    return tuple(Recorded(str(file), read_snapshot(file)) for file in files)


def kept_snapshots(workspaces: Iterable[Workspace]) -> tuple[Recorded, ...]:
    """Those below ``policies/snapshots`` of the first of these projects that has any, in name order. Raises Fault."""
    for workspace in workspaces:
        files = sorted((workspace.root / SNAPSHOTS).glob("*.json"))
        if files:
            return tuple(Recorded(f"{SNAPSHOTS}/{file.name}", read_snapshot(file)) for file in files)
    return ()


def snapshots_of(environment: str, every: Sequence[Recorded], known: Iterable[str]) -> tuple[Recorded, ...]:
    """An environment's own snapshots, and those that are of no environment here."""
    others = set(known) - {environment}
    return tuple(each for each in every if each.snapshot.environment not in others)


def moved(every: Sequence[Recorded], at: Iterable[datetime]) -> tuple[Recorded, ...]:
    """Each as if it had been taken at each of these times, which its note says; as they are where there are none."""
    times = tuple(dict.fromkeys(at))
    return tuple(_moved(each, time) for each in every for time in times) if times else tuple(every)


def _moved(recorded: Recorded, at: datetime) -> Recorded:
    told = moved_words(recorded.snapshot.taken_at, at)
    note = f"{recorded.note}; {told}" if recorded.note else told
    return evolve(recorded, snapshot=evolve(recorded.snapshot, taken_at=at), note=note)


def generated(sides: tuple[Loaded, Loaded], root: Path) -> Recorded | None:
    """The sandbox of the environment as it begins: pods wait, and no machine is there. None: it is no sandbox.

    The later side's sandbox counts. Every node class is supposed to find images, subnets and security groups.
    """
    loaded = next((side for side in reversed(sides) if side.environment.sandbox is not None), None)
    if loaded is None or loaded.environment.sandbox is None:
        return None
    environment, sandbox = loaded.environment, loaded.environment.sandbox
    objects = sandbox_objects(sandbox.pods, sandbox.seed, _SUPPOSED_NOW - _SUPPOSED_WAIT)
    objects += read_manifests([root / file for file in sandbox.manifests])
    by_kind = {kind: [each for each in objects if each.get("kind") == kind] for kind in ("Pod", "Node", "DaemonSet")}
    facts = decode_cluster(by_kind["Pod"], by_kind["Node"], by_kind["DaemonSet"])
    snapshot = Snapshot(
        environment=environment.name,
        taken_at=_SUPPOSED_NOW,
        pods=facts.pods,
        nodes=facts.nodes,
        daemon_sets=facts.daemon_sets,
        cloud=_supposed_cloud(sides, environment),
        workload=facts.workload,
    )
    note = (
        f"no snapshot is recorded, so these are the {sandbox.pods} pods that the sandbox makes up, waiting for a first"
        f" node on {_SUPPOSED_NOW:%A %Y-%m-%d %H:%M} UTC; `nodewright snapshot {environment.name} --file"
        f" {SNAPSHOTS}/{environment.name}.json` records what is there"
    )
    return Recorded("generated pods", snapshot, note)


def _supposed_cloud(sides: tuple[Loaded, Loaded], environment: Environment) -> CloudFacts:
    classes: dict[str, NodeClass] = {each.name: each for side in sides for each in side.policy.node_classes}
    variants = sorted({image_variant(kind) for side in sides for kind in side.catalog.instance_types})
    is_looked_up = environment.network.mode is NetworkMode.EXISTING
    subnets = tuple(
        ResolvedSubnet(f"subnet-{zone}", zone, available_ip_count=4096) for zone in sorted(environment.network.zones)
    )
    return CloudFacts(
        subnets=dict.fromkeys(classes, subnets) if is_looked_up else {},
        security_group_ids=dict.fromkeys(classes, ("sg-supposed",)) if is_looked_up else {},
        images={name: {variant: f"ami-{variant}" for variant in variants} for name in classes},
    )
