"""Explanations for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from engine.disruption.explained import BudgetExplanation
from engine.model.canonical import to_plain
from engine.report.budget_report import budgets_plain
from engine.report.explain_report import Explanation, NodeExplanation, PodExplanation

# A field that changes its meaning or goes makes a new version; a new field does not.
EXPLAIN_SCHEMA = "nodewright.dev/explain/v1"


def explanation_json(explanation: Explanation) -> str:
    """``kind`` is pod, node or rule; the rest is the explanation as it is."""
    kind = "pod" if isinstance(explanation, PodExplanation) else "rule"
    kind = "node" if isinstance(explanation, NodeExplanation) else kind
    plain: dict[str, Any] = to_plain(explanation)
    if kind == "rule":
        plain["rule_kind"] = plain.pop("kind")
    if not isinstance(explanation, PodExplanation):
        plain["budgets"] = budgets_plain(explanation.budgets)
    return _written(kind, plain)


def node_plain(explanation: NodeExplanation) -> dict[str, Any]:
    """What is told of one node, for a report that has it as a part."""
    return {**to_plain(explanation), "budgets": budgets_plain(explanation.budgets)}


def budgets_json(explanations: Iterable[BudgetExplanation]) -> str:
    """``kind`` is budget."""
    return _written("budget", {"budgets": budgets_plain(explanations)})


def _written(kind: str, plain: dict[str, Any]) -> str:
    return json.dumps({"schema": EXPLAIN_SCHEMA, "kind": kind, **plain}, indent=2, ensure_ascii=False)
