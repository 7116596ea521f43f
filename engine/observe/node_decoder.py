"""A node's Kubernetes JSON as a model Node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from engine.model import labels as keys
from engine.model.constraint import Taint, TaintEffect
from engine.model.node import HEALTH_CONDITIONS, READY, Node, NodeCondition
from engine.model.quantity import NOTHING, Resources
from engine.model.reason import DisruptionReason
from engine.observe.json_fields import BrokenObject, Json, flag, mapping, moment, objects, shown, text, texts
from engine.observe.pod_requests import amounts

_EFFECTS = {effect.value: effect for effect in TaintEffect}
_REASONS = {reason.value: reason for reason in DisruptionReason}
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def decode_node(raw: Json) -> Node:
    """A node; raises BrokenObject. Ready is the Ready condition; a node without one is not ready."""
    metadata, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    name = text(metadata, "name")
    if not name:
        raise BrokenObject("metadata.name is missing")
    conditions = tuple(_conditions(status))
    annotations = texts(metadata, "annotations")
    replace_asked, replace_asked_at = _request(annotations)
    return Node(
        name=name,
        allocatable=Resources(amounts(status, "allocatable")),
        created_at=moment(metadata, "creationTimestamp"),
        provider_id=text(spec, "providerID"),
        labels=texts(metadata, "labels"),
        taints=tuple(_taints(spec)),
        unschedulable=flag(spec, "unschedulable"),
        ready=any(each.type == READY and each.status == "True" for each in conditions),
        do_not_disrupt=annotations.get(keys.DO_NOT_DISRUPT) == "true",
        deleting=metadata.get("deletionTimestamp") is not None,
        marked_at=_marked_at(spec),
        marked_for=_REASONS.get(annotations.get(keys.MARKED_FOR, "")),
        conditions=conditions,
        replace_asked=replace_asked,
        replace_asked_at=replace_asked_at,
    )


def unread_request(raw: Json) -> str:
    """Why a node's annotation that asks for another in its stead is ignored; empty where it is not, or not there."""
    annotations = texts(mapping(raw, "metadata"), "annotations")
    if keys.REPLACE not in annotations or _request(annotations)[0]:
        return ""
    expected = f"expected {keys.REPLACE_NOW} or a time such as 2026-11-30T12:00:00Z"
    return f"annotation {keys.REPLACE} is {shown(annotations[keys.REPLACE])}, {expected}; it is ignored"


def unreadable_node(raw: Json) -> Node | None:
    """What can be said of a broken node, None where it has no name: no room on it, and it is left alone."""
    metadata, spec = raw.get("metadata"), raw.get("spec")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        return None
    provider_id = spec.get("providerID") if isinstance(spec, dict) else None
    return Node(
        name=name,
        allocatable=NOTHING,
        created_at=_LONG_AGO,
        provider_id=provider_id if isinstance(provider_id, str) else "",
        unschedulable=True,
        ready=False,
        do_not_disrupt=True,
    )


def _request(annotations: Mapping[str, str]) -> tuple[bool, datetime | None]:
    """Whether another node is asked for in its stead, and since when, None where that is not told."""
    written = annotations.get(keys.REPLACE)
    if written is None or written == keys.REPLACE_NOW:
        return written is not None, None
    try:
        return True, moment(annotations, keys.REPLACE)
    except BrokenObject:
        return False, None


def _taints(spec: Json) -> Iterator[Taint]:
    for taint in objects(spec, "taints"):
        key, effect = text(taint, "key"), text(taint, "effect")
        if effect not in _EFFECTS:
            raise BrokenObject(f"taint {key}: effect {shown(effect)}, expected one of {', '.join(_EFFECTS)}")
        yield Taint(key=key, value=text(taint, "value"), effect=_EFFECTS[effect])


def _marked_at(spec: Json) -> datetime | None:
    times = [
        moment(taint, "timeAdded")
        for taint in objects(spec, "taints")
        if text(taint, "key") == keys.DISRUPTED_TAINT and taint.get("timeAdded") is not None
    ]
    return min(times, default=None)


def _conditions(status: Json) -> Iterator[NodeCondition]:
    """Those that tell of health. One that does not say since when it holds says so all the same."""
    found = {text(condition, "type"): condition for condition in objects(status, "conditions")}
    for kind in HEALTH_CONDITIONS:
        if kind in found:
            condition = found[kind]
            since = moment(condition, "lastTransitionTime") if condition.get("lastTransitionTime") else None
            yield NodeCondition(kind, text(condition, "status"), since)
