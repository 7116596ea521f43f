"""Our own annotations where they do nothing: on nodes' template, on an EC2NodeClass, or with nothing to be about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model import labels
from engine.policy.findings import ObjectFindings, did_you_mean
from engine.policy.located import Path
from engine.policy.node_pool_schema import RequirementPart

OURS = "nodewright.dev/"
_ANNOTATIONS: Path = ("metadata", "annotations")
_TEMPLATE_ANNOTATIONS: Path = ("spec", "template", "metadata", "annotations")
_NO_EFFECT = "no-effect"
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
    """Those of a NodePool that look like ours and are none of ``known``."""
    for key in annotations:
        if key == labels.MAY_START_NODES:
            message = f"{key} does nothing on a NodePool"
            findings.error_at_key((*_ANNOTATIONS, key), "unknown-annotation", message, "it belongs on a PriorityClass")
        elif key.startswith(OURS) and key not in known:
            message = f"{key} is no annotation that Nodewright knows"
            findings.error_at_key((*_ANNOTATIONS, key), "unknown-annotation", message, did_you_mean(key, known))
