"""Autoscalers and workloads from manifest files, each with the place where a person wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from engine.model.diagnostic import Position
from engine.model.fault import Fault
from engine.model.pod import Placing
from engine.model.workload import Autoscaler
from engine.observe.json_fields import BrokenObject, Json, mapping
from engine.observe.json_fields import objects as listed
from engine.observe.pod_decoder import decode_daemon_set, decode_pod
from engine.observe.workload_decoder import decode_pod_autoscaler, decode_scaled_object, key_of
from engine.policy import located
from engine.policy.findings import Findings, ObjectFindings
from engine.policy.located import Fields, Items, Located, find, text_at, walk
from engine.policy.yaml_reader import read_documents
from engine.reconcile.scale_objects import ScaleObjects, in_namespace

_GROUPS = {
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "Job": "batch",
    "HorizontalPodAutoscaler": "autoscaling",
    "ScaledObject": "keda.sh",
}
_AUTOSCALERS: dict[str, tuple[Callable[[Json], Autoscaler], located.Path]] = {
    "HorizontalPodAutoscaler": (decode_pod_autoscaler, ("spec", "maxReplicas")),
    "ScaledObject": (decode_scaled_object, ("spec", "maxReplicaCount")),
}
_LONG_AGO = "1970-01-01T00:00:00Z"


def manifest_files(paths: Sequence[Path]) -> tuple[tuple[str, bytes], ...]:
    """(path, content) of each file named and of each YAML file below a folder named, in path order. Raises Fault."""
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found.update(file for pattern in ("*.yaml", "*.yml") for file in path.rglob(pattern) if file.is_file())
        elif path.is_file():
            found.add(path)
        else:
            raise Fault(f"{path} is no file and no folder", "name manifests, or folders that hold them")
    return tuple((str(file), _content(file)) for file in sorted(found))


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Fault(f"{file} cannot be read: {error.strerror}", "check that the file is readable") from None


def add_manifests(objects: ScaleObjects, files: Sequence[tuple[str, bytes]]) -> None:
    """What the files say of scaling. Objects of other kinds are passed over; what cannot be read becomes an error."""
    findings = Findings()
    for file, content in files:
        for document in read_documents(file, content, findings):
            if document.root is not None:
                for item in _objects(ObjectFindings(findings, document.source, document.root)):
                    _add(objects, item)
    objects.findings += findings.in_file_order


def _objects(item: ObjectFindings) -> Iterator[ObjectFindings]:
    """The object itself, or those inside a List."""
    items = find(item.root, ("items",))
    if (text_at(item.root, ("kind",)) or "").endswith("List") and isinstance(items, Items):
        for part in items.items:
            yield ObjectFindings(item.findings, item.source, part)
    else:
        yield item


def _add(objects: ScaleObjects, item: ObjectFindings) -> None:
    kind, api_version = text_at(item.root, ("kind",)), text_at(item.root, ("apiVersion",))
    if kind is None or api_version is None:
        message = "this is no manifest: a Kubernetes object is a map with apiVersion and kind"
        item.error((), "not-a-manifest", message, "keep other files out of the folders named in --workloads")
    elif _GROUPS.get(kind) == api_version.rpartition("/")[0]:
        try:
            _decode(objects, kind, item)
        except BrokenObject as broken:
            message = f"this {kind} cannot be read: {broken}"
            item.findings.error(_place_of(str(broken), item), "unreadable-object", message)


def _decode(objects: ScaleObjects, kind: str, item: ObjectFindings) -> None:
    raw = _json(item.root)
    if kind == "DaemonSet":
        daemon_set = decode_daemon_set(raw)
        objects.daemon_sets[daemon_set.name] = daemon_set
    elif kind in _AUTOSCALERS:
        decode, ceiling = _AUTOSCALERS[kind]
        autoscaler = decode(raw)
        objects.add_autoscaler(evolve(autoscaler, key=in_namespace(autoscaler.key)), item.at(ceiling))
    else:
        objects.pods[kind, in_namespace(key_of(raw))] = _template(raw)


def _template(raw: Json) -> Placing:
    """What a workload's pods will ask of a node. Raises BrokenObject."""
    template = mapping(mapping(raw, "spec"), "template")
    spec = mapping(template, "spec")
    if not listed(spec, "containers"):
        raise BrokenObject("spec.template.spec.containers is empty, expected at least one container")
    key = in_namespace(key_of(raw))
    metadata = {"name": key.name, "namespace": key.namespace, "creationTimestamp": _LONG_AGO}
    return decode_pod({"metadata": metadata, "spec": spec}).placing


def _json(part: Located) -> Any:
    """What Kubernetes would be sent."""
    if isinstance(part, Fields):
        return {key: _json(value) for key, value in part.fields.items()}
    if isinstance(part, Items):
        return [_json(item) for item in part.items]
    return part.value


def _place_of(message: str, item: ObjectFindings) -> Position:
    """Where the field stands that a message begins with, ``minReplicas is …``; else the object's name."""
    path = message.split()[0].partition("[")[0].split(".")
    if len(path) > 1:
        return item.at(tuple(path))
    for part, _ in walk(item.root):
        if isinstance(part, Fields) and path[0] in part.fields:
            return item.source.position(part.fields[path[0]].place)
    return item.at(("metadata", "name"))
