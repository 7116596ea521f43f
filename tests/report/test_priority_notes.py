"""A mistake in a PriorityClass's annotation is told where a person looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.model import labels
from engine.model.canonical import canonical_json
from engine.model.workload import PriorityClass, Workload
from engine.reconcile.redaction import recorded
from engine.reconcile.scale_checking import ScaleSources, read_scaling
from engine.report.plan_report import render_plan
from engine.report.priority_notes import priority_notes
from tests.builders import catalog, snapshot
from tests.report import scenes
from tests.report.golden_text import printed

WRONG = (
    (
        {labels.MAY_START_NODES: "no"},
        "PriorityClass spare: nodewright.dev/may-start-nodes is 'no', so its pods start nodes; "
        'expected "true" or "false"',
    ),
    (
        {"nodewright.dev/may-start-node": "false"},
        "PriorityClass spare: nodewright.dev/may-start-node is no annotation that Nodewright knows there, "
        "and is passed over",
    ),
)


def with_class(annotations: dict[str, str]) -> Workload:
    return Workload(priority_classes=(PriorityClass("spare", annotations=annotations),))


@pytest.mark.parametrize(("annotations", "words"), WRONG)
def test_a_snapshot_that_was_recorded_still_shows_the_mistake_and_check_tells_it(
    tmp_path: Path, annotations: dict[str, str], words: str
) -> None:
    file = tmp_path / "moment.json"
    file.write_bytes(canonical_json(recorded(snapshot(workload=with_class(annotations)))))
    [found] = read_scaling(ScaleSources(file)).findings
    assert (found.message, found.position.file) == (words, str(file))


@pytest.mark.parametrize(("annotations", "words"), WRONG)
def test_a_plan_tells_it(annotations: dict[str, str], words: str) -> None:
    plan = scenes.plan()
    seen = snapshot(taken_at=plan.decided_at, workload=with_class(annotations))
    shown = " ".join(printed(render_plan(plan, seen, scenes.POLICY, catalog(), now=plan.decided_at)).split())
    assert words in shown


@pytest.mark.parametrize("value", ["true", "false"])
def test_what_is_understood_is_not_told(value: str) -> None:
    understood = {labels.MAY_START_NODES: value, "team": "search"}
    assert list(priority_notes(with_class(understood))) == []
