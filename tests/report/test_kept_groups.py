"""Nodes that stay for the same kind of reason are told in one line of the plan."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.model.plan import Kept
from engine.model.replacement import AwaitsReplacement, NewlyUp
from engine.model.stay import StayReason
from engine.report.plan_changes import kept_section
from tests.builders import NOON, minutes, usd
from tests.report.golden_text import printed
from tests.report.scenes import plan


def told(*reasons: StayReason) -> str:
    kept = tuple(
        Kept(f"gpu-{number}", f"node-{number}", "gpu", "g5.xlarge", "us-east-1a", "spot", usd("1"), reason)
        for number, reason in enumerate(reasons)
    )
    return "".join(
        " ".join(printed(part, width=200).split())
        for part in kept_section(evolve(plan(), kept=kept), NOON, details=False)
    )


def up_since(ago: int) -> NewlyUp:
    return NewlyUp(NOON - minutes(ago), NOON + minutes(10 - ago))


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ((up_since(2), up_since(7)), "up for 7m, may go for money in 3m, the first"),
        ((up_since(2), up_since(2)), "up for 2m, may go for money in 8m"),
        (
            (AwaitsReplacement(("a",)), AwaitsReplacement(("b",))),
            "goes once a is up; goes once b is up",
        ),
        (
            tuple(AwaitsReplacement((name,)) for name in "abcde"),
            "goes once a is up; goes once b is up; goes once c is up; and 2 more such",
        ),
    ],
)
def test_what_holds_for_each_of_a_group_is_told_once_and_the_earliest_of_times(
    reasons: tuple[StayReason, ...], words: str
) -> None:
    assert told(*reasons).endswith(words)
