"""What a plan leaves to time is told with its numbers, and what only a person can change is not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from attrs import evolve

from engine.model.drain_stay import Drains
from engine.model.money import UsdPerHour
from engine.model.plan import Kept, Plan
from engine.model.replacement import AwaitsReplacement, RolloutWaits
from engine.model.stay import (
    BelowConsolidateAfter,
    BudgetExhausted,
    ConsolidationOff,
    InUse,
    NotInitialized,
    OutsideWindow,
    StayReason,
)
from engine.report.later_words import later_words
from tests.builders import NOON, minutes, node_pool, pod
from tests.decide.world import World, policy

HOUR = timedelta(hours=1)


def plan(*reasons: StayReason, pods: int = 0) -> Plan:
    """A first plan with a launch for each pod, and machines that stay for these reasons."""
    decided = World(policy(node_pool()), [pod(f"llm-{number}", gpu=1) for number in range(pods)]).decide()
    kept = tuple(
        Kept(f"gpu-{number}", None, "gpu", "g5.xlarge", "us-east-1b", "spot", UsdPerHour(0), reason)
        for number, reason in enumerate(reasons)
    )
    return evolve(decided, kept=kept)


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ((), ""),
        ((InUse(3, 0), ConsolidationOff("static"), OutsideWindow("nights", ("night",), None)), ""),
        ((NotInitialized(),), "1 node comes up"),
        ((Drains(2), Drains(1)), "2 nodes drain"),
        ((AwaitsReplacement(("gpu-9",)),), "1 node waits for another in its place"),
        ((RolloutWaits(1, 0, 1),), "1 node waits for a trial"),
        (
            (RolloutWaits(1, 0, 1, NOON + minutes(9)), RolloutWaits(1, 0, 1, NOON + minutes(7))),
            "2 nodes wait for a trial, for 7m at least",
        ),
        ((BudgetExhausted("gpu", 1, 1), InUse(1, 0)), "1 node waits for a budget"),
        ((OutsideWindow("nights", ("night",), NOON + 8 * HOUR),), "1 node waits for a window that opens in 8h"),
        (
            (OutsideWindow("a", ("x",), NOON + 8 * HOUR), OutsideWindow("b", ("y",), NOON + HOUR)),
            "2 nodes wait for windows, the first opens in 1h",
        ),
        ((BelowConsolidateAfter(NOON, NOON + minutes(5)),), "1 node stands empty, for 5m yet"),
        (
            (NotInitialized(), BudgetExhausted("gpu", 1, 1), BelowConsolidateAfter(NOON, NOON + minutes(5))),
            "1 node comes up, 1 node waits for a budget, 1 node stands empty, for 5m yet",
        ),
    ],
)
def test_each_kind_of_waiting_is_counted_and_told_until_when(reasons: tuple[StayReason, ...], words: str) -> None:
    assert later_words(plan(*reasons)) == words


def test_what_a_plan_launches_comes_up_later() -> None:
    assert later_words(plan(NotInitialized(), pods=1)) == "2 nodes come up"
