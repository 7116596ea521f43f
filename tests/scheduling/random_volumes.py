"""Random volumes: claims of every state, of classes that make volumes in some zones, everywhere or not at all."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import Requirement
from engine.model.pod import Pod
from engine.model.snapshot import Snapshot
from engine.model.workload import (
    AttachLimit,
    ObjectKey,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Workload,
)
from tests.builders import ZONES, requirement
from tests.scheduling.random_draw import Dice
from tests.scheduling.random_pods import ZONE_A, ZONE_B

_EBS, _EFS = "ebs.csi.aws.com", "efs.csi.aws.com"
_ZONE_OF_EBS = "topology.ebs.csi.aws.com/zone"
_IN_B = ((requirement(_ZONE_OF_EBS, "In", ZONE_B),),)
_CLASSES = (
    StorageClass("anywhere", _EBS, waits_for_consumer=True),
    StorageClass("at-once", _EBS),
    StorageClass("by-hand", "kubernetes.io/no-provisioner", waits_for_consumer=True),
    StorageClass("in-b", _EBS, waits_for_consumer=True, zones=(ZONE_B,), allowed_topologies=_IN_B),
    StorageClass("shared", _EFS, waits_for_consumer=True),
)


class Disks:
    """The volumes of one cluster, as they gather."""

    def __init__(self, dice: Dice, seen: Snapshot) -> None:
        self._dice = dice
        self._nodes = [node.name for node in seen.nodes]
        self._volumes: list[PersistentVolume] = []
        self._claims: list[PersistentVolumeClaim] = []

    def mounted(self, pods: list[Pod]) -> list[Pod]:
        """The pods, with a claim each, or with one that they share."""
        shared = self._claim(pods[0], is_shared=True) if self._dice.one_in(4) else None
        return [self._with(pod, shared or self._claim(pod)) for pod in pods]

    def workload(self, before: Workload) -> Workload:
        if not self._claims:
            return before
        limits = [AttachLimit(name, _EBS, self._dice.upto(3, 1)) for name in self._nodes if self._dice.one_in(2)]
        return evolve(
            before,
            volumes=tuple(self._volumes),
            volume_claims=tuple(self._claims),
            storage_classes=_CLASSES,
            attach_limits=tuple(sorted(limits)),
        )

    def _with(self, pod: Pod, name: str) -> Pod:
        # Now and then a claim that nobody made.
        names = (name, f"missing-{pod.key.name}") if pod.node_name is None and self._dice.one_in(15) else (name,)
        return evolve(pod, placing=evolve(pod.placing, volume_claims=names))

    def _claim(self, pod: Pod, *, is_shared: bool = False) -> str:
        """A claim that is bound, as that of a running pod is, or still to be bound."""
        dice = self._dice
        name = f"disk-{len(self._claims)}"
        made = PersistentVolumeClaim(ObjectKey(pod.key.namespace, name), dice.pick(_CLASSES).name, phase="Pending")
        if pod.node_name is not None or dice.one_in(2):
            made = evolve(made, volume=self._volume(), phase="Bound")
        elif made.storage_class == "anywhere" and self._nodes and dice.one_in(5):
            made = evolve(made, selected_node=dice.pick(self._nodes))
        if is_shared or pod.node_name is not None:
            self._claims.append(made)
            return name
        if dice.one_in(10):
            made = evolve(made, deleting=True) if dice.one_in(2) else evolve(made, phase="Lost")
        if dice.one_in(6):
            made = evolve(made, access_modes=("ReadWriteOncePod",))
        self._claims.append(made)
        return name

    def _volume(self) -> str:
        dice = self._dice
        name = f"pv-{len(self._volumes)}"
        zones = sorted(ZONES)
        terms: tuple[tuple[Requirement, ...], ...] = dice.pick(
            (
                ((requirement(_ZONE_OF_EBS, "In", dice.pick(zones)),),),
                ((requirement(keys.ZONE, "In", ZONE_A),), (requirement(keys.ZONE, "In", ZONE_B),)),
                (),
            )
        )
        self._volumes.append(PersistentVolume(name, "anywhere", dice.pick((_EBS, _EBS, _EFS)), terms))
        return name
