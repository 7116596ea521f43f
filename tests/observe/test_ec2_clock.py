"""By how much a machine's clock differs from EC2's, as the dates of EC2's answers tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from moto import mock_aws

from engine.model.ledger import Ledger
from engine.model.policy import Policy
from engine.observe.ec2 import Ec2Reader
from engine.observe.ec2_clock import Ec2Clock
from tests import builders
from tests.builders import NOON, minutes

NONE = timedelta()


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def answer(dated: datetime | str) -> dict[str, Any]:
    date = dated if isinstance(dated, str) else format_datetime(dated, usegmt=True)
    return {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}


def learnt(dated: datetime | str, *, asked_at: datetime = NOON, answered_at: datetime = NOON) -> timedelta:
    clock = Ec2Clock(lambda: answered_at)
    clock.learn(answer(dated), asked_at)
    return clock.ahead


@pytest.mark.parametrize("ahead", [minutes(20), minutes(-20), minutes(60 * 24), seconds(31), seconds(-31)])
def test_a_clock_that_is_wrong_is_known_by_how_much(ahead: timedelta) -> None:
    assert learnt(NOON - ahead) == ahead


@pytest.mark.parametrize("ahead", [seconds(30), seconds(-30), seconds(1), NONE])
def test_clocks_that_are_kept_right_count_as_the_same(ahead: timedelta) -> None:
    assert learnt(NOON - ahead) == NONE


def test_an_answer_that_took_long_is_no_difference_whenever_it_was_dated() -> None:
    for dated in (NOON, NOON + minutes(2), NOON + minutes(5)):
        assert learnt(dated, answered_at=NOON + minutes(5)) == NONE
    assert learnt(NOON + minutes(7), answered_at=NOON + minutes(5)) == minutes(-2)


@pytest.mark.parametrize("date", ["", "a while ago", "99 Foo 2026"])
def test_an_answer_without_a_date_says_nothing(date: str) -> None:
    assert learnt(date) == NONE
    clock = Ec2Clock(lambda: NOON)
    clock.learn({}, NOON)
    assert clock.ahead == NONE


def test_what_differs_by_a_second_more_or_less_is_the_same_difference() -> None:
    clock = Ec2Clock(lambda: NOON)
    found = []
    for ahead in (seconds(100), seconds(101), seconds(99), seconds(131), seconds(3)):
        clock.learn(answer(NOON - ahead), NOON)
        found.append(clock.ahead)
    assert found == [seconds(100), seconds(100), seconds(100), seconds(131), NONE]
    assert clock.now() == NOON


@pytest.mark.parametrize("ahead", [minutes(20), minutes(-20), NONE])
def test_the_cloud_facts_tell_by_how_much_this_machines_clock_differs(
    ahead: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        reader = Ec2Reader(None, "us-east-1", now=lambda: datetime.now(UTC) + ahead)
        facts = reader.read(builders.environment(), Policy(node_pools=(), node_classes=()), None, Ledger())
    assert round(facts.clock_ahead / minutes(1)) == ahead / minutes(1)
