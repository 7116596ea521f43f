"""Our own annotations where they do nothing: on nodes' template, on an EC2NodeClass, or with nothing to be about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model import labels
from engine.policy.findings import ObjectFindings, closest
from engine.policy.located import Path
from engine.policy.node_pool_schema import RequirementPart

OURS = "nodewright.dev/"
_ANNOTATIONS: Path = ("metadata", "annotations")
_TEMPLATE_ANNOTATIONS: Path = ("spec", "template", "metadata", "annotations")
_NO_EFFECT = "no-effect"
_ELSEWHERE = {
    labels.MAY_START_NODES: "it belongs on a PriorityClass",
    labels.REPLACE: "it belongs on a Node, and nodewright replace writes it there",
}
# What Karpenter's own fields say, and people look for among our annotations.
_FIELDS = (
    "spec.weight",
    "spec.limits",
    "spec.replicas",
    "spec.disruption.budgets",
    "spec.disruption.consolidateAfter",
    "spec.disruption.consolidationPolicy",
    "spec.template.spec.expireAfter",
    "spec.template.spec.terminationGracePeriod",
)
_ON_POOLS = "it belongs under the NodePool's own metadata.annotations"


def warn_of_template_annotations(annotations: Iterable[str], findings: ObjectFindings) -> None:
    """Those of a NodePool's template go to its nodes, where Nodewright reads none."""
    for key in annotations:
        if key.startswith(OURS):
            message = f"{key} does nothing on nodes, and a template's annotations go to them"
            hint = "it belongs on a PriorityClass" if key == labels.MAY_START_NODES else _ON_POOLS
            findings.warning_at_key((*_TEMPLATE_ANNOTATIONS, key), _NO_EFFECT, message, hint)


def warn_of_class_annotations(annotations: Iterable[str], findings: ObjectFindings) -> None:
    """Nodewright reads none of an EC2NodeClass."""
    for key in annotations:
        if key.startswith(OURS):
            message = f"{key} does nothing on an EC2NodeClass"
            findings.warning_at_key((*_ANNOTATIONS, key), _NO_EFFECT, message, "it belongs on a NodePool, or nowhere")


def warn_of_idle_annotations(
    annotations: Mapping[str, str], requirements: Iterable[RequirementPart], findings: ObjectFindings
) -> None:
    """Lists that are empty, and a policy for minValues where there are none."""
    for key in (labels.EXPECTED_LABELS, labels.HEADROOM):
        if not annotations.get(key, key).strip(" ,"):
            findings.warning((*_ANNOTATIONS, key), _NO_EFFECT, f"{key} is empty", "remove it, or say what it is about")
    if labels.MIN_VALUES_POLICY in annotations and all(each.min_values is None for each in requirements):
        message = f"{labels.MIN_VALUES_POLICY} is about minValues, and no requirement of the pool has any"
        hint = "remove it, or give a requirement minValues"
        findings.warning((*_ANNOTATIONS, labels.MIN_VALUES_POLICY), _NO_EFFECT, message, hint)


def refuse_unknown_annotations(annotations: Iterable[str], known: Iterable[str], findings: ObjectFindings) -> None:
    """Those of a NodePool that look like ours and are none of ``known``. A name of ours below another's domain is
    another's annotation, and told where the domain is nearly ours."""
    names = {key.removeprefix(OURS) for key in known}
    for key in annotations:
        domain, _, name = key.rpartition("/")
        if key in _ELSEWHERE:
            message = f"{key} does nothing on a NodePool"
            findings.error_at_key((*_ANNOTATIONS, key), "unknown-annotation", message, _ELSEWHERE[key])
        elif f"{domain}/" == OURS and name not in names:
            message = f"{key} is no annotation that Nodewright knows"
            findings.error_at_key((*_ANNOTATIONS, key), "unknown-annotation", message, _meant(name, names))
        elif f"{domain}/" != OURS and name in names and closest(domain, (OURS.removesuffix("/"),)):
            message = f"{key} does nothing: the annotations that Nodewright reads begin with {OURS}"
            hint = f"did you mean {OURS}{name}?"
            findings.warning_at_key((*_ANNOTATIONS, key), "unknown-annotation", message, hint)


def _meant(name: str, names: Iterable[str]) -> str:
    """The field of the NodePool that says what the name does, or the annotation that it is nearly."""
    plain = name.replace("-", "").lower()
    for field in _FIELDS:
        if field.rpartition(".")[2].lower() == plain:
            return f"it is a field of the NodePool: {field}"
    found = closest(name, names)
    return f"did you mean {OURS}{found}?" if found is not None else ""
