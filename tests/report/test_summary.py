"""One pass in one line, and the reasons for which pods wait."""

from __future__ import annotations

import json
from datetime import timedelta

from attrs import evolve

from engine.model.plan import Placement
from engine.model.pod import PodKey
from engine.report.summary import PassReport, PassResult, report_json, report_of, summary_line
from engine.report.waiting import REFUSAL_CODES, WAITING_CODES, waiting_by_code, waiting_pods
from tests import builders
from tests.builders import NOON, minutes
from tests.report import scenes

SECONDS = {"seen": 0.02, "decided": 0.081, "called": 0.612}


def report(result: PassResult = PassResult.CONVERGED, words: str = "") -> PassReport:
    return report_of(
        "17", NOON, scenes.snapshot(), scenes.plan(), result, words=words, seconds=SECONDS, total_seconds=1.236
    )


def test_a_pass_is_told_in_one_line_with_counts_seconds_and_the_change_in_cost() -> None:
    assert summary_line(report()) == (
        "sandbox pass 17: stacks converged, 5 launched, 1 draining, 2 removed, "
        "1 pod waiting (limit-reached 8, no-type-fits 1), "
        "1.24s (seen 0.02s, decided 0.08s, called 0.61s), +$3.8800/h to $15.88/h, plan 9f8e7d6c5b4a"
    )


def test_a_pass_that_came_to_no_plan_says_why_and_nothing_of_cost() -> None:
    early = PassReport("18", "sandbox", NOON, PassResult.NOT_SYNCED, words="nodes: 503", total_seconds=0.5)

    assert summary_line(early) == "sandbox pass 18: not synced: nodes: 503, 0.50s"


def test_a_paused_pass_says_why_and_what_it_would_do() -> None:
    assert summary_line(report(PassResult.PAUSED, "audit")).startswith(
        "sandbox pass 17: paused: audit, 5 to launch, 1 to drain, 2 to remove, 1 pod waiting"
    )


def test_a_pass_on_standby_counts_nothing_as_done() -> None:
    line = summary_line(report(PassResult.STANDBY))
    assert "standby, 5 to launch, 1 to drain, 2 to remove" in line
    assert "launched" not in line


def test_an_idle_pass_names_no_zeros() -> None:
    idle = report_of("3", NOON, builders.snapshot(), scenes.empty_plan(), PassResult.IDLE, total_seconds=0.04)

    assert summary_line(idle) == "sandbox pass 3: nothing to do, 0.04s, ±$0/h to $12.00/h, plan 9f8e7d6c5b4a"


def test_only_a_failure_needs_a_person() -> None:
    assert [result for result in PassResult if report(result).needs_a_person] == [PassResult.FAILED]


def test_programs_read_the_same_pass_as_one_line_of_json() -> None:
    assert json.loads(report_json(report()))["result"] == "converged", "the words may change, the label may not"
    text = report_json(report(PassResult.REFUSED))

    assert "\n" not in text
    read = json.loads(text)
    assert read["schema"] == "nodewright.dev/pass/v1"
    assert (read["result"], read["launches"], read["drains"], read["removals"]) == ("refused", 5, 1, 2)
    assert read["refused"] == {"limit-reached": 8, "no-type-fits": 1}
    assert read["change_usd_per_hour"] == "3.880000"
    assert read["seconds"] == SECONDS
    assert read["started_at"] == "2026-11-30T12:00:00Z"


def test_each_waiting_pod_has_the_reason_that_the_plan_gives_it_the_oldest_first() -> None:
    plan = scenes.plan()
    launched, blocked, fits, coming, forgotten = (
        plan.launches[0].pods[0],
        plan.unplaced[0].pod,
        PodKey("default", "web-0001"),
        PodKey("default", "web-0002"),
        PodKey("default", "odd"),
    )
    plan = evolve(plan, placements=(*plan.placements, Placement(coming, node=None, claim="gpu-core-00009")))
    made = [
        evolve(builders.pod(key.name), key=key, created_at=NOON - minutes(age))
        for age, key in enumerate((forgotten, coming, fits, blocked, launched))
    ]

    waiting = waiting_pods(builders.snapshot(pods=made), plan)

    assert [(each.pod.name, each.code) for each in waiting] == [
        ("llm-0001", "launch-planned"),
        ("core-4000m-1gpu-0001", "limit-reached"),
        ("web-0001", "node-fits"),
        ("web-0002", "node-coming"),
        ("odd", "not-in-plan"),
    ]
    assert waiting[0].since == NOON - timedelta(minutes=4)
    assert waiting[1].words == "gpu-core: limit nvidia.com/gpu 50 reached (49 used, 1 planned, needs 1)"


def test_counts_of_waiting_pods_name_every_code() -> None:
    counts = waiting_by_code(scenes.snapshot(), scenes.plan())

    assert tuple(counts) == WAITING_CODES
    assert set(REFUSAL_CODES) < set(WAITING_CODES)
    assert counts["not-in-plan"] == 1
    assert sum(counts.values()) == 1
