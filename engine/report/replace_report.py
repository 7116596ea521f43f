"""What came of asking for one node's replacement, for programs."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from engine.model.canonical import to_plain
from engine.report.explain_report import NodeExplanation
from engine.report.explain_report_json import node_plain

# A field that changes its meaning or goes makes a new version; a new field does not.
REPLACE_SCHEMA = "nodewright.dev/replace/v1"


def replace_json(
    environment: str,
    node: str,
    claim: str,
    *,
    asked_at: datetime | None,
    was_asked: bool,
    explained: NodeExplanation | None,
) -> str:
    """``is_asked`` is how it stands now: false once it is taken back. ``was_asked``: it was asked for before.

    ``asked_at`` is null where the request says no time, and ``explained`` is what a pass would do about the node now,
    as ``explain node`` has it; both are null where the request is taken back.
    """
    report: dict[str, Any] = {
        "schema": REPLACE_SCHEMA,
        "environment": environment,
        "node": node,
        "claim": claim,
        "is_asked": explained is not None,
        "was_asked": was_asked,
        "asked_at": to_plain(asked_at),
        "explained": node_plain(explained) if explained is not None else None,
    }
    return json.dumps(report, indent=2, ensure_ascii=False)
