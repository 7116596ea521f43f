"""Policy files to a Policy, with every finding of every file told at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from attrs import Attribute, asdict, evolve

from engine.model.canonical import digest
from engine.model.diagnostic import Position
from engine.model.environment import Environment
from engine.model.policy import NodeClass, NodePool, Policy
from engine.policy.cel.engines import DEFAULT
from engine.policy.findings import Findings, ObjectFindings, closest, did_you_mean
from engine.policy.in_environment import check_in_environment
from engine.policy.located import Fields, Items, Scalar, Source, find, text_at
from engine.policy.node_class import ClassRead, kubelet_value, read_node_class
from engine.policy.node_class_schema import KubeletPart
from engine.policy.node_pool import PoolRead, read_node_pool
from engine.policy.pool_spellings import V1, V1BETA1
from engine.policy.rules.compiled import compile_rules
from engine.policy.rules.gather import OUR_KINDS, RuleFiles
from engine.policy.schema import validated
from engine.policy.yaml_reader import read_documents

_POOL_GROUP, _CLASS_GROUP = "karpenter.sh", "karpenter.k8s.aws"
_OUR_GROUP, _OUR_VERSION = "nodewright.dev", "v1alpha1"
_POOL, _CLASS = "NodePool", "EC2NodeClass"
_GROUP_OF = {_POOL: _POOL_GROUP, _CLASS: _CLASS_GROUP}
_VERSIONS = (V1, V1BETA1)
_OLDER_KINDS = {"Provisioner": _POOL, "AWSNodeTemplate": _CLASS}
# Kinds of Karpenter that are no policy here, and what does in their place.
_OTHER_KINDS: Mapping[str, str] = {
    "NodeClaim": "take the object out of the policy files",
    "NodeOverlay": "take it out: prices are set by pricing.overrides and pricing.discounts of the environment",
    "CapacityBuffer": "take the object out of the policy files",
    "Machine": "take the object out of the policy files",
}
_NOWHERE = Position("policies", 1, 1)
T = TypeVar("T", NodePool, NodeClass)


def load_policy(files: Sequence[tuple[str, bytes]], environment: Environment | None = None) -> Policy:
    """The policy that the files, ``(display path, content)``, hold together.

    ``environment`` gives the node class of pools that name none. Raises InvalidInput with all findings of all files
    when one of them is an error; the warnings of a good bundle are in ``Policy.warnings``.
    """
    findings = Findings()
    pools: list[PoolRead] = []
    classes: list[ClassRead] = []
    unread: list[str] = []
    unread_pools: list[str] = []
    rule_files = RuleFiles(findings)
    for item in _objects(files, findings):
        version = _version_of(item)
        if version is None:
            continue
        kind, name = text_at(item.root, ("kind",)) or "", text_at(item.root, ("metadata", "name")) or ""
        if kind in OUR_KINDS:
            rule_files.add(item, kind)
        elif kind == _POOL:
            pool = read_node_pool(item, version, environment)
            pools += [pool] if pool is not None else []
            unread_pools += [name] if pool is None else []
        elif kind == _CLASS:
            node_class = read_node_class(item, version)
            classes += [node_class] if node_class is not None else []
            unread += [name] if node_class is None else []
    _check_names([(read.pool, read.findings) for read in pools], _POOL)
    _check_names([(read.node_class, read.findings) for read in classes], _CLASS)
    _check_class_refs(pools, classes, unread)
    node_classes = _with_kubelets(pools, classes)
    if not pools and not findings.has_errors:
        findings.warning(_NOWHERE, "no-node-pools", "these files hold no NodePool, so nothing can be launched")
    if environment is not None:
        check_in_environment([read.pool for read in pools], node_classes, environment, findings)
    policy = Policy(
        node_pools=tuple(sorted((read.pool for read in pools), key=lambda pool: pool.name)),
        node_classes=tuple(sorted(node_classes, key=lambda node_class: node_class.name)),
        rules=rule_files.rules([read.pool for read in pools], unread_pools, environment),
        windows=rule_files.windows(),
        cel_engine=environment.cel_engine if environment is not None else DEFAULT,
    )
    sound = [rule for rule in policy.rules if rule_files.is_sound(rule.name)]
    compile_rules(sound, rule_files.window_names, policy.cel_engine, findings)
    findings.raise_errors()
    return evolve(policy, digest=digest(_meaning(policy)), warnings=findings.in_file_order)


def _meaning(policy: Policy) -> tuple[object, ...]:
    """What the policy says, without where it says so."""
    return (
        tuple(evolve(pool, position=_NOWHERE, field_positions={}) for pool in policy.node_pools),
        tuple(evolve(node_class, position=_NOWHERE) for node_class in policy.node_classes),
        tuple((rule.kind, asdict(rule, filter=_has_meaning)) for rule in policy.rules),
        tuple(asdict(window, filter=_has_meaning) for window in policy.windows),
        policy.cel_engine,
    )


def _has_meaning(attribute: Attribute[Any], _value: object) -> bool:
    return bool(attribute.eq)


def _objects(files: Sequence[tuple[str, bytes]], findings: Findings) -> Iterator[ObjectFindings]:
    """Every object of every file, those inside a List included."""
    for file, content in files:
        for document in read_documents(file, content, findings):
            if document.root is None:
                continue
            if isinstance(document.root, Fields):
                yield from _unpacked(document.source, document.root, findings)
                continue
            message = "a policy document is a map with apiVersion, kind, metadata and spec"
            findings.error(document.source.position(document.root.place), "wrong-type", message)


def _unpacked(source: Source, root: Fields, findings: Findings) -> Iterator[ObjectFindings]:
    kind, items = text_at(root, ("kind",)) or "", find(root, ("items",))
    if not (kind.endswith("List") and isinstance(items, Items)):
        yield ObjectFindings(findings, source, root)
        return
    for item in items.items:
        if isinstance(item, Fields):
            # The API server leaves apiVersion and kind out of the items of a typed list.
            for key in ("apiVersion", "kind"):
                if key not in item.fields and kind != "List" and key in root.fields:
                    item.put(key, root.fields[key], root.key_places[key])
            if kind != "List" and text_at(item, ("kind",)) == kind:
                _retitle(item, kind.removesuffix("List"))
            yield ObjectFindings(findings, source, item)
        else:
            findings.error(source.position(item.place), "wrong-type", "an item of a List is an object, a map")


def _retitle(item: Fields, kind: str) -> None:
    item.fields["kind"] = Scalar(item.key_places["kind"], kind, kind)


def _version_of(item: ObjectFindings) -> str | None:
    """The version of a kind that is policy; None, with a finding, for everything else."""
    api_version, kind = text_at(item.root, ("apiVersion",)), text_at(item.root, ("kind",))
    if api_version is None or kind is None:
        missing = "apiVersion" if api_version is None else "kind"
        message = f"{missing} is missing, or no string: nothing says what this object is"
        item.error((missing,), "missing-field", message, "a NodePool begins with apiVersion: karpenter.sh/v1")
        return None
    group, _, version = api_version.rpartition("/")
    if kind in _GROUP_OF and (group == _GROUP_OF[kind] or group in _GROUP_OF.values()):
        return _known_version(kind, group, version, item)
    if group in (_POOL_GROUP, _CLASS_GROUP):
        _refuse_kind(kind, item)
    elif group == _OUR_GROUP or kind in OUR_KINDS:
        return _our_version(kind, group, version, item)
    elif kind in _GROUP_OF:
        message = f"{kind} is of {_GROUP_OF[kind]}/v1, not of {api_version[:60]}"
        item.error(("apiVersion",), "wrong-api-version", message, f"write apiVersion: {_GROUP_OF[kind]}/v1")
    else:
        message = f"a {kind[:60]} is no policy; it is passed over"
        item.warning(("kind",), "not-a-policy", message, "keep it in another folder")
    return None


def _our_version(kind: str, group: str, version: str, item: ObjectFindings) -> str | None:
    ours = f"{_OUR_GROUP}/{_OUR_VERSION}"
    if kind not in OUR_KINDS:
        message = f"{kind[:60]!r} is no kind of {_OUR_GROUP}"
        item.error(("kind",), "unknown-kind", message, did_you_mean(kind, OUR_KINDS))
    elif (group, version) != (_OUR_GROUP, _OUR_VERSION):
        message = f"{kind} is of {ours}, not of {group[:60]}/{version[:40]}"
        item.error(("apiVersion",), "wrong-api-version", message, f"write apiVersion: {ours}")
    else:
        return version
    return None


def _known_version(kind: str, group: str, version: str, item: ObjectFindings) -> str | None:
    right = _GROUP_OF[kind]
    if group == right and version in _VERSIONS:
        return version
    if group == right:
        message = f"{group}/{version[:40]} is no version that is read"
        hint = did_you_mean(version, _VERSIONS)
    else:
        message, hint = f"{kind} is of {right}/v1, not of {group}", f"write apiVersion: {right}/v1"
    item.error(("apiVersion",), "wrong-api-version", message, hint)
    return None


def _refuse_kind(kind: str, item: ObjectFindings) -> None:
    if kind in _OLDER_KINDS:
        modern = _OLDER_KINDS[kind]
        message = f"{kind} is of Karpenter before v1beta1, which is not implemented"
        item.error(("kind",), "not-implemented", message, f"rewrite it as {modern}")
    elif kind in _OTHER_KINDS:
        message = f"Karpenter's {kind} is not implemented as policy"
        item.error(("kind",), "not-implemented", message, _OTHER_KINDS[kind])
    else:
        match = closest(kind, _GROUP_OF)
        hint = f"did you mean {match}?" if match else "the kinds are NodePool and EC2NodeClass"
        item.error(("kind",), "unknown-kind", f"{kind[:60]!r} is no kind of Karpenter", hint)


def _check_names(read: Sequence[tuple[NodePool | NodeClass, ObjectFindings]], kind: str) -> None:
    first: dict[str, Position] = {}
    for value, findings in read:
        if value.name in first:
            earlier = first[value.name]
            message = f"the {kind} {value.name} is here twice; the first is in {earlier.file} line {earlier.line}"
            findings.findings.error(value.position, "duplicate-name", message, "rename or remove one of them")
        first.setdefault(value.name, value.position)


def _check_class_refs(pools: Sequence[PoolRead], classes: Sequence[ClassRead], unread: Sequence[str]) -> None:
    """A class that is there and could not be read has had its own errors told, and is not called missing too."""
    known = [read.node_class.name for read in classes]
    for read in pools:
        name = read.pool.node_class
        if name and name not in known and name not in unread:
            message = f"the pool {read.pool.name} wants the node class {name}, which no file defines"
            hint = did_you_mean(name, known) or "add an EC2NodeClass of that name"
            read.findings.findings.error(read.class_position, "unknown-node-class", message, hint)


def _with_kubelets(pools: Sequence[PoolRead], classes: Sequence[ClassRead]) -> list[NodeClass]:
    """The classes with v1beta1's kubelet settings of their pools, which must agree: a class has one kubelet."""
    settled: list[NodeClass] = []
    for read in classes:
        node_class, name = read.node_class, read.node_class.name
        users = [pool for pool in pools if pool.pool.node_class == name]
        parts = {pool.pool.name: _kubelet_of(pool) for pool in users}
        given = [part for part in parts.values() if part is not None]
        if given and (read.sets_kubelet or any(part != given[0] for part in parts.values())):
            message = f"pools with different kubelet settings share the node class {name}: {', '.join(sorted(parts))}"
            hint = "make a node class for each, with spec.kubelet"
            read.findings.error(("metadata", "name"), "contradiction", message, hint)
        settled.append(evolve(node_class, kubelet=kubelet_value(given[0])) if given else node_class)
    return settled


def _kubelet_of(read: PoolRead) -> KubeletPart | None:
    if read.kubelet is None:
        return None
    findings = ObjectFindings(read.findings.findings, read.findings.source, read.kubelet)
    return validated(KubeletPart, findings)
