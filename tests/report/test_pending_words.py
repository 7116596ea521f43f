"""What a machine that stays is to go for, and by when its pods are gone: on screens and for programs."""

from __future__ import annotations

import json
from datetime import timedelta

from attrs import evolve

from engine.model.pending import Pending
from engine.model.plan import Kept, Plan, RemovalPhase
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement
from engine.model.snapshot import Snapshot
from engine.model.stay import BudgetExhausted, DoNotDisrupt, InUse, StayReason
from engine.report.going import going
from engine.report.json_report import plan_json, standing_json
from engine.report.plan_changes import kept_section, removals_section
from engine.report.status_report import render_status
from engine.report.top_screen import top_json, top_screen
from tests import builders
from tests.builders import NOON, minutes, usd
from tests.report import scenes
from tests.report.golden_text import printed

DRIFT = Pending(DisruptionReason.DRIFTED, "image ami-1 -> ami-2", NOON - minutes(90))
AGE = Pending(DisruptionReason.EXPIRED, "expireAfter 720h", NOON - minutes(5))
HOUR = NOON + timedelta(hours=1)
GUARDED = DoNotDisrupt("ml/llm")


def kept(name: str, reason: StayReason, *pending: Pending, drained_by: object = None) -> Kept:
    made = Kept(name, f"node-{name}", "gpu", "g5.xlarge", "us-east-1a", "spot", usd("1"), reason, pending)
    return evolve(made, drained_by=drained_by)


def standing(plan: Plan) -> Snapshot:
    """The moment of a plan, whose machines are published."""
    names = [*(each.record.claim for each in plan.removals), *(each.claim for each in plan.kept)]
    claims = tuple(builders.claim(name) for name in names)
    return evolve(scenes.snapshot(), document=builders.document(*claims))


def of(*every: Kept) -> Plan:
    return evolve(scenes.empty_plan(), kept=every)


def told(*every: Kept, details: bool = False) -> str:
    return " ".join(printed(part, width=300) for part in kept_section(of(*every), NOON, details=details)).strip()


def test_each_node_tells_what_keeps_it_then_what_it_is_to_go_for_and_then_its_end() -> None:
    words = told(kept("gpu-1", GUARDED, DRIFT, AGE, drained_by=HOUR), details=True)
    assert (
        "pod ml/llm must not be disrupted; to go for Drifted: image ami-1 -> ami-2, Expired: expireAfter 720h; "
        "its pods are gone in 1h at the latest (terminationGracePeriod)"
    ) in words


def test_of_nodes_told_together_reasons_are_counted() -> None:
    words = told(kept("a", GUARDED, DRIFT), kept("b", GUARDED, DRIFT, AGE), kept("c", InUse(2, 0)))
    assert "pod ml/llm must not be disrupted; to go for Drifted (2), Expired (1)" in words
    assert words.splitlines()[-1].endswith("runs 2 pods")


def test_what_a_node_waits_for_tells_its_reason_itself_and_it_is_not_told_twice() -> None:
    waits = AwaitsReplacement(("gpu-9",), "Drifted: image ami-1 -> ami-2")
    words = told(kept("a", waits, DRIFT, AGE), details=True)
    assert words.count("image ami-1 -> ami-2") == 2, "once in the group, once in its own line"
    assert "to go for Expired: expireAfter 720h" in words


def test_a_marked_node_tells_by_when_it_is_empty() -> None:
    plan = scenes.plan()
    marked = tuple(evolve(each, drained_by=HOUR) if each.phase is RemovalPhase.MARK else each for each in plan.removals)
    words = " ".join("".join(printed(p, 300) for p in removals_section(evolve(plan, removals=marked), NOON)).split())
    assert words.count("its pods are gone in 1h at the latest (terminationGracePeriod)") == 1


def test_who_is_to_go_is_on_the_screens_of_what_stands_with_what_is_done_about_it() -> None:
    plan = evolve(scenes.plan(), kept=(kept("gpu-1", GUARDED, DRIFT), kept("gpu-2", InUse(1, 0))))
    rows = [(each.claim, each.step, each.reasons) for each in going(plan, standing(plan))]
    assert rows == [
        ("gpu-elastic-00003", "is let go", ("Lost",)),
        ("gpu-elastic-00009", "is let go", ("Empty",)),
        ("gpu-elastic-00011", "drains", ("Empty",)),
        ("gpu-1", "waits", ("Drifted",)),
    ]
    status = printed(render_status(standing(plan), scenes.POLICY, scenes.CATALOG, plan, now=NOON), 140)
    top = printed(top_screen(standing(plan), plan, NOON), 140)
    for screen in (status, top):
        assert "To go 4 nodes" in screen
        assert "gpu-1              Drifted  waits      pod ml/llm must not be disrupted" in screen
        assert "gpu-elastic-00011  Empty    drains     evicts 1 pod: default/late-0001" in screen


def test_nobody_to_go_is_no_section_and_many_are_cut() -> None:
    held = BudgetExhausted("10%", 1, 1)
    nobody = of(kept("a", InUse(1, 0)))
    assert "To go" not in printed(top_screen(standing(nobody), nobody, NOON))
    many = of(*(kept(f"gpu-{number:02}", held, DRIFT) for number in range(10)))
    assert "and 2 more: nodewright plan --details" in printed(top_screen(standing(many), many, NOON))


def test_programs_get_each_reason_its_age_and_the_end() -> None:
    plan = of(kept("gpu-1", GUARDED, DRIFT, drained_by=HOUR))
    [shown] = json.loads(plan_json(plan))["kept"]
    assert shown["pending"] == [{"reason": "Drifted", "why": "image ami-1 -> ami-2", "since": "2026-11-30T10:30:00Z"}]
    assert shown["drained_by"] == "2026-11-30T13:00:00Z"
    assert shown["words"].startswith("pod ml/llm must not be disrupted; to go for Drifted: ")
    for report in (
        standing_json(standing(plan), scenes.POLICY, None, plan),
        top_json(standing(plan), plan, NOON),
    ):
        [one] = json.loads(report)["going"]
        assert (one["claim"], one["step"], one["reasons"]) == ("gpu-1", "waits", ["Drifted"])
        assert one["drained_by"] == "2026-11-30T13:00:00Z"


def test_a_standing_without_a_plan_says_nothing_of_who_is_to_go() -> None:
    assert json.loads(standing_json(scenes.snapshot(), scenes.POLICY, None))["going"] is None


def test_a_machine_that_a_newer_document_lets_go_is_to_go_no_more() -> None:
    plan = of(kept("gpu-1", GUARDED, DRIFT))
    assert going(plan, scenes.snapshot()) == ()
