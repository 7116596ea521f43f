"""The live view, and where the seconds after a launch go."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from attrs import evolve

from engine.model.ledger import Ledger, Milestones
from engine.model.pod import PodPhase
from engine.report.json_report import plan_json, standing_json
from engine.report.milestones import Stage, durations, expectations, reached_since, steps
from engine.report.plan_report import render_plan
from engine.report.standing import standings
from engine.report.status_report import render_status
from engine.report.top_screen import top_json, top_screen
from tests import builders
from tests.builders import NOON
from tests.report import live_scene, scenes
from tests.report.golden_text import assert_golden, printed
from tests.report.live_scene import LEDGER, READ_AT


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_view_fits_its_screen(width: int) -> None:
    text = printed(top_screen(live_scene.snapshot(), live_scene.plan(), READ_AT), width)

    assert_golden(f"top-{width}.txt", text)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_the_status_shows_where_the_seconds_went_at_80_columns() -> None:
    text = printed(
        render_status(live_scene.snapshot(), live_scene.POLICY, scenes.CATALOG, live_scene.plan(), now=READ_AT), 80
    )

    assert_golden("status-live.txt", text)
    assert max(map(len, text.splitlines())) <= 80


def test_many_machines_are_told_by_the_medians_and_the_slowest() -> None:
    claims = [builders.claim(f"gpu-core-{number:05}", pool=scenes.CORE) for number in range(40)]
    ledger = Ledger(milestones={"gpu-core-99999": LEDGER.milestones[live_scene.SERVING.name]})
    seen = builders.snapshot(document=builders.document(*claims), ledger=ledger)

    text = printed(render_status(seen, scenes.POLICY, scenes.CATALOG, now=NOON + timedelta(seconds=30)))

    assert "gpu-core, median         –         40s        1m35s  4m40s      5m20s" in text
    assert "40 nodes in flight, the slowest not launched after 30s" in text


def test_the_plan_shows_a_pause_a_karpenter_and_bindings_that_differ() -> None:
    text = printed(
        render_plan(live_scene.plan(), live_scene.snapshot(), live_scene.POLICY, scenes.CATALOG, now=READ_AT)
    )

    assert "Paused: freeze of the quarter's end. Nothing is launched, drained or removed." in text
    assert "A live Karpenter is in this cluster: 2 NodePools (legacy, system), 1 node of its own, left to it" in text
    assert "Bound elsewhere 1 pod\n  pod            planned for     bound to\n" in text
    assert "  default/llm-2  gpu-core-00002  node-1\n" in text


def test_programs_read_pauses_karpenter_bindings_and_steps() -> None:
    seen, plan = live_scene.snapshot(), live_scene.plan()
    standing = json.loads(standing_json(seen, live_scene.POLICY, None, plan))

    assert standing["paused"] == live_scene.PAUSED
    assert standing["paused_pools"] == {"gpu-elastic": "driver roll-out"}
    assert standing["karpenter"]["is_live"] is True
    [coming_up] = [node for node in standing["nodes"] if node["claim"] == "gpu-core-00003"]
    assert (coming_up["phase"], coming_up["milestones"]["registered_at"]) == ("initializing", "2026-11-30T11:59:25Z")
    assert coming_up["steps"]["registered"] == {
        "took_seconds": 45.0,
        "elapsed_seconds": None,
        "expected_seconds": 45.0,
    }
    assert coming_up["steps"]["initialized"] == {
        "took_seconds": None,
        "elapsed_seconds": 80.0,
        "expected_seconds": 100.0,
    }
    assert json.loads(plan_json(plan))["binding_differences"] == [
        {"pod": "default/llm-2", "planned": "gpu-core-00002", "node": "node-1"}
    ]


def test_programs_read_the_live_view() -> None:
    read = json.loads(top_json(live_scene.snapshot(), live_scene.plan(), READ_AT))

    assert (read["accelerators_used"], read["accelerators_allocatable"], read["running_pods"]) == (3, 8, 2)
    assert read["total_usd_per_hour"] == "23.280000"
    assert [(each["pod"], each["age_seconds"], each["code"]) for each in read["waiting_pods"]] == [
        ("default/llm-4", 403.0, "limit-reached"),
        ("default/llm-3", 94.0, "node-coming"),
        ("default/embed-1", 5.0, "node-fits"),
    ]


def test_an_environment_with_nothing_has_a_live_view_too() -> None:
    plan = evolve(scenes.empty_plan(), base_version=0)

    text = printed(top_screen(builders.snapshot(), plan, READ_AT))

    assert text == (
        "test  nothing published yet, seen 3s ago  synced\n"
        "$0.00/h, $0 a month  GPUs 0/0 ░░░░░░░░░░  pods 0 running, 0 waiting\n"
    )


def test_a_long_queue_is_cut_to_those_that_wait_longest() -> None:
    waiting = [builders.pod(f"w-{n:03}", created=NOON - timedelta(seconds=n)) for n in range(30)]

    text = printed(top_screen(builders.snapshot(pods=waiting), scenes.empty_plan(), READ_AT))

    assert "Waiting 30 pods" in text
    assert "w-029" in text
    assert "w-017" not in text
    assert "and 18 more" in text


def test_what_usually_takes_how_long_is_the_median_of_the_pool_gone_machines_included() -> None:
    gone = Milestones(NOON, NOON + timedelta(seconds=300))
    ledger = Ledger(milestones={**LEDGER.milestones, "gpu-core-0old": gone, "gpu-batch-1": gone})

    expected = expectations(ledger, standings(live_scene.snapshot(), ledger))

    # 40, 50, 45 and 300 seconds.
    assert expected["gpu-core", Stage.REGISTERED] == timedelta(seconds=47.5)
    assert expected["gpu-core", Stage.LAUNCHED] == timedelta(seconds=13.5)
    assert expected["gpu-batch", Stage.REGISTERED] == timedelta(seconds=300)
    assert ("gpu-elastic", Stage.REGISTERED) not in expected


def test_only_one_stage_is_under_way_and_an_idle_node_waits_for_none() -> None:
    every = {one.claim.name: one for one in standings(live_scene.snapshot(), LEDGER)}
    under_way = {
        name: [(step.stage, step.elapsed) for step in steps(one, {}, NOON) if step.elapsed is not None]
        for name, one in every.items()
    }

    assert under_way == {
        "gpu-core-00001": [],
        "gpu-core-00002": [],
        "gpu-core-00003": [(Stage.INITIALIZED, timedelta(seconds=80))],
        "gpu-core-00004": [(Stage.REGISTERED, timedelta(seconds=185))],
        "gpu-elastic-00001": [(Stage.LAUNCHED, timedelta(seconds=4))],
    }


@pytest.mark.parametrize(
    ("phase", "image_pulled_at", "under_way"),
    [
        (PodPhase.PENDING, None, [Stage.IMAGE_PULLED]),
        (PodPhase.RUNNING, NOON, [Stage.POD_READY]),
        # A kubelet that does not say when it began cannot be waited for.
        (PodPhase.RUNNING, None, []),
    ],
)
def test_a_pod_that_came_to_an_initialized_node_is_waited_for(
    phase: PodPhase, image_pulled_at: datetime | None, under_way: list[Stage]
) -> None:
    bound = builders.pod("new", gpu=1, node="node-2", phase=phase)
    seen = live_scene.snapshot()
    seen = evolve(seen, pods=(*seen.pods, bound))
    known = evolve(LEDGER.milestones[live_scene.IDLE.name], image_pulled_at=image_pulled_at)
    ledger = Ledger(milestones={**LEDGER.milestones, live_scene.IDLE.name: known})
    [one] = [each for each in standings(seen, ledger) if each.claim.name == live_scene.IDLE.name]

    assert [step.stage for step in steps(one, {}, NOON) if step.elapsed is not None] == under_way


def test_clocks_that_disagree_give_no_negative_time() -> None:
    early = Milestones(launched_at=NOON, registered_at=NOON - timedelta(seconds=5))

    assert durations(early, NOON + timedelta(seconds=3)) == {
        Stage.LAUNCHED: timedelta(),
        Stage.REGISTERED: timedelta(),
    }


def test_a_pass_tells_only_what_was_reached_since_the_one_before() -> None:
    before = Ledger(milestones={"gpu-1": Milestones(launched_at=NOON)})
    after = Ledger(
        milestones={
            "gpu-1": Milestones(launched_at=NOON, registered_at=NOON + timedelta(seconds=9)),
            "gpu-2": Milestones(),
        }
    )

    assert list(reached_since(before, after, {})) == [("gpu-1", Stage.REGISTERED, timedelta(seconds=9))]
