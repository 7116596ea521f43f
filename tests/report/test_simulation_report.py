"""Simulated runs beside each other, for people, for pages and for programs."""

from __future__ import annotations

import json
from datetime import timedelta
from xml.etree import ElementTree

from attrs import evolve
from rich.console import Console

from engine.report.simulation_picture import simulation_svg
from engine.report.simulation_report import render_simulation, simulation_json, simulation_markdown
from engine.report.simulation_rows import percentile, sections
from engine.simulate.record import BudgetSeen, LimitSeen, RuleSeen, Run, Sample, Violation, Waits
from tests.builders import NOON, usd

SAMPLE = Sample(
    at=NOON, usd_per_hour=usd("4.50"), machines=3, nodes=3, going=1, gpus=4, gpus_used=3, running=3, waiting=2
)
NOW = Run(
    name="now",
    began=NOON,
    ended=NOON + timedelta(hours=4),
    samples=(SAMPLE, evolve(SAMPLE, at=NOON + timedelta(hours=4), usd_per_hour=usd("1"))),
    passes=20,
    usd=10.0,
    gpu_hours=16.0,
    gpu_hours_used=12.0,
    launches={"g5.xlarge": 3},
    refused={"InsufficientInstanceCapacity": 2},
    removals={"Empty": 2},
    evictions={"Drifted": 1},
    lost_pods=1,
    jobs_done=5,
    work_lost=timedelta(minutes=90),
    waits=Waits(first=(60.0, 90.0, 240.0), again=(5.0,), still=(700.0,)),
    budgets=(BudgetSeen("gpu", "10%", 1, 1, 3, 2),),
    limits=(
        LimitSeen("gpu", "nvidia.com/gpu", "", "", 8, 4),
        LimitSeen("", "usdPerHour", "team-dollars", "search", 20_000_000, 4_500_000),
        LimitSeen("idle", "nvidia.com/gpu", "", "", 8, 0),
    ),
    refusals={"limit-reached": 1},
)
THEN = evolve(NOW, name="then", usd=7.5, removals={"Empty": 3, "Underutilized": 4}, budgets=())


def rows(*runs: Run) -> dict[str, tuple[str, ...]]:
    return {row.name.strip(): row.cells for section in sections(runs) for row in section.rows}


def test_a_rule_that_refused_pods_is_named_under_the_reason_that_it_is_one_of() -> None:
    refusing = (RuleSeen("rule-forbids", "spot-for-the-tolerant", 7), RuleSeen("rule-forbids", "gpu-memory", 1))
    mine = evolve(NOW, refusals={"limit-reached": 1, "rule-forbids": 8}, refusing_rules=refusing)
    page = simulation_markdown([mine, THEN])
    start = page.index("| refused for: limit-reached")
    assert page[start:].splitlines()[:4] == [
        "| refused for: limit-reached | 1 | 1 |",
        "| refused for: rule-forbids | 8 | 0 |",
        "| by rule gpu-memory | 1 | 0 |",
        "| by rule spot-for-the-tolerant | 7 | 0 |",
    ]


def test_each_number_stands_beside_the_other_run_s() -> None:
    told = rows(NOW, THEN)
    assert told["in all"] == ("$10.00", "$7.50")
    assert told["against now"] == ("", "-25.0 %")
    assert told["an hour, on average"] == ("$2.50", "$1.88")
    assert told["of them in use"] == ("75 %", "75 %")
    assert told["machines removed: Underutilized"] == ("0", "4")
    assert told["launches refused: InsufficientInstanceCapacity"] == ("2", "2")
    assert told["work of jobs lost"] == ("1h30m", "1h30m")
    assert told["gpu: 10%"] == ("1 of 1, 2 removals", "unused")
    assert told["search: usdPerHour by team-dollars"] == ("$4.50 of $20.00/h", "$4.50 of $20.00/h")
    assert told["refused for: limit-reached"] == ("1", "1")
    assert "idle: nvidia.com/gpu" not in told
    assert "against now" not in rows(NOW)


def test_a_percentile_is_the_least_value_that_so_many_do_not_pass() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.95, 1.0)] == [50.0, 95.0, 100.0]
    assert percentile([7.0], 0.5) == 7.0


def test_the_screen_has_a_column_for_each_run_and_says_what_was_supposed() -> None:
    console = Console(width=100, record=True)
    console.print(render_simulation((NOW, THEN), ("begins with no node",)))
    text = console.export_text()
    assert "Simulated 4h from 2026-11-30 12:00 UTC" in text
    assert "begins with no node" in text
    (line,) = [line for line in text.splitlines() if line.startswith("in all")]
    assert line.split() == ["in", "all", "$10.00", "$7.50"]


def test_what_must_never_happen_is_told_when_it_did() -> None:
    broken = evolve(NOW, violations=(Violation(NOON, "budgets", "2 nodes are out, and 1 may be"),))
    line = "- now, 2026-11-30 12:00:00: budgets: 2 nodes are out, and 1 may be"
    assert line in simulation_markdown((broken,)).splitlines()
    assert "never happen" not in simulation_markdown((NOW,))


def test_markdown_has_a_table_for_each_section_and_names_the_picture() -> None:
    lines = simulation_markdown((NOW, evolve(THEN, name="a|b")), picture="day.svg").splitlines()
    assert "| | now | a\\|b |" in lines
    assert "| pods that got a node | 3 | 3 |" in lines
    assert any("](day.svg)" in line for line in lines)


def test_json_has_everything_and_its_schema() -> None:
    report = json.loads(simulation_json((NOW,), ("a note",)))
    assert (report["schema"], report["notes"]) == ("nodewright.dev/simulation/v1", ["a note"])
    (run,) = report["runs"]
    assert (run["usd"], run["waits"]["first"], run["removals"]) == (10.0, [60.0, 90.0, 240.0], {"Empty": 2})


def test_the_picture_is_xml_with_a_line_for_each_run_in_each_panel() -> None:
    svg = simulation_svg((NOW, evolve(THEN, name="a<b>&")), "A day & a night")
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    paths = [each.get("d", "") for each in root.iter(f"{space}path")]
    assert len(paths) == 4 * 2
    texts = [each.text for each in root.iter(f"{space}text")]
    assert "a<b>&" in texts
    assert "A day & a night" in texts
    # Of 6 $/h at the panel's top: the cost falls from 4.50 to 1 at the right end.
    assert paths[0] == "M70.0 108.5H840.0V184.3"


def test_a_picture_of_a_run_without_length_or_cost_is_drawn_all_the_same() -> None:
    empty = evolve(SAMPLE, usd_per_hour=usd("0"), gpus=0, gpus_used=0, waiting=0, going=0)
    nothing = evolve(NOW, ended=NOON, samples=(empty,))
    assert ElementTree.fromstring(simulation_svg((nothing,), "nothing")) is not None
