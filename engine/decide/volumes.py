"""Waiting pods with volumes, as the scheduler is to see them: where the volumes can be reached, and how many they are.

Source of the rules: kube-scheduler's plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import evolve, frozen

from engine.catalog.attach_limits import EBS_DRIVER
from engine.decide.reach import Terms, is_nowhere, joined, said
from engine.model import labels as keys
from engine.model.constraint import Operator, Requirement
from engine.model.node import Node
from engine.model.plan import Unplaced
from engine.model.pod import Placing, Pod, PodKey
from engine.model.quantity import ATTACHABLE_VOLUMES, NOTHING, Resources
from engine.model.refusal import PoolRefusal
from engine.model.snapshot import Snapshot
from engine.model.volume_refusal import VolumeNotReady
from engine.model.workload import ObjectKey, PersistentVolume, PersistentVolumeClaim, StorageClass

# Volumes and classes of the driver that was once inside Kubernetes are served by the one that took its place.
_SUCCESSORS = {"kubernetes.io/aws-ebs": EBS_DRIVER}
# The label by which a CSI driver names the zone of a node, which has it under the well-known one as well.
_ZONE_OF_DRIVER = {"topology.ebs.csi.aws.com/zone": keys.ZONE}
_ONE_POD_ONLY = "ReadWriteOncePod"
# The provisioner of classes whose volumes people make.
_BY_HAND = "kubernetes.io/no-provisioner"
_PENDING = "Pending"


@frozen
class Mount:
    """A claim that can be used. ``volume`` tells volumes apart: two pods with the same one share it.

    ``driver`` is the CSI driver that attaches it, empty for none; ``reached`` is where, ORed terms, ``()`` everywhere.
    """

    volume: str
    driver: str
    reached: Terms


@frozen
class Mounting:
    """``pods`` are those that a node would help, their volumes put into terms and requests; ``refused`` the others.

    ``drivers`` are those whose volumes some pod asks for, in name order.
    """

    pods: tuple[Pod, ...]
    refused: tuple[Unplaced, ...] = ()
    drivers: tuple[str, ...] = ()


class Volumes:
    """The claims, volumes and classes of one snapshot. Nothing is looked up before a pod has a claim."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._last: Mounting | None = None
        self._asked: tuple[Pod, ...] = ()
        self._known: dict[ObjectKey, Mount | str] = {}
        self._rewritten: dict[tuple[int, str], tuple[Placing, Placing | VolumeNotReady]] = {}

    def mounting(self, pods: tuple[Pod, ...]) -> Mounting:
        """What the scheduler is asked about these pods, and whom it is not asked about."""
        if not any(pod.placing.volume_claims for pod in pods):
            return Mounting(pods)
        # A pass asks of the same pods several times.
        if self._last is None or self._asked is not pods:
            self._asked, self._last = pods, self._mounting(pods)
        return self._last

    def _mounting(self, pods: tuple[Pod, ...]) -> Mounting:
        holders = self._holders(pods)
        ready, refused = [], []
        for pod in pods:
            placing = self._in_use(pod, holders) or self._seen(pod)
            if isinstance(placing, VolumeNotReady):
                refused.append(Unplaced(pod.key, (PoolRefusal("", placing),)))
            else:
                ready.append(pod if placing is pod.placing else evolve(pod, placing=placing))
        asked = {name for pod in ready for name in pod.placing.requests if name.startswith(ATTACHABLE_VOLUMES)}
        drivers = sorted(name.removeprefix(ATTACHABLE_VOLUMES) for name in asked)
        return Mounting(tuple(ready), tuple(refused), tuple(drivers))

    def attached(self, pods: Iterable[Pod]) -> Resources:
        """How many volumes of each driver the pods of one node have, a shared one counted once."""
        mounts = {mount for pod in pods for mount in self._usable(pod)}
        return _counted({mount.volume: mount.driver for mount in mounts if mount.driver}.values())

    def _usable(self, pod: Pod) -> Iterator[Mount]:
        for claim in pod.placing.volume_claims:
            found = self._mount(ObjectKey(pod.key.namespace, claim))
            if isinstance(found, Mount):
                yield found

    def _seen(self, pod: Pod) -> Placing | VolumeNotReady:
        """The pod's placing with its volumes in it; one object for pods that share one."""
        placing = pod.placing
        if not placing.volume_claims:
            return placing
        key = (id(placing), pod.key.namespace)
        known = self._rewritten.get(key)
        if known is None:
            # The placing is kept, so that no other object can come to have its identity.
            known = self._rewritten[key] = (placing, self._rewrite(placing, pod.key.namespace))
        return known[1]

    def _rewrite(self, placing: Placing, namespace: str) -> Placing | VolumeNotReady:
        reached: Terms = ()
        drivers: dict[str, str] = {}
        for claim in placing.volume_claims:
            mount = self._mount(ObjectKey(namespace, claim))
            if isinstance(mount, str):
                return VolumeNotReady(claim, mount)
            together = joined(reached, mount.reached)
            if is_nowhere(together):
                here, others = said(mount.reached), said(reached)
                return VolumeNotReady(claim, f"it is reached from {here}, the pod's other volumes from {others}")
            reached = together
            if mount.driver in self._counted_drivers:
                drivers[mount.volume] = mount.driver
        requests = placing.requests + _counted(drivers.values())
        # Pods that differ only in the names of their claims are placed alike.
        return evolve(placing, requests=requests, volume_claims=(), volume_terms=reached)

    def _mount(self, key: ObjectKey) -> Mount | str:
        """The claim as it can be used, or why it cannot."""
        if key not in self._known:
            claim = self._claims.get(key)
            self._known[key] = self._of_claim(claim) if claim is not None else "it does not exist"
        return self._known[key]

    def _of_claim(self, claim: PersistentVolumeClaim) -> Mount | str:
        if claim.deleting:
            return "it is being deleted"
        if claim.is_lost:
            return "it is lost: the volume that it was bound to is gone"
        storage_class = self._classes.get(claim.storage_class)
        waits = storage_class is not None and storage_class.waits_for_consumer
        if claim.volume and (waits or claim.phase != _PENDING):
            volume = self._volumes.get(claim.volume)
            return self._of_volume(volume) if volume is not None else f"its volume {claim.volume} does not exist"
        if storage_class is not None and waits:
            return self._to_be_made(claim, storage_class)
        if claim.storage_class and storage_class is None:
            return f"it is not bound yet, and its storage class {claim.storage_class} does not exist"
        return "it is not bound to a volume yet, and does not wait for a pod to be bound"

    def _of_volume(self, volume: PersistentVolume) -> Mount | str:
        terms = tuple(_as_nodes_have_it(term) for term in volume.node_affinity if term)
        standing = tuple(term for term in map(self._on_nodes_that_stand, terms) if term is not None)
        if terms and not standing:
            return f"its volume {volume.name} is on a node that is gone: {said(terms)}"
        if volume.node_affinity and not terms:
            return f"its volume {volume.name} admits no node"
        return Mount(volume.name, _SUCCESSORS.get(volume.csi_driver, volume.csi_driver), standing)

    def _to_be_made(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> Mount | str:
        """A volume that is made where the pod goes, or is being made for the node that was chosen for its pod.

        kube-scheduler takes no other node while that choice stands; of a node that is gone it is taken back.
        """
        if storage_class.provisioner == _BY_HAND:
            return f"it is not bound to a volume yet, and its storage class {storage_class.name} makes none"
        within: Terms = tuple(_as_nodes_have_it(term) for term in storage_class.allowed_topologies if term)
        if not within and storage_class.zones:
            within = ((Requirement(keys.ZONE, Operator.IN, storage_class.zones),),)
        chosen = self._nodes.get(claim.selected_node)
        if chosen is not None:
            where = keys.HOSTNAME if keys.HOSTNAME in chosen.labels else keys.ZONE
            within = ((Requirement(where, Operator.IN, (chosen.labels.get(where, ""),)),),)
        provisioner = storage_class.provisioner
        return Mount(str(claim.key), _SUCCESSORS.get(provisioner, provisioner), within)

    def _on_nodes_that_stand(self, term: tuple[Requirement, ...]) -> tuple[Requirement, ...] | None:
        """The term with the nodes that it names by hostname, such as a local volume's, as far as they are there."""
        left = []
        for each in term:
            if each.key == keys.HOSTNAME and each.operator is Operator.IN:
                each = evolve(each, values=tuple(name for name in each.values if name in self._hostnames))
                if not each.values:
                    return None
            left.append(each)
        return tuple(left)

    def _holders(self, pods: Iterable[Pod]) -> Mapping[ObjectKey, PodKey]:
        """Who has, or is the first to get, each claim that only one pod may use, or may use now."""
        asked = {
            key for pod in pods for key in _claims_of(pod) if self._is_of_one(key) or self._is_of_one_at_first(key)
        }
        if not asked:
            return {}
        running = [pod for pod in self._snapshot.pods if pod.node_name is not None and not pod.is_finished]
        waiting = sorted(pods, key=lambda each: (-each.priority, each.key))
        holders: dict[ObjectKey, PodKey] = {}
        for pod in (*sorted(running, key=lambda each: each.key), *waiting):
            for key in _claims_of(pod):
                if key in asked:
                    holders.setdefault(key, pod.key)
        return holders

    def _is_of_one(self, key: ObjectKey) -> bool:
        claim = self._claims.get(key)
        return claim is not None and _ONE_POD_ONLY in claim.access_modes

    def _is_of_one_at_first(self, key: ObjectKey) -> bool:
        """Whether its volume is yet to be made, in the zone where its first pod goes."""
        claim, mount = self._claims.get(key), self._mount(key)
        return claim is not None and not claim.volume and isinstance(mount, Mount) and mount.driver == EBS_DRIVER

    def _in_use(self, pod: Pod, holders: Mapping[ObjectKey, PodKey]) -> VolumeNotReady | None:
        for key in _claims_of(pod) if holders else ():
            holder = holders.get(key, pod.key)
            if holder != pod.key and self._is_of_one(key):
                return VolumeNotReady(key.name, f"only one pod may use it, and {holder} does or will")
            if holder != pod.key:
                return VolumeNotReady(key.name, f"its volume is made where {holder} goes, so that goes first")
        return None

    # Nothing of these is needed where no waiting pod has a claim: most passes are such.

    @cached_property
    def _claims(self) -> Mapping[ObjectKey, PersistentVolumeClaim]:
        return {claim.key: claim for claim in self._snapshot.workload.volume_claims}

    @cached_property
    def _volumes(self) -> Mapping[str, PersistentVolume]:
        return {volume.name: volume for volume in self._snapshot.workload.volumes}

    @cached_property
    def _classes(self) -> Mapping[str, StorageClass]:
        return {each.name: each for each in self._snapshot.workload.storage_classes}

    @cached_property
    def _nodes(self) -> Mapping[str, Node]:
        return {node.name: node for node in self._snapshot.nodes}

    @cached_property
    def _hostnames(self) -> frozenset[str]:
        return frozenset(node.labels.get(keys.HOSTNAME, node.name) for node in self._snapshot.nodes)

    @cached_property
    def _counted_drivers(self) -> frozenset[str]:
        """The drivers that limit what a node takes; of others a node takes any number."""
        return frozenset({EBS_DRIVER, *(limit.csi_driver for limit in self._snapshot.workload.attach_limits)})


def _claims_of(pod: Pod) -> Sequence[ObjectKey]:
    return [ObjectKey(pod.key.namespace, claim) for claim in pod.placing.volume_claims]


def _as_nodes_have_it(term: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    if not any(each.key in _ZONE_OF_DRIVER for each in term):
        return term
    return tuple(evolve(each, key=_ZONE_OF_DRIVER.get(each.key, each.key)) for each in term)


def _counted(drivers: Iterable[str]) -> Resources:
    """One for each volume, under the name of its driver."""
    amounts: dict[str, int] = {}
    for driver in drivers:
        amounts[ATTACHABLE_VOLUMES + driver] = amounts.get(ATTACHABLE_VOLUMES + driver, 0) + 1
    return Resources(amounts) if amounts else NOTHING
