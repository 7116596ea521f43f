"""Whether a NodePool insists on its minValues: our annotation ``nodewright.dev/min-values-policy``.

Karpenter has it as one option for all pools, with the same two words (``--min-values-policy``).
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.model import labels
from engine.policy.findings import ObjectFindings, did_you_mean

_STRICT, _BEST_EFFORT = "Strict", "BestEffort"


def read_min_values_best_effort(annotations: Mapping[str, str], findings: ObjectFindings) -> bool:
    """Whether fewer values will do where pods leave no more; what is neither word goes to ``findings``."""
    text = annotations.get(labels.MIN_VALUES_POLICY, _STRICT)
    if text not in (_STRICT, _BEST_EFFORT):
        message = f"{labels.MIN_VALUES_POLICY} is {text[:40]!r}; it says whether minValues may be relaxed for a pod"
        hint = did_you_mean(text, (_STRICT, _BEST_EFFORT))
        findings.error(("metadata", "annotations", labels.MIN_VALUES_POLICY), "bad-annotation", message, hint)
    return text == _BEST_EFFORT
