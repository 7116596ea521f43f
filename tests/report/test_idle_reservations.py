"""Idle reserved capacity in a plan's text and JSON."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from rich.console import Group

from engine.model.money import UsdPerHour
from engine.model.plan import Plan
from engine.model.reservation import IdleReservation, MatchCriteria, ReservationKind, WhyIdle
from engine.report.idle_reservations import idle_section, idle_words
from engine.report.json_report import plan_json
from tests.builders import node_pool
from tests.decide.world import World, policy
from tests.report.golden_text import printed

IDLE = IdleReservation(
    id="cr-1",
    instance_type="g5.xlarge",
    zone="us-east-1a",
    kind=ReservationKind.DEFAULT,
    match_criteria=MatchCriteria.OPEN,
    unused=5,
    total=6,
    why=WhyIdle.NO_CLASS_SELECTS_IT,
    node_pools=("a", "b"),
    used_by=("b",),
    usd_per_hour=UsdPerHour(5_000_000),
)


def plan_with(*idle: IdleReservation) -> Plan:
    return evolve(World(policy(node_pool())).decide(), idle_reservations=idle)


@pytest.mark.parametrize(
    ("idle", "words"),
    [
        (
            IDLE,
            "no EC2NodeClass selects it; on-demand launches of pool a: nodewright.dev/open-reservations leave; of pool "
            "b: nodewright.dev/open-reservations use",
        ),
        (
            evolve(IDLE, match_criteria=MatchCriteria.TARGETED),
            "no EC2NodeClass selects it; it matches pool a, b",
        ),
        (evolve(IDLE, why=WhyIdle.ENDING), "it ends too soon for a new node"),
        (
            evolve(IDLE, why=WhyIdle.NO_POOL_PERMITS_IT),
            "an EC2NodeClass selects it, but no pool of that class permits it",
        ),
        (evolve(IDLE, why=WhyIdle.REFUSED_LATELY), "it refused a launch lately, and is tried again"),
        (evolve(IDLE, why=WhyIdle.NO_POD_TAKES_IT), "no pod that waits takes it (pool a, b)"),
    ],
)
def test_each_cause_has_its_words(idle: IdleReservation, words: str) -> None:
    assert idle_words(idle) == words


def test_json_has_each_with_its_numbers_and_words() -> None:
    (told,) = json.loads(plan_json(plan_with(IDLE)))["idle_reservations"]
    assert (told["id"], told["unused"], told["total"], told["why"]) == ("cr-1", 5, 6, "no-class-selects-it")
    assert told["usd_per_hour"] == "5.000000"
    assert told["words"].startswith("no EC2NodeClass selects it")


def test_a_plan_without_any_says_nothing_of_it() -> None:
    assert list(idle_section(plan_with())) == []


def test_the_screen_counts_the_places_and_names_each_reservation() -> None:
    text = printed(Group(*idle_section(plan_with(IDLE, evolve(IDLE, id="cr-2", unused=1, usd_per_hour=None)))))
    assert "Idle reserved capacity 6 places" in text
    assert "cr-1" in text
    assert "cr-2" in text
    assert "5 of 6" in text
