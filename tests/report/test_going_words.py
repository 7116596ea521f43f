"""What is told of a machine that goes: its saving, its budget, and where its pods go."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from engine.model.document import BudgetUse
from engine.model.drain import ForcedEviction
from engine.model.money import UsdPerHour
from engine.model.plan import Launch, LaunchReason, Placement, Plan, Removal, RemovalPhase
from engine.model.pod import PodKey
from engine.model.refusal import LimitReached, PoolRefusal
from engine.model.replacement import DeleteFirst
from engine.report.json_report import plan_json
from engine.report.plan_changes import launches_section, removals_section
from engine.report.removal_words import budget_words, delete_first_words, pods_words, removal_lines, saving_words
from tests import builders
from tests.builders import NOON, minutes, usd
from tests.report.golden_text import printed
from tests.report.scenes import plan

LLM = tuple(PodKey("ml", f"llm-{number}") for number in range(4))


def draining(**more: object) -> Removal:
    [found] = [each for each in plan().removals if each.phase is RemovalPhase.MARK]
    return evolve(found, **{"pods": (), **more})


def budget(name: str, used: int = 2, allowed: int = 3) -> str:
    return budget_words(evolve(draining().record, budget=BudgetUse(name, base=12, allowed=allowed, used=used)))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slow-drain, window weekday-night", "budget slow-drain: 2 of 3 in gpu-elastic, window weekday-night"),
        ("10%", "budget 10% of 12 nodes: 2 of 3 in gpu-elastic"),
        ("3 nodes", "budget 3 nodes: 2 of 3 in gpu-elastic"),
        ('3 nodes on "0 9 * * 1,2" for 8h', 'budget 3 nodes on "0 9 * * 1,2" for 8h: 2 of 3 in gpu-elastic'),
        ("night, in one opening of late", "budget night: 2 of 3 in gpu-elastic, in one opening of late"),
        ("no budget is active", "no budget is active"),
    ],
)
def test_a_budget_is_told_with_its_count_its_pool_and_its_window(name: str, words: str) -> None:
    assert budget(name) == words


def test_what_no_budget_holds_tells_none() -> None:
    assert budget_words(evolve(draining().record, budget=None)) == ""


@pytest.mark.parametrize(
    ("micros", "words"),
    [(400_000, "saves $0.4000/h"), (-300_000, "costs $0.3000/h more"), (0, ""), (3, ""), (-3, ""), (None, "")],
)
def test_a_saving_is_told_where_there_is_one_to_see(micros: int | None, words: str) -> None:
    assert saving_words(None if micros is None else UsdPerHour(micros)) == words


def test_each_pod_is_told_with_where_it_goes_those_of_later_tiers_apart() -> None:
    places = (Placement(LLM[0], "node-4", None), Placement(LLM[1], None, "gpu-9"), Placement(LLM[2], "node-5", None))
    forced = (ForcedEviction(LLM[3], NOON + minutes(5), "terminationGracePeriod"),)
    removal = draining(pods=LLM[:2], places=places, forced=forced)
    targets = {place.pod: place.node or place.claim or "" for place in places}
    assert pods_words(removal, targets) == [
        "evicts 2 pods: ml/llm-0 to node-4, ml/llm-1 to gpu-9",
        "then 1 pod: ml/llm-2 to node-5",
        "deletes 1 pod out of time: ml/llm-3",
    ]


def test_many_pods_are_cut_unless_every_one_is_asked_for() -> None:
    removal = draining(pods=LLM)
    assert pods_words(removal, {}) == ["evicts 4 pods: ml/llm-0, ml/llm-1 and 2 more"]
    assert pods_words(removal, {}, every=True) == ["evicts 4 pods: ml/llm-0, ml/llm-1, ml/llm-2, ml/llm-3"]


def test_one_that_goes_first_says_why() -> None:
    limit = PoolRefusal("gpu-elastic", LimitReached("nodes", 2, 2, 0, 1))
    full = delete_first_words(draining(delete_first=DeleteFirst((limit,))), NOON)
    assert full.startswith(
        "goes before another takes its place, for which there is no room: gpu-elastic: limit nodes 2"
    )
    asked = delete_first_words(draining(delete_first=DeleteFirst()), NOON)
    assert asked == "goes before another takes its place: the pool's surge is 0; its pods wait for that"
    assert delete_first_words(draining(), NOON) == ""


def displacing() -> Plan:
    """One node drains onto a node that is there and one that this plan launches for another's pods."""
    record = evolve(draining().record, budget=BudgetUse("slow, window night", base=12, allowed=3, used=2))
    place = Placement(LLM[0], "node-4", None)
    removal = draining(record=record, pods=LLM[:2], places=(place,), saving=usd("0.4"), drained_by=NOON + minutes(60))
    kept = plan().kept[4]
    new = evolve(builders.claim("gpu-new"), usd_per_hour=usd("0.9"), replaces=(kept.claim,))
    launch = Launch(new, LaunchReason.REPLACEMENT, displaced=(LLM[2],))
    interrupted = Launch(evolve(new, name="gpu-other", replaces=()), LaunchReason.REPLACEMENT, displaced=(LLM[1],))
    return evolve(plan(), removals=(removal,), launches=(launch, interrupted))


def test_the_plan_has_saving_rule_budget_pods_places_and_end_of_each_removal() -> None:
    text = "".join(printed(part, 140) for part in removals_section(displacing(), NOON))
    for words in (
        "gpu-elastic-00011  drain  Empty      7m  1.2000  0.4000  gpu-elastic: consolidateAfter 5m",
        "budget slow: 2 of 3 in gpu-elastic, window night",
        "evicts 2 pods: ml/llm-0 to node-4, ml/llm-1 to gpu-other",
        "its pods are gone in 1h at the latest (terminationGracePeriod)",
    ):
        assert words in text


def test_the_plan_has_of_each_launch_that_replaces_whom_and_for_which_pods_and_what_that_saves() -> None:
    text = "".join(printed(part, 140) for part in launches_section(displacing(), "us-east-1", details=False))
    node = plan().kept[4].node
    assert f"gpu-new takes the place of {node}, for 1 pod: ml/llm-2; saves $0.3000/h once that is gone" in text
    assert "gpu-other takes" not in text


def test_programs_get_the_same() -> None:
    told = json.loads(plan_json(displacing()))
    [removal] = told["removals"]
    assert removal["saving_usd_per_hour"] == "0.400000"
    assert removal["budget"] == {"budget": "slow, window night", "base": 12, "allowed": 3, "used": 2}
    assert removal["moves"] == [{"pod": "ml/llm-0", "to": "node-4"}, {"pod": "ml/llm-1", "to": "gpu-other"}]
    assert removal["words"] == removal_lines(
        displacing().removals[0], {LLM[0]: "node-4", LLM[1]: "gpu-other"}, NOON, every=True
    )
    first = evolve(displacing(), removals=(draining(delete_first=DeleteFirst()),))
    [removal] = json.loads(plan_json(first))["removals"]
    assert removal["delete_first"] == {
        "refusals": [],
        "words": "goes before another takes its place: the pool's surge is 0; its pods wait for that",
    }
