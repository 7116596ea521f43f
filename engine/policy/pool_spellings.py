"""Older and odd spellings in NodePools, made modern, each with a warning that names both."""

from __future__ import annotations

from collections.abc import Callable

from engine.model import labels
from engine.policy.findings import ObjectFindings
from engine.policy.located import Fields, Items, Located, Path, Scalar, fields_at, find, text_at
from engine.policy.requirements import LABELS, REQUIREMENTS

V1, V1BETA1 = "v1", "v1beta1"
_TEMPLATE_SPEC: Path = ("spec", "template", "spec")
_DISRUPTION: Path = ("spec", "disruption")
_POLICY: Path = (*_DISRUPTION, "consolidationPolicy")
_REF: Path = (*_TEMPLATE_SPEC, "nodeClassRef")
OLD, NOT_KARPENTERS = "old-spelling", "not-karpenters"
# Beside Kubernetes' beta labels, one that people write for Karpenter's capacity type.
_LABEL_ALIASES = {**labels.ALIASES, "karpenter.k8s.aws/instance-capacity-type": labels.CAPACITY_TYPE}


def modernise_node_pool(findings: ObjectFindings, version: str) -> Located | None:
    """Rewrites the tree in place to the shape of karpenter.sh/v1.

    Returns v1beta1's kubelet settings of the pool, which are the node class's in v1, or None.
    """
    if version == V1BETA1:
        message = "apiVersion karpenter.sh/v1beta1 is the older form of karpenter.sh/v1; it is read as such"
        findings.warning(("apiVersion",), "old-api-version", message, "write apiVersion: karpenter.sh/v1")
    _consolidation(findings, version)
    _expiry(findings, version)
    _node_class_ref(findings, version)
    _requirement_keys(findings)
    _label_keys(findings)
    return _kubelet(findings) if version == V1BETA1 else None


def _replace_text(tree: Located, path: Path, text: str) -> None:
    part = find(tree, path)
    if isinstance(part, Scalar):
        part.text = part.value = text


def _consolidation(findings: ObjectFindings, version: str) -> None:
    policy = text_at(findings.root, _POLICY)
    if version == V1BETA1:
        _beta_consolidation(findings, policy)
    if policy == "WhenUnderutilized":
        message = "consolidationPolicy WhenUnderutilized is the older name of WhenEmptyOrUnderutilized"
        findings.warning(_POLICY, OLD, message, "write WhenEmptyOrUnderutilized")
        _replace_text(findings.root, _POLICY, "WhenEmptyOrUnderutilized")
    elif policy == "Never":
        message = "consolidationPolicy Never is Nodewright's; Karpenter refuses it"
        findings.warning(_POLICY, NOT_KARPENTERS, message, "for Karpenter, write consolidateAfter: Never")
    after = find(findings.root, (*_DISRUPTION, "consolidateAfter"))
    is_absent = after is None or (isinstance(after, Scalar) and after.value is None)
    if version == V1 and fields_at(findings.root, _DISRUPTION) is not None and is_absent:
        message = "spec.disruption without consolidateAfter, which Karpenter requires there; it is read as 0s"
        findings.warning_at_key(_DISRUPTION, NOT_KARPENTERS, message, "add consolidateAfter: 0s")


def _beta_consolidation(findings: ObjectFindings, policy: str | None) -> None:
    after = text_at(findings.root, (*_DISRUPTION, "consolidateAfter"))
    if policy == "WhenEmpty" and after is None:
        message = "v1beta1 wants consolidateAfter with WhenEmpty; without one it is read as 0s, as in v1"
        findings.warning(_POLICY, OLD, message, "add consolidateAfter: 0s")
    elif policy == "WhenUnderutilized" and after not in (None, "Never"):
        message = "v1beta1 refuses consolidateAfter with WhenUnderutilized; it is read as v1 does"
        findings.warning((*_DISRUPTION, "consolidateAfter"), OLD, message, "write apiVersion: karpenter.sh/v1")


def _expiry(findings: ObjectFindings, version: str) -> None:
    disruption, spec = fields_at(findings.root, _DISRUPTION), fields_at(findings.root, _TEMPLATE_SPEC)
    if disruption is None or spec is None or "expireAfter" not in disruption.fields:
        return
    if version == V1:
        message = "spec.disruption.expireAfter is v1beta1's place; in v1 it is spec.template.spec.expireAfter"
        findings.warning_at_key((*_DISRUPTION, "expireAfter"), OLD, message, "move it to spec.template.spec")
    if "expireAfter" in spec.fields:
        message = "expireAfter stands under spec.template.spec too; only one of them can be meant"
        findings.error_at_key((*_DISRUPTION, "expireAfter"), "contradiction", message, "remove this one")
    _move(disruption, "expireAfter", spec, "expireAfter")


def _move(source: Fields, key: str, target: Fields, new_key: str) -> None:
    """Moves a part; where the new key is taken, the part is dropped."""
    taken = source.take(key)
    if taken is not None and new_key not in target.fields:
        target.put(new_key, *taken)


def _node_class_ref(findings: ObjectFindings, version: str) -> None:
    ref = fields_at(findings.root, _REF)
    if ref is None:
        return
    api_version = text_at(findings.root, (*_REF, "apiVersion"))
    if "apiVersion" in ref.fields and api_version is not None:
        group = api_version.partition("/")[0]
        message = f"nodeClassRef.apiVersion is v1beta1's spelling; in v1 it is group: {group}"
        findings.warning_at_key((*_REF, "apiVersion"), OLD, message, f"write group: {group}")
        _replace_text(findings.root, (*_REF, "apiVersion"), group)
        _move(ref, "apiVersion", ref, "group")
    if version == V1BETA1:
        for key, implied in (("group", "karpenter.k8s.aws"), ("kind", "EC2NodeClass")):
            if key not in ref.fields:
                ref.put(key, Scalar(ref.place, implied, implied), ref.place)


def _requirement_keys(findings: ObjectFindings) -> None:
    requirements = find(findings.root, REQUIREMENTS)
    count = len(requirements.items) if isinstance(requirements, Items) else 0
    for index in range(count):
        path = (*REQUIREMENTS, index, "key")
        modern = _LABEL_ALIASES.get(text_at(findings.root, path) or "")
        if modern is not None:
            _warn_of_label(findings.warning, path, text_at(findings.root, path), modern)
            _replace_text(findings.root, path, modern)


def _label_keys(findings: ObjectFindings) -> None:
    node_labels = fields_at(findings.root, LABELS)
    if node_labels is None:
        return
    for key in [key for key in node_labels.fields if key in _LABEL_ALIASES]:
        _warn_of_label(findings.warning_at_key, (*LABELS, key), key, _LABEL_ALIASES[key])
        _move(node_labels, key, node_labels, _LABEL_ALIASES[key])


def _warn_of_label(warn: Callable[..., None], path: Path, old: str | None, modern: str) -> None:
    warn(path, OLD, f"{old} is read as {modern}, which is its name today", f"write {modern}")


def _kubelet(findings: ObjectFindings) -> Located | None:
    spec = fields_at(findings.root, _TEMPLATE_SPEC)
    if spec is None or "kubelet" not in spec.fields:
        return None
    message = "spec.template.spec.kubelet is v1beta1's place; in v1 it is spec.kubelet of the EC2NodeClass"
    findings.warning_at_key((*_TEMPLATE_SPEC, "kubelet"), OLD, message, "move it to the EC2NodeClass")
    taken = spec.take("kubelet")
    return taken[0] if taken else None
