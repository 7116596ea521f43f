"""A change of policy for programs. ``…usd_per_hour`` keys hold dollars as text; a side is ``base`` or ``head``."""

from __future__ import annotations

import json
from typing import Any

from engine.model.canonical import to_plain
from engine.model.diagnostic import Diagnostic
from engine.report.diff_report import Both, EnvironmentDifference, MomentDifference, PolicyDifference
from engine.report.diff_report_words import moment_sentence, verdict_sentence

# A field that changes its meaning or goes makes a new version; a new field does not.
DIFF_SCHEMA = "nodewright.dev/diff/v1"


def diff_json(difference: PolicyDifference) -> str:
    """Everything, with the sentences that a person is shown."""
    report = {
        "schema": DIFF_SCHEMA,
        "base": difference.sides.base,
        "head": difference.sides.head,
        "summary": verdict_sentence(difference),
        "has_effect": difference.has_effect,
        "is_invalid": difference.is_invalid,
        "more_usd_per_hour": to_plain(difference.more_usd_per_hour),
        "more_removals": difference.more_removals,
        "over": list(difference.over),
        "environments": [_environment(each) for each in difference.environments],
        "findings": [{"is_new": each.is_new, "finding": _finding(each.finding)} for each in difference.findings],
    }
    return json.dumps(report, indent=2, ensure_ascii=False)


def _environment(environment: EnvironmentDifference) -> dict[str, Any]:
    return {
        "name": environment.name,
        "change": environment.change.value if environment.change is not None else None,
        "has_effect": environment.has_effect,
        "invalid": _findings(environment.invalid),
        "definitions": to_plain(environment.definitions),
        "limits": to_plain(environment.limits),
        "calendar": to_plain(environment.calendar),
        "notes": list(environment.notes),
        "moments": [_moment(each) for each in environment.moments],
    }


def _moment(moment: MomentDifference) -> dict[str, Any]:
    classes = [{**to_plain(each), "pods": each.pods} for each in moment.classes]
    blocked = [{**to_plain(each), "pods": each.pods} for each in moment.blocked]
    counts = moment.pods
    return {
        **to_plain(moment),
        "pods": counts.pods,
        "waiting": counts.waiting,
        "daemon_pods": counts.daemons,
        "other_pods": counts.others,
        "summary": moment_sentence(moment),
        "has_effect": moment.has_effect,
        "more_usd_per_hour": to_plain(moment.more_usd_per_hour),
        "more_removals": moment.more_removals,
        "more_gpus": moment.more_gpus,
        "classes": classes,
        "blocked": blocked,
    }


def _findings(both: Both[tuple[Diagnostic, ...]]) -> dict[str, Any]:
    return {"base": [_finding(each) for each in both.base], "head": [_finding(each) for each in both.head]}


def _finding(finding: Diagnostic) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "rule": finding.rule,
        "message": finding.message,
        "hint": finding.hint,
        "file": finding.position.file,
        "line": finding.position.line,
        "column": finding.position.column,
    }
