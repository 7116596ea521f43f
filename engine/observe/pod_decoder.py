"""A pod's Kubernetes JSON as a model Pod. Preferences (preferred affinity, ScheduleAnyway spread) are not read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from engine.model import labels as keys
from engine.model.constraint import Operator, Requirement, TaintEffect, Toleration
from engine.model.duration import DurationError, parse_duration
from engine.model.pod import DaemonSet, Owner, Placing, Pod, PodKey, PodPhase
from engine.model.quantity import PODS, Resources
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
    words,
)
from engine.observe.pod_requests import effective_requests

_OPERATORS = {operator.value: operator for operator in Operator}
_EFFECTS = {effect.value: effect for effect in TaintEffect}
_PHASES = {phase.value: phase for phase in PodPhase}
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

# What a pod may ask for that placing by requests, selectors, affinity and taints would get wrong.
POD_AFFINITY = "required pod affinity"
POD_ANTI_AFFINITY = "required pod anti-affinity"
TOPOLOGY_SPREAD = "topology spread (DoNotSchedule)"
RESOURCE_CLAIMS = "resource claims"
HOST_PORTS = "host ports"
PERSISTENT_VOLUMES = "persistent volumes"
FIELD_AFFINITY = "node affinity by field (matchFields)"
NO_NODE_MATCHES = "node affinity without a term that any node meets"
TOLERATION_OPERATOR = "toleration by comparison"


def decode_pod(raw: Json, now: datetime | None = None) -> Pod:
    """A pod; raises BrokenObject.

    ``now`` ends a do-not-disrupt annotation that is a duration, counted from the pod's start; without it, it holds.
    """
    metadata, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    name = text(metadata, "name")
    if not name:
        raise BrokenObject("metadata.name is missing")
    phase = text(status, "phase")
    if phase and phase not in _PHASES:
        raise BrokenObject(f"status.phase is {shown(phase)}, expected one of {', '.join(_PHASES)}")
    node_name = text(spec, "nodeName") or None
    created_at = moment(metadata, "creationTimestamp")
    return Pod(
        key=PodKey(text(metadata, "namespace"), name),
        placing=_pod_placing(spec, status if node_name else None),
        created_at=created_at,
        phase=_PHASES[phase] if phase else PodPhase.PENDING,
        node_name=node_name,
        labels=texts(metadata, "labels"),
        owner=_controller(metadata),
        priority=whole_number(spec, "priority"),
        do_not_disrupt=_is_held(metadata, status, created_at, now),
        deleting=metadata.get("deletionTimestamp") is not None,
        scheduling_gated=bool(objects(spec, "schedulingGates")),
    )


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
            namespace if isinstance(namespace, str) else "",
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

    Constraints that the engine does not place are left out: whatever they are, its pods come.
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
        ),
    )


def _pod_placing(spec: Json, status: Json | None) -> Placing:
    terms, unplaceable_terms = _affinity_terms(spec)
    tolerations, unread_tolerations = _tolerations(spec)
    unsupported = (*unplaceable_terms, *unread_tolerations, *_unsupported(spec))
    return Placing(
        requests=effective_requests(spec, status),
        node_selector=texts(spec, "nodeSelector"),
        affinity_terms=terms,
        tolerations=tolerations,
        unsupported=unsupported,
    )


def _affinity_terms(spec: Json) -> tuple[tuple[tuple[Requirement, ...], ...], tuple[str, ...]]:
    """Required terms, and what of them cannot be placed by. A term without expressions matches no node."""
    affinity = mapping(spec, "affinity")
    required = mapping(affinity, "nodeAffinity").get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return (), ()
    if not isinstance(required, dict):
        raise BrokenObject(f"required node affinity is {shown(required)}, expected an object")
    terms = []
    by_field = False
    for term in objects(required, "nodeSelectorTerms"):
        if objects(term, "matchFields"):
            by_field = True
        elif expressions := objects(term, "matchExpressions"):
            terms.append(tuple(_requirement(expression) for expression in expressions))
    if by_field:
        return tuple(terms), (FIELD_AFFINITY,)
    return tuple(terms), () if terms else (NO_NODE_MATCHES,)


def _requirement(expression: Json) -> Requirement:
    key, operator = text(expression, "key"), text(expression, "operator")
    if not key:
        raise BrokenObject("a node affinity expression has no key")
    if operator not in _OPERATORS:
        raise BrokenObject(f"node affinity on {key}: operator {shown(operator)}, expected In, NotIn, Exists, …")
    return Requirement(key=key, operator=_OPERATORS[operator], values=words(expression, "values"))


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


def _unsupported(spec: Json) -> Iterator[str]:
    affinity = mapping(spec, "affinity")
    if affinity:
        if objects(mapping(affinity, "podAffinity"), "requiredDuringSchedulingIgnoredDuringExecution"):
            yield POD_AFFINITY
        if objects(mapping(affinity, "podAntiAffinity"), "requiredDuringSchedulingIgnoredDuringExecution"):
            yield POD_ANTI_AFFINITY
    if any(
        text(spread, "whenUnsatisfiable") != "ScheduleAnyway" for spread in objects(spec, "topologySpreadConstraints")
    ):
        yield TOPOLOGY_SPREAD
    if objects(spec, "resourceClaims"):
        yield RESOURCE_CLAIMS
    if any(_takes_host_port(container) for key in ("containers", "initContainers") for container in objects(spec, key)):
        yield HOST_PORTS
    if any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in objects(spec, "volumes")):
        yield PERSISTENT_VOLUMES


def _takes_host_port(container: Json) -> bool:
    return any(whole_number(port, "hostPort") for port in objects(container, "ports"))


def _controller(metadata: Json) -> Owner | None:
    for reference in objects(metadata, "ownerReferences"):
        if flag(reference, "controller"):
            return Owner(kind=text(reference, "kind"), name=text(reference, "name"))
    return None


def _is_held(metadata: Json, status: Json, created_at: datetime, now: datetime | None) -> bool:
    """Karpenter's rule (pkg/utils/pod): ``true``, or a duration counted from the pod's start."""
    written = texts(metadata, "annotations").get(keys.DO_NOT_DISRUPT)
    if written is None or written == "true":
        return written is not None
    try:
        held_for = parse_duration(written)
    except (DurationError, OverflowError):
        return False
    started = moment(status, "startTime") if status.get("startTime") is not None else created_at
    return now is None or now - started < held_for


def _lenient(raw: Json, part: str) -> Json:
    value = raw.get(part)
    return value if isinstance(value, dict) else {}
