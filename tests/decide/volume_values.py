"""Pods with volumes, and the claims, volumes and classes that they hang on."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from engine.catalog.attach_limits import EBS_DRIVER
from engine.decide import decide
from engine.model import labels as keys
from engine.model.constraint import Requirement
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import NodePool
from engine.model.snapshot import Snapshot
from engine.model.volume_refusal import VolumeNotReady
from engine.model.workload import ObjectKey, PersistentVolume, PersistentVolumeClaim, StorageClass, Workload
from tests import builders
from tests.builders import M5_LARGE, catalog, environment, node_pool, requirement
from tests.decide.world import IMAGES, policy

GP3 = StorageClass("gp3", provisioner=EBS_DRIVER, waits_for_consumer=True)
A, B = "us-east-1a", "us-east-1b"


def using(pod: Pod, *claims: str) -> Pod:
    return evolve(pod, placing=evolve(pod.placing, volume_claims=claims))


def small(name: str, *claims: str, **more: object) -> Pod:
    """A pod of which a node holds many, with these volumes."""
    return using(builders.pod(name, cpu="100m", memory="100Mi", **more), *claims)  # type: ignore[arg-type]


def in_zones(*zones: str) -> tuple[Requirement, ...]:
    return (requirement(keys.ZONE, "In", *zones),)


def volume(name: str, *terms: tuple[Requirement, ...], driver: str = EBS_DRIVER) -> PersistentVolume:
    return PersistentVolume(name, storage_class="gp3", csi_driver=driver, node_affinity=terms)


def bound(name: str, to: str, **more: object) -> PersistentVolumeClaim:
    return claim(name, volume=to, phase="Bound", **more)


def claim(name: str, storage_class: str = "gp3", **more: object) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(ObjectKey("default", name), storage_class, **more)  # type: ignore[arg-type]


def storage(*things: object, classes: Iterable[StorageClass] = (GP3,)) -> Workload:
    """A cluster's claims and volumes, in any order."""
    return Workload(
        volumes=tuple(each for each in things if isinstance(each, PersistentVolume)),
        volume_claims=tuple(each for each in things if isinstance(each, PersistentVolumeClaim)),
        storage_classes=tuple(classes),
    )


GENERAL = node_pool("general", requirements=[requirement(keys.INSTANCE_TYPE, "In", M5_LARGE.name)])


def seen(*pods: Pod, workload: Workload, **more: object) -> Snapshot:
    cloud = builders.CloudFacts(images={"default": IMAGES})
    return builders.snapshot(pods=pods, cloud=cloud, workload=workload, **more)  # type: ignore[arg-type]


def planned(snapshot: Snapshot, *pools: NodePool) -> Plan:
    return decide(snapshot, policy(*(pools or (GENERAL,))), catalog(), environment())


def zones_of(plan: Plan) -> list[str]:
    return [launch.claim.inputs.zone for launch in plan.launches]


def refused(plan: Plan) -> dict[str, tuple[str, str]]:
    """By pod, the claim that is not ready and why."""
    return {
        each.pod.name: (refusal.claim, refusal.why)
        for each in plan.unplaced
        for refusal in (told.refusal for told in each.refusals)
        if isinstance(refusal, VolumeNotReady)
    }
