"""Budgets, volumes, classes, owners, autoscalers, namespaces: their Kubernetes JSON as model values."""

from __future__ import annotations

from engine.model import labels as keys
from engine.model.constraint import Operator, Requirement
from engine.model.workload import (
    AttachLimit,
    Autoscaler,
    Namespace,
    ObjectKey,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    StorageClass,
    VolumeAttachment,
    WorkloadOwner,
)
from engine.observe.affinity import node_selector_terms
from engine.observe.json_fields import (
    BrokenObject,
    Json,
    flag,
    mapping,
    objects,
    shown,
    text,
    texts,
    whole_number,
    words,
)
from engine.observe.label_selector import label_selector

_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_EBS_DRIVER = "ebs.csi.aws.com"
# Whole manifests, which nothing reads.
_NOT_KEPT = ("kubectl.kubernetes.io/last-applied-configuration",)
_ZONE_KEYS = frozenset(
    {keys.ZONE, "topology.ebs.csi.aws.com/zone", *(old for old, key in keys.ALIASES.items() if key == keys.ZONE)}
)
# KEDA's own defaults (apis/keda/v1alpha1, scaledobject_types.go).
_KEDA_DEFAULT_MOST = 100
_KEDA_DEFAULT_KIND = "Deployment"


def key_of(raw: Json) -> ObjectKey:
    """Raises BrokenObject when it has no name."""
    metadata = mapping(raw, "metadata")
    name = text(metadata, "name")
    if not name:
        raise BrokenObject("metadata.name is missing")
    return ObjectKey(text(metadata, "namespace"), name)


def decode_disruption_budget(raw: Json) -> PodDisruptionBudget:
    """A PodDisruptionBudget of policy/v1; raises BrokenObject."""
    metadata, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    return PodDisruptionBudget(
        key=key_of(raw),
        selector=label_selector(spec, "selector"),
        min_available=_number_or_share(spec, "minAvailable"),
        max_unavailable=_number_or_share(spec, "maxUnavailable"),
        disruptions_allowed=whole_number(status, "disruptionsAllowed"),
        is_observed=whole_number(status, "observedGeneration") >= whole_number(metadata, "generation"),
        evicts_unhealthy=text(spec, "unhealthyPodEvictionPolicy") == "AlwaysAllow",
        healthy=whole_number(status, "currentHealthy"),
        wanted_healthy=whole_number(status, "desiredHealthy"),
    )


def unreadable_disruption_budget(key: ObjectKey) -> PodDisruptionBudget:
    """A budget whose terms are not known allows nothing in its namespace."""
    return PodDisruptionBudget(key=key, selector=())


def decode_volume(raw: Json) -> PersistentVolume:
    """A PersistentVolume; raises BrokenObject. In-tree EBS volumes are served by the CSI driver they migrated to."""
    spec = mapping(raw, "spec")
    terms, _ = node_selector_terms(mapping(mapping(spec, "nodeAffinity"), "required"))
    driver = text(mapping(spec, "csi"), "driver")
    return PersistentVolume(
        name=key_of(raw).name,
        storage_class=text(spec, "storageClassName"),
        csi_driver=_EBS_DRIVER if "awsElasticBlockStore" in spec else driver,
        node_affinity=terms,
    )


def decode_volume_claim(raw: Json) -> PersistentVolumeClaim:
    """A PersistentVolumeClaim; raises BrokenObject."""
    metadata, spec = mapping(raw, "metadata"), mapping(raw, "spec")
    return PersistentVolumeClaim(
        key=key_of(raw),
        storage_class=text(spec, "storageClassName"),
        volume=text(spec, "volumeName"),
        phase=text(mapping(raw, "status"), "phase"),
        deleting=metadata.get("deletionTimestamp") is not None,
        selected_node=texts(metadata, "annotations").get(_SELECTED_NODE, ""),
        access_modes=words(spec, "accessModes"),
    )


def decode_storage_class(raw: Json) -> StorageClass:
    """A StorageClass; raises BrokenObject. A topology without expressions allows nothing, so it is left out."""
    annotations = texts(mapping(raw, "metadata"), "annotations")
    topologies = tuple(
        tuple(_allowed(expression) for expression in expressions)
        for topology in objects(raw, "allowedTopologies")
        if (expressions := objects(topology, "matchLabelExpressions"))
    )
    zones = {zone for topology in topologies for each in topology if each.key in _ZONE_KEYS for zone in each.values}
    return StorageClass(
        name=key_of(raw).name,
        provisioner=text(raw, "provisioner"),
        is_default=any(annotations.get(key) == "true" for key in _DEFAULT_CLASS),
        waits_for_consumer=text(raw, "volumeBindingMode") == "WaitForFirstConsumer",
        zones=tuple(sorted(zones)),
        allowed_topologies=topologies,
    )


def decode_namespace(raw: Json) -> Namespace:
    """A Namespace; raises BrokenObject."""
    name = key_of(raw).name
    # The API server writes this label and lets nobody change it.
    return Namespace(name, {**texts(mapping(raw, "metadata"), "labels"), _NAMESPACE_NAME: name})


def decode_csi_node(raw: Json) -> tuple[AttachLimit, ...]:
    """What a CSINode limits, in the drivers' order; raises BrokenObject. A driver that names no count has no limit."""
    node = key_of(raw).name
    limits = []
    for driver in objects(mapping(raw, "spec"), "drivers"):
        allocatable = mapping(driver, "allocatable")
        if allocatable.get("count") is not None:
            limits.append(AttachLimit(node, text(driver, "name"), whole_number(allocatable, "count")))
    return tuple(sorted(limits))


def decode_attachment(raw: Json) -> VolumeAttachment:
    """A VolumeAttachment; raises BrokenObject."""
    spec = mapping(raw, "spec")
    return VolumeAttachment(
        name=key_of(raw).name,
        node=text(spec, "nodeName"),
        volume=text(mapping(spec, "source"), "persistentVolumeName"),
    )


def decode_priority_class(raw: Json) -> PriorityClass:
    """A PriorityClass; raises BrokenObject."""
    annotations = texts(mapping(raw, "metadata"), "annotations")
    return PriorityClass(
        name=key_of(raw).name,
        value=whole_number(raw, "value"),
        is_default=flag(raw, "globalDefault"),
        pre_empts=text(raw, "preemptionPolicy") != "Never",
        annotations={name: written for name, written in annotations.items() if name not in _NOT_KEPT},
    )


def decode_replicated(kind: str, raw: Json) -> WorkloadOwner:
    """A Deployment, ReplicaSet or StatefulSet; raises BrokenObject. Without a number it wants one pod."""
    spec = mapping(raw, "spec")
    return WorkloadOwner(
        kind=kind,
        key=key_of(raw),
        replicas=1 if spec.get("replicas") is None else whole_number(spec, "replicas"),
        owner=controller_of(raw),
    )


def decode_job(raw: Json) -> WorkloadOwner:
    """A Job wants as many pods as run side by side, none while it is suspended or done; raises BrokenObject."""
    spec, status = mapping(raw, "spec"), mapping(raw, "status")
    parallel = 1 if spec.get("parallelism") is None else whole_number(spec, "parallelism")
    rests = flag(spec, "suspend") or status.get("completionTime") is not None
    return WorkloadOwner("Job", key_of(raw), 0 if rests else parallel, controller_of(raw))


def decode_pod_autoscaler(raw: Json) -> Autoscaler:
    """A HorizontalPodAutoscaler of autoscaling/v2; raises BrokenObject."""
    spec = mapping(raw, "spec")
    return Autoscaler(
        kind="HorizontalPodAutoscaler",
        key=key_of(raw),
        target=_target(spec, ""),
        min_replicas=1 if spec.get("minReplicas") is None else whole_number(spec, "minReplicas"),
        max_replicas=whole_number(spec, "maxReplicas"),
    )


def decode_scaled_object(raw: Json) -> Autoscaler:
    """A ScaledObject of keda.sh/v1alpha1; raises BrokenObject."""
    spec = mapping(raw, "spec")
    most = whole_number(spec, "maxReplicaCount") if spec.get("maxReplicaCount") is not None else _KEDA_DEFAULT_MOST
    return Autoscaler(
        kind="ScaledObject",
        key=key_of(raw),
        target=_target(spec, _KEDA_DEFAULT_KIND),
        min_replicas=whole_number(spec, "minReplicaCount"),
        max_replicas=most,
        idle_replicas=whole_number(spec, "idleReplicaCount") if spec.get("idleReplicaCount") is not None else None,
    )


def controller_of(raw: Json) -> str:
    """The object's controller as ``KIND/NAME``, empty where it has none. Raises BrokenObject."""
    for reference in objects(mapping(raw, "metadata"), "ownerReferences"):
        if flag(reference, "controller"):
            return f"{text(reference, 'kind')}/{text(reference, 'name')}"
    return ""


def _allowed(expression: Json) -> Requirement:
    key = text(expression, "key")
    if not key:
        raise BrokenObject("an allowed topology's expression has no key")
    return Requirement(key, Operator.IN, words(expression, "values"))


def _number_or_share(spec: Json, key: str) -> str | None:
    written = spec.get(key)
    if written is None:
        return None
    if isinstance(written, bool) or not isinstance(written, int | str):
        raise BrokenObject(f"{key} is {shown(written)}, expected a number or a share such as 50%")
    return str(written)


def _target(spec: Json, default_kind: str) -> str:
    reference = mapping(spec, "scaleTargetRef")
    kind, name = text(reference, "kind") or default_kind, text(reference, "name")
    if not kind or not name:
        raise BrokenObject("spec.scaleTargetRef names no kind and name")
    return f"{kind}/{name}"
