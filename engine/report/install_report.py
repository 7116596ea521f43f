"""What an install would change, and what became of it, for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.text import Text

from engine.model.canonical import to_plain
from engine.model.in_cluster import AddOns, ChangeKind, InstallOutcome, ObjectChange
from engine.report.tables import Screen, heading, indented, table
from engine.report.words import counted

INSTALL_SCHEMA = "nodewright.dev/install/v1"
_WORDS = {
    ChangeKind.CREATE: ("create", "created", "green"),
    ChangeKind.UPDATE: ("change", "changed", "yellow"),
    ChangeKind.REPLACE: ("replace", "replaced", "yellow"),
    ChangeKind.DELETE: ("delete", "deleted", "red"),
}


def render_install(add_ons: AddOns, changes: Sequence[ObjectChange]) -> RenderableType:
    """The objects that would change, in a line each; one line when there are none."""
    where = f"namespace {add_ons.namespace}"
    if not changes:
        return Text(f"In the cluster: nothing to change in {where}", style="green")
    rows = table("", "kind", "name", has_header=False)
    for one in changes:
        word, _, style = _WORDS[one.change]
        rows.add(Text(word, style), one.kind, one.name)
    return Screen(heading(f"In the cluster, {where}"), indented(rows), Text(_sum(changes, tense=0)))


def render_install_outcome(outcome: InstallOutcome) -> RenderableType:
    """Failures in the API server's words, and the sum in a line."""
    lines: list[RenderableType] = []
    if outcome.failures:
        lines.append(heading("Not installed"))
        lines += [indented(Text(failure, "red")) for failure in outcome.failures]
    style = "bold green" if outcome.is_settled else "bold yellow"
    return Screen(*lines, Text(f"In the cluster: {_sum(outcome.changes, tense=1)}", style))


def install_json(add_ons: AddOns, changes: Iterable[ObjectChange], outcome: InstallOutcome | None) -> str:
    """`outcome` null: nothing was applied. `pre_pull` are the images by node pool."""
    return json.dumps(
        {
            "schema": INSTALL_SCHEMA,
            "environment": add_ons.environment,
            "namespace": add_ons.namespace,
            "pre_pull": {one.node_pool: list(one.images) for one in add_ons.pre_pulls},
            "changes": [to_plain(one) for one in changes],
            "outcome": {**to_plain(outcome), "is_settled": outcome.is_settled} if outcome else None,
        },
        indent=2,
    )


def _sum(changes: Iterable[ObjectChange], tense: int) -> str:
    counts = Counter(one.change for one in changes)
    parts = [f"{counted(counts[kind], 'object')} {_said(kind, tense)}" for kind in ChangeKind if counts[kind]]
    return ", ".join(parts) or "nothing to change"


def _said(kind: ChangeKind, tense: int) -> str:
    return f"to {_WORDS[kind][0]}" if tense == 0 else _WORDS[kind][1]
