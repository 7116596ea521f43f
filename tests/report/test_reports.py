"""What people see, and what programs read."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import timedelta

import pytest
from attrs import evolve, frozen
from rich.console import Console

from engine.model.node import InstanceState
from engine.model.snapshot import CloudFacts
from engine.report.json_report import plan_json, standing_json
from engine.report.outcome_report import render_outcome
from engine.report.plan_report import plan_line, render_plan
from engine.report.progress import ConvergeProgress
from engine.report.standing import standings
from engine.report.status_report import render_status
from tests import builders
from tests.report import scenes
from tests.report.golden_text import assert_golden, printed

READ_AT = scenes.NOON + timedelta(seconds=3)


def plan_screen(*, width: int = 100, details: bool = False, **changes: object) -> str:
    plan = evolve(scenes.plan(), **changes)  # type: ignore[arg-type]
    seen = scenes.snapshot()
    return printed(render_plan(plan, seen, scenes.POLICY, scenes.CATALOG, details=details, now=READ_AT), width)


def test_a_plan_shows_what_comes_goes_stays_and_is_blocked_with_reasons_and_cost() -> None:
    assert_golden("plan.txt", plan_screen())


def test_a_plan_stays_readable_at_80_columns() -> None:
    text = plan_screen(width=80)

    assert_golden("plan-80.txt", text)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_a_piped_plan_loses_no_words() -> None:
    file = io.StringIO()
    screen = render_plan(scenes.plan(), scenes.snapshot(), scenes.POLICY, scenes.CATALOG, now=READ_AT)
    Console(file=file, width=100, highlight=False, soft_wrap=True).print(screen)

    assert file.getvalue().split() == plan_screen().split()


def test_details_name_every_node_and_pod() -> None:
    text = " ".join(plan_screen(details=True).split())

    for launch in scenes.plan().launches:
        assert launch.claim.name in text
    for unplaced in scenes.plan().unplaced:
        assert str(unplaced.pod) in text
    assert "no type of the pool offers nvidia.com/gpu; g4ad offers amd.com/gpu" in text


def test_a_plan_with_nothing_to_do_says_so() -> None:
    seen = scenes.snapshot()
    empty = scenes.empty_plan()

    text = printed(render_plan(empty, seen, scenes.POLICY, scenes.CATALOG, now=READ_AT))

    assert_golden("plan-empty.txt", text)
    assert plan_line(empty) == "Plan: nothing to do, 7 kept, ±$0/h"


def test_the_last_line_of_a_plan_is_its_sum() -> None:
    assert plan_line(scenes.plan()) == (
        "Plan: 5 to launch, 1 to drain, 2 to remove, foundation to change, 7 kept, 9 pods blocked, +$3.8800/h"
    )


def test_pods_of_identical_reasons_are_told_once() -> None:
    text = plan_screen()

    assert text.count("limit nvidia.com/gpu 50 reached (49 used, 1 planned, needs 1)") == 2  # pods, base capacity
    assert "8 pods" in text


def test_names_from_outside_are_never_taken_for_markup() -> None:
    assert "[ami-0123]" in printed(render_outcome(scenes.outcome(), scenes.plan()))
    assert "'[x]'" in printed(render_status(scenes.snapshot(), scenes.POLICY, scenes.CATALOG, now=READ_AT))


def test_the_status_shows_each_node_set_each_instance_and_the_cost() -> None:
    assert_golden("status.txt", printed(render_status(scenes.snapshot(), scenes.POLICY, scenes.CATALOG, now=READ_AT)))


def test_the_state_of_a_claim_follows_its_instance_and_node() -> None:
    assert {one.claim.name: one.state for one in standings(scenes.snapshot())} == {
        "gpu-core-00001": "ready",
        "gpu-core-00002": "draining",
        "gpu-elastic-00001": "joining",
        "gpu-elastic-00002": "launching",
        "gpu-elastic-00003": "lost",
    }


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (InstanceState.STOPPED, "stopped"),
        (InstanceState.SHUTTING_DOWN, "lost"),
        (None, "no instance"),
    ],
)
def test_an_instance_that_does_not_run_is_told(state: InstanceState | None, word: str) -> None:
    seen = scenes.snapshot()
    first = seen.cloud.instances[0]
    instances = (evolve(first, state=state),) if state is not None else ()

    (one, *_) = standings(evolve(seen, cloud=CloudFacts(instances=instances)))

    assert one.state == word


def test_a_node_that_is_not_ready_is_told() -> None:
    seen = scenes.snapshot()
    nodes = tuple(evolve(node, ready=False) for node in seen.nodes)

    assert standings(evolve(seen, nodes=nodes))[0].state == "node not ready"


def test_many_machines_are_shown_by_node_set_alone() -> None:
    claims = [builders.claim(f"gpu-{number:05}", pool=scenes.CORE) for number in range(40)]
    seen = builders.snapshot(document=builders.document(*claims))

    text = printed(render_status(seen, scenes.POLICY, scenes.CATALOG, now=READ_AT))

    assert "gpu-00007" not in text
    assert "40" in text
    assert "$40.00/h" in text


@pytest.mark.parametrize(
    ("blocked", "words"), [(1, "1 pod waiting, all blocked ("), (0, "1 pod waiting."), (9, "1 pod waiting, 9 of them")]
)
def test_the_status_says_how_many_of_the_waiting_pods_are_blocked(blocked: int, words: str) -> None:
    plan = evolve(scenes.plan(), unplaced=scenes.plan().unplaced[:blocked])

    text = printed(render_status(scenes.snapshot(), scenes.POLICY, scenes.CATALOG, plan, now=READ_AT))

    assert words in text


def test_a_cost_that_does_not_change_is_told_once() -> None:
    text = printed(render_plan(scenes.empty_plan(), scenes.snapshot(), scenes.POLICY, scenes.CATALOG, now=READ_AT))

    assert "Cost $12.00/h, about $8,760 a month." in text


def test_the_status_of_nothing_is_no_error() -> None:
    text = printed(render_status(builders.snapshot(), scenes.POLICY, scenes.CATALOG, now=READ_AT))

    assert "nothing published yet" in text
    assert "0 nodes (0 ready). Cost $0.00/h" in text


def test_a_piped_report_has_no_colour() -> None:
    assert "\x1b" not in plan_screen()


# --- for programs


def test_a_plan_for_programs_has_every_reason_with_its_code_numbers_and_words() -> None:
    told = json.loads(plan_json(scenes.plan()))

    assert told["schema"] == "nodewright.dev/plan/v1"
    assert told["totals"] == {
        "launches": 5,
        "drains": 1,
        "removals": 2,
        "kept": 7,
        "placed_pods": 8,
        "blocked_pods": 9,
    }
    assert told["change_usd_per_hour"] == "3.880000"
    assert told["unplaced"][0]["refusals"][0] == {
        "node_pool": "gpu-core",
        "code": "limit-reached",
        "words": "limit nvidia.com/gpu 50 reached (49 used, 1 planned, needs 1)",
        "resource": "nvidia.com/gpu",
        "limit": 50,
        "used": 49,
        "planned": 1,
        "needed": 1,
    }
    assert told["kept"][0]["reason"]["words"] == "base capacity: the pool keeps 2 nodes"
    assert told["launches"][0]["usd_per_hour"] == "1.000000"
    assert told["removals"][0]["budget"] == {"budget": "10%", "base": 12, "allowed": 2, "used": 1}


def test_a_standing_for_programs_has_every_claim() -> None:
    told = json.loads(standing_json(scenes.snapshot(), scenes.POLICY, scenes.outcome()))

    assert [(node["claim"], node["state"]) for node in told["nodes"]][:2] == [
        ("gpu-core-00001", "ready"),
        ("gpu-core-00002", "draining"),
    ]
    assert told["total_usd_per_hour"] == "9.580000"
    assert told["waiting_pods"] == ["default/llm-3"]
    assert told["last_outcome"]["claims"][3]["code"] == "InsufficientInstanceCapacity"


# --- progress


@frozen
class StepStarted:
    urn: str
    op: str
    planning: bool = False


@frozen
class StepDone:
    urn: str
    op: str


@frozen
class StepFailed:
    urn: str
    op: str


def urn(name: str) -> str:
    return f"urn:pulumi:sandbox::nodewright::nodewright:index:GpuNodeSet$aws:ec2/instance:Instance::{name}"


def test_progress_tells_what_began_last_and_counts_machines() -> None:
    screen = io.StringIO()
    progress = ConvergeProgress(scenes.plan(), Console(file=screen, force_terminal=True, width=100))
    progress.start()
    progress.on_event(StepStarted(urn("gpu-1"), "create"))
    progress.on_event(StepStarted(urn("gpu-2"), "create"))
    progress.on_event(StepStarted(urn("gpu-9"), "create", planning=True))
    assert progress.now_doing == "launching gpu-2 and 1 more"
    progress.on_event(StepDone(urn("gpu-2"), "create"))
    assert progress.now_doing == "launching gpu-1"
    progress.on_event(StepFailed(urn("gpu-1"), "create"))
    assert progress.now_doing == "converging"
    progress.on_event(object())
    progress.stop()

    assert "launching gpu-1 failed" in screen.getvalue()
    assert "2/7" in screen.getvalue()


def test_progress_is_silent_when_piped() -> None:
    screen = io.StringIO()
    progress = ConvergeProgress(None, Console(file=screen, width=100))
    progress.start()
    progress.on_event(StepStarted(urn("gpu-1"), "create"))
    progress.on_event(StepFailed(urn("gpu-1"), "create"))
    progress.stop()

    assert screen.getvalue() == ""


def test_importing_the_room_costs_nothing() -> None:
    code = "import sys, engine.report; print(sorted({'rich', 'boto3', 'kubernetes'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "[]"


def test_a_wait_is_told_where_nobody_watches_too() -> None:
    @frozen
    class Waiting:
        message: str

    screen = io.StringIO()
    progress = ConvergeProgress(None, Console(file=screen, width=100))
    progress.on_event(Waiting("stack 'test' is locked by nw@pod-a"))
    assert screen.getvalue() == "stack 'test' is locked by nw@pod-a\n"
