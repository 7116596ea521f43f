"""How near a plan's launches are to the least that is possible: in words, never told better than it is proven."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from engine.model.money import UsdPerHour, total
from engine.model.packing_bound import PackingBound
from engine.report.bound_words import packing_words
from engine.report.json_report import plan_json
from tests.builders import usd
from tests.report import scenes

PAID = total(launch.claim.usd_per_hour for launch in scenes.plan().launches)


def _told(cost: UsdPerHour, lower_bound: UsdPerHour) -> str:
    return packing_words(evolve(scenes.plan(), packing=PackingBound(cost, lower_bound)))


@pytest.mark.parametrize(
    ("over", "told"),
    [
        (1.0, "0.05 %"),
        (1.0004, "0.05 %"),
        (1.0006, "0.1 %"),
        (1.0101, "1.1 %"),
        (1.099, "9.9 %"),
        (1.1234, "13 %"),
        (2.999, "200 %"),
    ],
)
def test_the_distance_from_the_bound_is_told_rounded_up(over: float, told: str) -> None:
    bound = UsdPerHour(round(PAID.micros / over))
    assert _told(PAID, bound) == f"The launches cost {PAID}, at most {told} over the least for their pods on new nodes."


def test_no_bound_is_no_distance() -> None:
    assert _told(PAID, UsdPerHour(0)) == f"The launches cost {PAID}, and what they cost at the least is not known."


def test_what_nodes_cost_besides_is_told_apart_from_what_is_paid() -> None:
    assert f"{PAID + usd('0.06')} with {usd('0.06')} for what nodes cost besides," in _told(PAID + usd("0.06"), PAID)


def test_what_no_pod_asked_for_is_told_apart_from_what_is_compared() -> None:
    least = PAID - usd("1")
    told = packing_words(evolve(scenes.plan(), packing=PackingBound(PAID, least, apart=usd("1"))))
    assert told == (
        f"The launches cost {PAID}, {usd('1')} of it for nodes that no pod asked for, "
        "the rest is at most 0.05 % over the least for their pods on new nodes."
    )
    unknown = packing_words(evolve(scenes.plan(), packing=PackingBound(PAID, apart=usd("1"))))
    assert unknown.endswith("for nodes that no pod asked for, and what they cost at the least is not known.")


def test_a_plan_without_launches_has_nothing_to_tell() -> None:
    assert packing_words(evolve(scenes.plan(), packing=None)) == ""


def test_json_has_the_cost_the_bound_and_the_gap_or_none() -> None:
    near = evolve(scenes.plan(), packing=PackingBound(usd("1.02"), usd("1")))
    assert json.loads(plan_json(near))["packing"] == {
        "cost_usd_per_hour": "1.020000",
        "lower_bound_usd_per_hour": "1.000000",
        "apart_usd_per_hour": "0.000000",
        "gap": 0.02,
    }
    unknown = json.loads(plan_json(evolve(near, packing=PackingBound(usd("1.02")))))["packing"]
    assert (unknown["lower_bound_usd_per_hour"], unknown["gap"]) == (None, None)
    assert json.loads(plan_json(evolve(near, packing=None)))["packing"] is None
