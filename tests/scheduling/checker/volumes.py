"""Volumes: where they can be mounted, and how many of them on one node.

Kubernetes documentation, "Persistent Volumes" (binding, node affinity, access modes), "Storage Classes"
(volumeBindingMode, allowedTopologies), "Node-specific Volume Limits", and for what they leave open kube-scheduler's
VolumeBinding, VolumeRestrictions and NodeVolumeLimits filters. Order does not matter to any of this:

- A claim that is not there, lost or being deleted keeps its pod from every node; so does one that has no volume and
  whose class makes volumes at once, is not there, or makes none itself.
- A claim with a volume is mounted on nodes that meet the volume's node affinity.
- A claim that waits for its first consumer gets its volume where its class allows, on the node that was chosen for it
  already if there is one. EBS makes it in the zone of that node, so that all who mount it are in one zone.
- A claim that is ReadWriteOncePod has one pod.
- Of each CSI driver a node takes as many different volumes as its CSINode says. A node that is not there yet is
  believed to take any number, unless its claim has ``attachable-volumes-DRIVER``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from engine.model.pod import Pod
from engine.model.workload import ObjectKey, PersistentVolume, PersistentVolumeClaim, StorageClass, Workload
from tests.scheduling.checker.node_labels import meets, value_of
from tests.scheduling.checker.places import Place, World
from tests.scheduling.checker.violation import Violation

_ZONE = "topology.kubernetes.io/zone"
# What the EBS driver labels each node with, equal to its zone.
_ZONE_OF_EBS = "topology.ebs.csi.aws.com/zone"
_EBS = ("ebs.csi.aws.com", "kubernetes.io/aws-ebs")
_BY_HAND = "kubernetes.io/no-provisioner"


def volumes_in_place(world: World) -> Iterator[Violation]:
    """Each planned pod whose volumes cannot be mounted where the plan puts it."""
    if any(pod.placing.volume_claims for place in world.places for pod in place.planned):
        yield from _Volumes(world.workload).faults(world.places)


class _Volumes:
    def __init__(self, workload: Workload) -> None:
        self._claims = {each.key: each for each in workload.volume_claims}
        self._volumes = {each.name: each for each in workload.volumes}
        self._classes = {each.name: each for each in workload.storage_classes}
        self._limits: dict[tuple[str, str], int] = {
            (each.node, each.csi_driver): each.volumes for each in workload.attach_limits
        }

    def faults(self, places: tuple[Place, ...]) -> Iterator[Violation]:
        for place in places:
            for pod in place.planned:
                for key in _keys(pod):
                    wrong = self._cannot_be_mounted(self._claims.get(key), place)
                    if wrong:
                        yield Violation("volumes", str(pod.key), f"claim {key}: {wrong}")
            yield from self._too_many(place)
        yield from self._torn(places)

    def _cannot_be_mounted(self, claim: PersistentVolumeClaim | None, place: Place) -> str:
        if claim is None:
            return "it is not there"
        if claim.is_lost or claim.deleting:
            return "it is lost, or being deleted"
        if not claim.volume:
            return self._cannot_be_made(claim, place)
        volume = self._volumes.get(claim.volume)
        if volume is None:
            return f"its volume {claim.volume} is not there"
        return "" if _is_reached_from(volume, place) else f"{volume.name} is not reached from {place.name}"

    def _cannot_be_made(self, claim: PersistentVolumeClaim, place: Place) -> str:
        made_by = self._classes.get(claim.storage_class)
        if made_by is None or not made_by.waits_for_consumer:
            return "it has no volume, and none will be made for its pod"
        if made_by.provisioner == _BY_HAND:
            return f"{made_by.name} makes no volumes"
        if claim.selected_node and claim.selected_node != place.name:
            return f"its volume is being made for {claim.selected_node}"
        return "" if _is_allowed_in(made_by, place) else f"{made_by.name} makes no volume for {place.name}"

    def _too_many(self, place: Place) -> Iterator[Violation]:
        there = {each for pod in place.bound for each in self._attached(pod)}
        new = {each for pod in place.planned for each in self._attached(pod)} - there
        for driver in sorted({driver for driver, _ in new}):
            limit = self._limits.get((place.name, driver), place.allocatable.get(f"attachable-volumes-{driver}"))
            count = sum(each == driver for each, _ in chain(there, new))
            if limit is not None and count > limit:
                yield Violation("attach-limits", place.name, f"{count} of {limit} volumes of {driver}")

    def _attached(self, pod: Pod) -> Iterator[tuple[str, str]]:
        """The driver and the name of each volume of a pod; a volume that is not made yet goes by its claim."""
        for key in _keys(pod):
            claim = self._claims.get(key)
            if claim is None:
                continue
            volume = self._volumes.get(claim.volume)
            if volume is not None:
                yield volume.csi_driver, volume.name
            elif claim.storage_class in self._classes:
                yield self._classes[claim.storage_class].provisioner, str(key)

    def _torn(self, places: tuple[Place, ...]) -> Iterator[Violation]:
        """Claims whose pods cannot all be where they are: EBS volumes to be made, and those of one pod alone."""
        mounting: dict[ObjectKey, list[Place]] = {}
        planned: set[ObjectKey] = set()
        for place in places:
            for pod in place.pods:
                for key in _keys(pod):
                    mounting.setdefault(key, []).append(place)
            planned.update(key for pod in place.planned for key in _keys(pod))
        for key in sorted(planned):
            claim, zones = self._claims.get(key), {place.domain(_ZONE) for place in mounting[key]}
            if claim is None:
                continue
            made_by = self._classes.get(claim.storage_class)
            if not claim.volume and made_by is not None and made_by.provisioner in _EBS and len(zones) > 1:
                yield Violation("volumes", str(key), f"its volume will be in one zone, its pods are in {len(zones)}")
            if "ReadWriteOncePod" in claim.access_modes and len(mounting[key]) > 1:
                yield Violation("volumes", str(key), f"it is of one pod, and {len(mounting[key])} mount it")


def _keys(pod: Pod) -> Iterator[ObjectKey]:
    return (ObjectKey(pod.key.namespace, name) for name in dict.fromkeys(pod.placing.volume_claims))


def _is_reached_from(volume: PersistentVolume, place: Place) -> bool:
    labels = _labels_of(place)
    terms = volume.node_affinity
    return not terms or any(bool(term) and all(meets(each, labels) for each in term) for term in terms)


def _is_allowed_in(made_by: StorageClass, place: Place) -> bool:
    labels = _labels_of(place)
    terms = made_by.allowed_topologies
    if terms:
        return any(all(meets(each, labels) for each in term) for term in terms)
    return not made_by.zones or value_of(labels, _ZONE) in made_by.zones


def _labels_of(place: Place) -> Mapping[str, str]:
    zone = value_of(place.labels, _ZONE)
    return place.labels if zone is None else {_ZONE_OF_EBS: zone, **place.labels}
