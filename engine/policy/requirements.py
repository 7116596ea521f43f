"""A pool's requirements and node labels: what Karpenter accepts of them, and what this engine can keep."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from engine.model import labels
from engine.model.constraint import Operator, Requirement
from engine.policy.findings import ObjectFindings, closest, did_you_mean
from engine.policy.located import Path, find
from engine.policy.node_pool_schema import RequirementPart

REQUIREMENTS: Path = ("spec", "template", "spec", "requirements")
LABELS: Path = ("spec", "template", "metadata", "labels")
_MAX_REQUIREMENTS, _MAX_LABELS = 100, 100
# Karpenter reads a bound as an integer of 64 bits.
_LARGEST_BOUND = 2**63 - 1
_BOUNDS = (Operator.GT, Operator.LT, Operator.GTE, Operator.LTE)
_CAPACITY_TYPES = (labels.ON_DEMAND, labels.SPOT, labels.RESERVED)
_CLOUD_DOMAIN = "karpenter.k8s.aws"
# Karpenter labels nodes with these too; no type of our catalog tells them, so nothing could ever match.
_NOT_IMPLEMENTED = {
    f"{_CLOUD_DOMAIN}/{name}"
    for name in (
        "instance-tenancy",
        "capacity-reservation-type",
        "capacity-reservation-id",
        "capacity-reservation-interruptible",
        "ec2nodeclass",
        "instance-encryption-in-transit-supported",
        "nitro-sandbox",
        "instance-ebs-bandwidth",
        "instance-cpu-sustained-clock-speed-mhz",
        "instance-capability-flex",
        "placement-group-id",
        "placement-group-partition",
    )
} - labels.WELL_KNOWN | {"node.kubernetes.io/windows-build"}
# The kubelet sets labels of these domains on its own node only where Kubernetes' NodeRestriction lets it.
_KUBELET_MAY = ("kubelet.kubernetes.io", "node.kubernetes.io")


@frozen
class WrittenRequirement:
    """A requirement, and where it stands."""

    path: Path
    requirement: Requirement


def checked_requirements(parts: Sequence[RequirementPart], findings: ObjectFindings) -> list[WrittenRequirement]:
    """The requirements as values, those on keys that may not be set left out; what is wrong goes to ``findings``."""
    if len(parts) > _MAX_REQUIREMENTS:
        message = f"{len(parts)} requirements; Karpenter takes {_MAX_REQUIREMENTS} at most"
        findings.error(REQUIREMENTS, "too-many", message)
    checked = []
    for index, part in enumerate(parts):
        path = (*REQUIREMENTS, index)
        if _key_is_allowed(part.key, (*path, "key"), findings):
            _check_values(part, path, findings)
            requirement = Requirement(part.key, part.operator, _meant_values(part), part.min_values)
            checked.append(WrittenRequirement(path, requirement))
    return checked


def _meant_values(part: RequirementPart) -> tuple[str, ...]:
    return () if part.operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) else tuple(part.values)


def _key_is_allowed(key: str, path: Path, findings: ObjectFindings) -> bool:
    # Karpenter's rule looks at the end of what stands before the first slash, or of the whole key.
    domain = key.partition("/")[0]
    if key in labels.WELL_KNOWN and key != labels.NODE_POOL:
        return True
    if key in _NOT_IMPLEMENTED:
        message = f"Karpenter knows the label {key}; Nodewright does not implement it yet"
        findings.error(path, "not-implemented", message, "remove the requirement or say it by instance family or size")
    elif key in (labels.NODE_POOL, labels.HOSTNAME) or domain.endswith("karpenter.sh"):
        findings.error(path, "restricted-label", f"a pool may not set {key}", _hint_for_key(key))
    elif domain.endswith(_CLOUD_DOMAIN):
        findings.error(path, "unknown-label", f"{key} is no label of an instance type", _hint_for_key(key))
    else:
        return True
    return False


def _hint_for_key(key: str) -> str:
    match = closest(key, labels.WELL_KNOWN - {labels.NODE_POOL})
    return f"did you mean {match}?" if match else ""


def _check_values(part: RequirementPart, path: Path, findings: ObjectFindings) -> None:
    count, operator = len(part.values), part.operator
    at = (*path, "values")
    if find(findings.root, at) is None:
        at = path
    if findings.lacks_part(path):
        return
    if operator is Operator.IN and count == 0:
        findings.error(at, "missing-values", f"{part.key} In needs a value at least", "name the values, or use Exists")
    elif operator is Operator.NOT_IN and count == 0:
        findings.warning(at, "no-effect", f"{part.key} NotIn without values excludes nothing", "name the values")
    elif operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and count:
        message = f"{part.key} {operator.value} takes no values; these are passed over"
        findings.warning(at, "no-effect", message, "remove them, or use In or NotIn")
    elif operator in _BOUNDS and not (count == 1 and _is_bound(part.values[0])):
        message = f"{part.key} {operator.value} needs exactly one whole number, zero or more"
        findings.error(at, "bad-bound", message, 'such as values: ["4"]')
    if part.min_values is not None and operator is Operator.IN and count < part.min_values:
        message = f"{part.key} asks for {part.min_values} different values (minValues) and names {count}"
        findings.error((*path, "minValues"), "bad-min-values", message, "name more values, or lower minValues")
    if part.key == labels.CAPACITY_TYPE and operator in (Operator.IN, Operator.NOT_IN):
        _check_capacity_types(part, at, findings)


def _is_bound(text: str) -> bool:
    return bool(re.fullmatch("[0-9]{1,63}", text)) and int(text) <= _LARGEST_BOUND


def _check_capacity_types(part: RequirementPart, path: Path, findings: ObjectFindings) -> None:
    unknown = [value for value in part.values if value not in _CAPACITY_TYPES]
    for value in unknown:
        at = (*path, part.values.index(value))
        message = f"{value!r} is no capacity type"
        hint = did_you_mean(value, _CAPACITY_TYPES)
        if len(unknown) == len(part.values):
            findings.error(at, "unknown-value", message, hint)
        else:
            findings.warning(at, "unknown-value", f"{message}; it is passed over", hint)


def split_labels(
    written: dict[str, str], requirements: Sequence[WrittenRequirement], findings: ObjectFindings
) -> tuple[dict[str, str], tuple[Requirement, ...]]:
    """Node labels and requirements as the engine keeps them apart.

    A label that the cloud decides (zone, capacity type, …) is a requirement, as in Karpenter; a requirement of exactly
    one value on a label that nobody else decides is a label of the node. What leaves such a label open stays a
    requirement: each launch chooses a value, the one that its pods ask for.
    """
    if len(written) > _MAX_LABELS:
        findings.error(LABELS, "too-many", f"{len(written)} labels; Karpenter takes {_MAX_LABELS} at most")
    node_labels: dict[str, str] = {}
    demanded: list[Requirement] = []
    for key, value in written.items():
        if not _label_is_allowed(key, (*LABELS, key), findings):
            continue
        if key in labels.WELL_KNOWN:
            demanded.append(Requirement(key, Operator.IN, (value,)))
        else:
            node_labels[key] = value
    own = [each for each in requirements if each.requirement.key not in labels.WELL_KNOWN]
    refused: set[str] = set()
    for each in own:
        key = each.requirement.key
        if key in node_labels or key in refused or not _fixes_its_label(each.requirement):
            continue
        if _label_is_allowed(key, (*each.path, "key"), findings):
            node_labels[key] = each.requirement.values[0]
        else:
            refused.add(key)
    for each in own:
        _check_against_labels(each, node_labels, findings)
    _warn_where_no_value_is_left(own, node_labels, findings)
    settled = refused.union(node_labels)
    demanded += [each.requirement for each in requirements if each.requirement.key not in settled]
    return node_labels, tuple(demanded)


def _fixes_its_label(requirement: Requirement) -> bool:
    return requirement.operator is Operator.IN and len(requirement.values) == 1


def _check_against_labels(each: WrittenRequirement, node_labels: Mapping[str, str], findings: ObjectFindings) -> None:
    key = each.requirement.key
    if key in node_labels and not each.requirement.admits(node_labels[key]):
        message = f"the pool's own label {key}={node_labels[key]} does not meet its requirement {each.requirement}"
        findings.error(each.path, "contradiction", message, "remove one of them")


def _warn_where_no_value_is_left(
    own: Sequence[WrittenRequirement], node_labels: Mapping[str, str], findings: ObjectFindings
) -> None:
    """Of labels that are left open: several requirements on one that no value of its lists meets."""
    told: set[str] = set()
    for each in own:
        key, values = each.requirement.key, each.requirement.values
        others = [other.requirement for other in own if other.requirement.key == key]
        if each.requirement.operator is not Operator.IN or key in node_labels or key in told or not values:
            continue
        if not any(all(other.admits(value) for other in others) for value in values):
            told.add(key)
            message = f"no value of the label {key} meets all of the pool's requirements on it: it never launches"
            findings.warning(each.path, "nothing-matches", message, "loosen one of them")


def _label_is_allowed(key: str, path: Path, findings: ObjectFindings) -> bool:
    if key in labels.WELL_KNOWN and key != labels.NODE_POOL:
        return True
    if not _key_is_allowed(key, path, findings):
        return False
    domain = key.rpartition("/")[0]
    reserved = any(domain == root or domain.endswith("." + root) for root in ("kubernetes.io", "k8s.io"))
    if reserved and not any(domain == root or domain.endswith("." + root) for root in _KUBELET_MAY):
        message = f"a kubelet may not set the label {key} on its own node, so the node would come without it"
        findings.error(path, "restricted-label", message, "use a label outside kubernetes.io and k8s.io")
        return False
    return True
