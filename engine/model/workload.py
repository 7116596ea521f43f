"""What else a cluster holds that decisions may need: disruption budgets, volumes, classes, autoscalers, owners."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from engine.model.constraint import Requirement


@frozen(order=True)
class ObjectKey:
    """A namespaced object; ``namespace`` is empty for a cluster-wide one."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@frozen
class PodDisruptionBudget:
    """``selector`` None matches no pod, ``()`` every pod of the namespace.

    ``min_available`` and ``max_unavailable`` are as written, ``"2"`` or ``"50%"``; None is unset.
    ``disruptions_allowed`` is the controller's own count, as are ``healthy`` pods and those ``wanted_healthy``, and
    ``is_observed`` says that they are of this very version. ``evicts_unhealthy`` is unhealthyPodEvictionPolicy
    AlwaysAllow; IfHealthyBudget is the default.
    """

    key: ObjectKey
    selector: tuple[Requirement, ...] | None = None
    min_available: str | None = None
    max_unavailable: str | None = None
    disruptions_allowed: int = 0
    is_observed: bool = False
    evicts_unhealthy: bool = False
    healthy: int = 0
    wanted_healthy: int = 0

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether it protects a pod of its own namespace that has these labels."""
        if self.selector is None:
            return False
        return all(each.admits(labels.get(each.key)) for each in self.selector)

    def lets_go(self, *, is_ready: bool) -> bool:
        """Whether the eviction API would now let one of its pods go, one that is ready or one that is not.

        A pod that is not ready is held only where too few others are healthy, and not even then with AlwaysAllow.
        """
        if not is_ready and (self.evicts_unhealthy or self.healthy >= self.wanted_healthy > 0):
            return True
        return self.is_observed and self.disruptions_allowed > 0


@frozen
class PersistentVolume:
    """``node_affinity`` are ORed terms, as a pod's; ``csi_driver`` is empty for one that no CSI driver serves."""

    name: str
    storage_class: str = ""
    csi_driver: str = ""
    node_affinity: tuple[tuple[Requirement, ...], ...] = ()


@frozen
class PersistentVolumeClaim:
    """``volume`` is empty until it is bound. ``phase`` is Pending, Bound or Lost, empty where its status says nothing.

    ``selected_node`` is the node that the scheduler chose for its first pod, for which the volume is then made.
    ``access_modes`` are as written, such as ``ReadWriteOnce``.
    """

    key: ObjectKey
    storage_class: str = ""
    volume: str = ""
    phase: str = ""
    deleting: bool = False
    selected_node: str = ""
    access_modes: tuple[str, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether its volume is gone: no pod that mounts it can start."""
        return self.phase == "Lost"


@frozen
class StorageClass:
    """``waits_for_consumer``: volumes are made once a pod is scheduled. ``zones`` are allowed topologies, () is all.

    ``allowed_topologies`` are all of them, by any key, as written: ORed terms of ANDed requirements, () is everywhere.
    """

    name: str
    provisioner: str = ""
    is_default: bool = False
    waits_for_consumer: bool = False
    zones: tuple[str, ...] = ()
    allowed_topologies: tuple[tuple[Requirement, ...], ...] = ()


@frozen
class PriorityClass:
    """``pre_empts`` is false for ``preemptionPolicy: Never``."""

    name: str
    value: int = 0
    is_default: bool = False
    pre_empts: bool = True
    annotations: Mapping[str, str] = field(factory=dict)


@frozen
class WorkloadOwner:
    """A Deployment, ReplicaSet, StatefulSet or Job: ``replicas`` wanted; ``owner`` is who made it, as ``KIND/NAME``."""

    kind: str
    key: ObjectKey
    replicas: int = 0
    owner: str = ""


@frozen
class Autoscaler:
    """A HorizontalPodAutoscaler or a KEDA ScaledObject: it scales ``target``, ``KIND/NAME`` in its own namespace.

    ``idle_replicas`` is KEDA's idleReplicaCount: so many stand while no trigger is active; None where it names none.
    """

    kind: str
    key: ObjectKey
    target: str
    min_replicas: int
    max_replicas: int
    idle_replicas: int | None = None


@frozen
class Namespace:
    """A namespace with its labels, ``kubernetes.io/metadata.name`` included."""

    name: str
    labels: Mapping[str, str] = field(factory=dict)


@frozen(order=True)
class AttachLimit:
    """How many volumes of one CSI driver a node takes, as its CSINode says."""

    node: str
    csi_driver: str
    volumes: int


@frozen(order=True)
class VolumeAttachment:
    """A volume that is attached to a node, is being attached, or is not wholly detached yet.

    ``volume`` is a PersistentVolume's name, empty for a volume that has none. ``name`` is the attachment's own.
    """

    name: str
    node: str
    volume: str = ""


@frozen
class Workload:
    """All of them, each in name order."""

    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    owners: tuple[WorkloadOwner, ...] = ()
    autoscalers: tuple[Autoscaler, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    attach_limits: tuple[AttachLimit, ...] = ()
    attachments: tuple[VolumeAttachment, ...] = ()
