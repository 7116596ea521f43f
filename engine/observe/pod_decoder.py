"""A pod's Kubernetes JSON as a model Pod, with all that decides where it may go."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from engine.model import labels as keys
from engine.model.constraint import TaintEffect, Toleration
from engine.model.duration import DurationError, parse_duration
from engine.model.pod import DaemonSet, Owner, Placing, Pod, PodKey, PodPhase
from engine.model.quantity import PODS, Resources
from engine.model.upkeep import LONGEST_WARM_UP
from engine.observe.affinity import REQUIRED, Terms, node_selector_terms, preferred_node_terms
from engine.observe.host_ports import host_ports
from engine.observe.json_fields import (
    BrokenObject,
    Json,
    flag,
    mapping,
    moment,
    objects,
    shown,
    text,
    texts,
    whole_number,
)
from engine.observe.pod_neighbours import preferred_pod_terms, required_pod_terms, topology_spreads
from engine.observe.pod_requests import effective_requests

_EFFECTS = {effect.value: effect for effect in TaintEffect}
_PHASES = {phase.value: phase for phase in PodPhase}
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_FOREVER = datetime.max.replace(tzinfo=UTC)
# Kubernetes' own, of a pod whose spec names none.
_DEFAULT_GRACE_SECONDS = 30
# Nobody waits for longer, and more seconds are no time at all.
_MOST_GRACE_SECONDS = 10 * 365 * 24 * 3600

# Of a broken pod that tells none; no real namespace has such a name, and none is without one.
NO_NAMESPACE = "(no namespace)"

# What a pod may ask for that placing by what is read of it would get wrong.
RESOURCE_CLAIMS = "resource claims"
FIELD_AFFINITY = "node affinity by field (matchFields)"
NO_NODE_MATCHES = "node affinity without a term that any node meets"
TOLERATION_OPERATOR = "toleration by comparison"


def decode_pod(raw: Json, now: datetime | None = None) -> Pod:
    """A pod; raises BrokenObject.

    ``now`` ends a do-not-disrupt annotation that is a duration, counted from the pod's start; without it, it holds.
    """
    metadata, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    name, namespace = text(metadata, "name"), text(metadata, "namespace")
    if not name:
        raise BrokenObject("metadata.name is missing")
    if not namespace:
        raise BrokenObject("metadata.namespace is missing")
    phase = text(status, "phase")
    if phase and phase not in _PHASES:
        raise BrokenObject(f"status.phase is {shown(phase)}, expected one of {', '.join(_PHASES)}")
    node_name = text(spec, "nodeName") or None
    return Pod(
        key=PodKey(namespace, name),
        placing=_pod_placing(metadata, spec, status if node_name else None),
        created_at=moment(metadata, "creationTimestamp"),
        phase=_PHASES[phase] if phase else PodPhase.PENDING,
        node_name=node_name,
        labels=texts(metadata, "labels"),
        owner=_controller(metadata),
        priority=whole_number(spec, "priority"),
        priority_class=text(spec, "priorityClassName"),
        do_not_disrupt=_is_held(raw, now),
        deleting=metadata.get("deletionTimestamp") is not None,
        scheduling_gated=bool(objects(spec, "schedulingGates")),
        nominated_node_name=text(status, "nominatedNodeName") or None,
        started_at=_started_at(status),
        ready_at=_ready_at(status),
        images=_images(spec),
        uid=text(metadata, "uid"),
        grace=_grace(spec),
        ends_by=moment(metadata, "deletionTimestamp") if metadata.get("deletionTimestamp") is not None else None,
        warm_up=_warm_up(texts(metadata, "annotations")),
    )


def unread_warm_up(raw: Json) -> str:
    """Why a pod's word on its warm-up is ignored; empty where it is not, or not there."""
    annotations = texts(mapping(raw, "metadata"), "annotations")
    if keys.WARM_UP not in annotations or _warm_up(annotations) is not None:
        return ""
    expected = f"expected a duration such as 90s or 10m, at most {LONGEST_WARM_UP // timedelta(hours=1)}h"
    return f"annotation {keys.WARM_UP} is {shown(annotations[keys.WARM_UP])}, {expected}; it is ignored"


def unreadable_pod(raw: Json, position: int, why: str) -> Pod:
    """What can be said of a broken pod: its name and node, read leniently.

    It is never placed, and the node that it runs on is not disturbed: it holds something that we do not understand.
    """
    metadata, spec, status = (_lenient(raw, part) for part in ("metadata", "spec", "status"))
    name, namespace, node = metadata.get("name"), metadata.get("namespace"), spec.get("nodeName")
    node_name = node if isinstance(node, str) and node else None
    phase = status.get("phase")
    fallback = PodPhase.RUNNING if node_name else PodPhase.PENDING
    return Pod(
        key=PodKey(
            namespace if isinstance(namespace, str) and namespace else NO_NAMESPACE,
            name if isinstance(name, str) and name else f"unnamed-{position}",
        ),
        placing=Placing(requests=Resources({PODS: 1}), unsupported=(f"unreadable: {why}",)),
        created_at=_LONG_AGO,
        phase=_PHASES.get(phase, fallback) if isinstance(phase, str) else fallback,
        node_name=node_name,
        do_not_disrupt=True,
        deleting=metadata.get("deletionTimestamp") is not None,
    )


def decode_daemon_set(raw: Json) -> DaemonSet:
    """A daemonset's template; raises BrokenObject.

    What it asks beyond node affinity and taints is left out, its host ports aside: whatever it is, its pods come.
    """
    name = text(mapping(raw, "metadata"), "name")
    if not name:
        raise BrokenObject("metadata.name is missing")
    spec = mapping(mapping(mapping(raw, "spec"), "template"), "spec")
    if not objects(spec, "containers"):
        raise BrokenObject("spec.template.spec.containers is empty, expected at least one container")
    terms, _ = _affinity_terms(spec)
    tolerations, _ = _tolerations(spec)
    return DaemonSet(
        name=name,
        placing=Placing(
            requests=effective_requests(spec),
            node_selector=texts(spec, "nodeSelector"),
            affinity_terms=terms,
            tolerations=tolerations,
            host_ports=host_ports(spec),
        ),
    )


def _pod_placing(metadata: Json, spec: Json, status: Json | None) -> Placing:
    name, namespace, labels = text(metadata, "name"), text(metadata, "namespace"), texts(metadata, "labels")
    terms, unplaceable_terms = _affinity_terms(spec)
    tolerations, unread_tolerations = _tolerations(spec)
    return Placing(
        requests=effective_requests(spec, status),
        node_selector=texts(spec, "nodeSelector"),
        affinity_terms=terms,
        tolerations=tolerations,
        unsupported=(*unplaceable_terms, *unread_tolerations, *_resource_claims(spec)),
        spreads=topology_spreads(spec, labels),
        pod_affinity=required_pod_terms(spec, "podAffinity", namespace, labels),
        pod_anti_affinity=required_pod_terms(spec, "podAntiAffinity", namespace, labels),
        preferred_terms=preferred_node_terms(mapping(mapping(spec, "affinity"), "nodeAffinity")),
        preferred_pod_affinity=preferred_pod_terms(spec, "podAffinity", namespace, labels),
        preferred_pod_anti_affinity=preferred_pod_terms(spec, "podAntiAffinity", namespace, labels),
        host_ports=host_ports(spec),
        volume_claims=_volume_claims(spec, name),
    )


def _affinity_terms(spec: Json) -> tuple[Terms, tuple[str, ...]]:
    """Required terms, and what of them cannot be placed by. A term without expressions matches no node."""
    affinity = mapping(spec, "affinity")
    required = mapping(affinity, "nodeAffinity").get(REQUIRED)
    if required is None:
        return (), ()
    if not isinstance(required, dict):
        raise BrokenObject(f"required node affinity is {shown(required)}, expected an object")
    terms, by_field = node_selector_terms(required)
    if by_field:
        return terms, (FIELD_AFFINITY,)
    return terms, () if terms else (NO_NODE_MATCHES,)


def _tolerations(spec: Json) -> tuple[tuple[Toleration, ...], tuple[str, ...]]:
    read = []
    unread: tuple[str, ...] = ()
    for toleration in objects(spec, "tolerations"):
        operator, effect = text(toleration, "operator"), text(toleration, "effect")
        if effect and effect not in _EFFECTS:
            raise BrokenObject(f"a toleration's effect is {shown(effect)}, expected one of {', '.join(_EFFECTS)}")
        if operator not in ("", "Equal", "Exists"):
            unread = (TOLERATION_OPERATOR,)
            continue
        read.append(
            Toleration(
                key=text(toleration, "key"),
                exists=operator == "Exists",
                value=text(toleration, "value"),
                effect=_EFFECTS[effect] if effect else None,
            )
        )
    return tuple(read), unread


def _resource_claims(spec: Json) -> tuple[str, ...]:
    return (RESOURCE_CLAIMS,) if objects(spec, "resourceClaims") else ()


def _volume_claims(spec: Json, pod_name: str) -> tuple[str, ...]:
    """Each claim once, in name order; an ephemeral volume's is made under its pod's name and its own."""
    claims = set()
    for volume in objects(spec, "volumes"):
        name = text(volume, "name")
        if volume.get("persistentVolumeClaim") is not None:
            claim = text(mapping(volume, "persistentVolumeClaim"), "claimName")
            if not claim:
                raise BrokenObject(f"volume {shown(name)}: persistentVolumeClaim.claimName is missing")
            claims.add(claim)
        elif volume.get("ephemeral") is not None:
            mapping(volume, "ephemeral")
            claims.add(f"{pod_name}-{name}")
    return tuple(sorted(claims))


def _controller(metadata: Json) -> Owner | None:
    for reference in objects(metadata, "ownerReferences"):
        if flag(reference, "controller"):
            return Owner(kind=text(reference, "kind"), name=text(reference, "name"))
    return None


def hold_ends_at(raw: Json) -> datetime | None:
    """When a do-not-disrupt annotation that is a duration ends, counted from the pod's start; None where none is.

    Karpenter's rule (pkg/utils/pod). Raises BrokenObject.
    """
    metadata, status = mapping(raw, "metadata"), mapping(raw, "status")
    written = texts(metadata, "annotations").get(keys.DO_NOT_DISRUPT)
    if written is None or written == "true":
        return None
    has_started = status.get("startTime") is not None
    started = moment(status, "startTime") if has_started else moment(metadata, "creationTimestamp")
    try:
        held_for = parse_duration(written)
    except (DurationError, OverflowError):
        return None
    return started + held_for if held_for < _FOREVER - started else _FOREVER


def _is_held(raw: Json, now: datetime | None) -> bool:
    if texts(mapping(raw, "metadata"), "annotations").get(keys.DO_NOT_DISRUPT) == "true":
        return True
    ends_at = hold_ends_at(raw)
    return ends_at is not None and (now is None or now < ends_at)


def _warm_up(annotations: Mapping[str, str]) -> timedelta | None:
    written = annotations.get(keys.WARM_UP)
    if written is None:
        return None
    try:
        found = parse_duration(written)
    except (DurationError, OverflowError):
        return None
    return found if found <= LONGEST_WARM_UP else None


def _started_at(status: Json) -> datetime | None:
    """The earliest start of a container that runs; of one that ran, where it is not running any more."""
    moments = []
    for container in objects(status, "containerStatuses"):
        state = mapping(container, "state")
        ran = mapping(state, "running") or mapping(state, "terminated")
        if ran.get("startedAt") is not None:
            moments.append(moment(ran, "startedAt"))
    return min(moments, default=None)


def _ready_at(status: Json) -> datetime | None:
    for condition in objects(status, "conditions"):
        if text(condition, "type") == "Ready" and text(condition, "status") == "True":
            return moment(condition, "lastTransitionTime") if condition.get("lastTransitionTime") else None
    return None


def _grace(spec: Json) -> timedelta:
    if spec.get("terminationGracePeriodSeconds") is None:
        return timedelta(seconds=_DEFAULT_GRACE_SECONDS)
    seconds = whole_number(spec, "terminationGracePeriodSeconds")
    return timedelta(seconds=min(max(seconds, 0), _MOST_GRACE_SECONDS))


def _images(spec: Json) -> tuple[str, ...]:
    named = (text(container, "image") for key in ("initContainers", "containers") for container in objects(spec, key))
    return tuple(image for image in named if image)


def _lenient(raw: Json, part: str) -> Json:
    value = raw.get(part)
    return value if isinstance(value, dict) else {}
