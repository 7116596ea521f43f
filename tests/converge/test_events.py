"""Reading the engine's events: nothing that it says may be lost, and a loss must show."""

from __future__ import annotations

import json
from typing import Any

from engine.converge.events import EventReader, Remark, StepDone, StepFailed, StepStarted, Summary, errors_by_urn

URN = "urn:pulumi:test::nodewright::nodewright:index:GpuNodeSet$aws:ec2/instance:Instance::gpu-1"


def line(sequence: int, **event: Any) -> str:
    return json.dumps({"sequence": sequence, "timestamp": 0, **event})


def step(kind: str, op: str, new: dict[str, Any] | None = None, old: dict[str, Any] | None = None) -> dict[str, Any]:
    return {kind: {"metadata": {"op": op, "urn": URN, "type": "t", "new": new, "old": old}}}


def remark(message: str, severity: str = "error", **more: Any) -> dict[str, Any]:
    return {"diagnosticEvent": {"urn": URN, "message": message, "severity": severity, "color": "never", **more}}


SUMMARY = {"summaryEvent": {"result": "succeeded", "resourceChanges": {"create": 1}, "maybeCorrupt": False}}


def test_a_whole_operation_is_read_in_order_with_its_ids() -> None:
    reader = EventReader()
    for number, event in enumerate(
        [
            {"preludeEvent": {"config": {}}},
            step("resourcePreEvent", "create"),
            remark("<{%fg 1%}>no capacity<{%reset%}>\n"),
            step("resOpFailedEvent", "create", new={"id": ""}),
            step("resOutputsEvent", "create", new={"id": "i-1"}),
            step("resOutputsEvent", "delete", old={"id": "i-2"}),
            SUMMARY,
            {"cancelEvent": {}},
        ]
    ):
        reader.read(line(number, **event))
    told = reader.told()
    assert told.is_complete
    assert told.events == (
        StepStarted(URN, "create"),
        Remark(URN, "error", "no capacity"),
        StepFailed(URN, "create"),
        StepDone(URN, "create", "i-1"),
        StepDone(URN, "delete", "i-2"),
        Summary("succeeded", {"create": 1}),
    )


def test_what_the_engine_leaves_alone_and_what_it_debugs_is_passed_over() -> None:
    reader = EventReader()
    assert reader.read(line(0, **step("resOutputsEvent", "same", new={"id": "i-1"}))) is None
    assert reader.read(line(1, **remark("registering", severity="debug"))) is None
    assert reader.read(line(2, **remark("working", severity="info#err", ephemeral=True))) is None
    assert reader.read(line(3, **step("resOutputsEvent", "an-op-of-the-future", new={"id": "i-1"}))) is not None
    assert reader.read(line(4, aKindOfTheFuture={"x": 1})) is None
    reader.read(line(5, **SUMMARY))
    assert reader.told().is_complete


def test_a_missing_summary_a_gap_and_an_unreadable_line_each_make_the_telling_incomplete() -> None:
    without_summary = EventReader()
    without_summary.read(line(0, **step("resourcePreEvent", "create")))
    with_gap = EventReader()
    with_gap.read(line(0, **step("resourcePreEvent", "create")))
    with_gap.read(line(2, **SUMMARY))
    with_torn_line = EventReader()
    with_torn_line.read('{"sequence": 0, "resourcePreEvent": {"metad')
    with_torn_line.read(line(1, **SUMMARY))
    with_odd_step = EventReader()
    with_odd_step.read(line(0, resourcePreEvent={"metadata": None}))
    with_odd_step.read(line(1, **SUMMARY))
    readers = (without_summary, with_gap, with_torn_line, with_odd_step)
    assert [reader.told().is_complete for reader in readers] == [False] * 4
    assert with_odd_step.told().events == (Summary("succeeded", {"create": 1}),)


def test_errors_are_gathered_by_resource() -> None:
    events = (
        Remark(URN, "error", "one"),
        Remark("", "error", "whole"),
        Remark(URN, "warning", "w"),
        Remark(URN, "error", "two"),
    )
    assert errors_by_urn(events) == {URN: "one\ntwo", "": "whole"}
