"""A trial of one machine takes one, also where a machine goes before its replacement is there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.model.replacement import RolloutWaits
from engine.model.upkeep import Upkeep
from tests.builders import minutes
from tests.disruption.going_world import GoingWorld, kept, of, served, steady

SOAK = timedelta(hours=2)


def four(canaries: int) -> GoingWorld:
    pool = steady(upkeep=Upkeep(surge=0, canaries=canaries, soak=SOAK))
    return of(*(served(f"llm-{number}") for number in range(4)), pool=pool).started()


@pytest.mark.parametrize("canaries", [1, 2])
def test_no_more_go_than_are_on_trial_until_these_are_proven(canaries: int) -> None:
    one = four(canaries)
    one.new_image()
    gone: set[str] = set()
    for _ in range(8):
        plan = one.turn(minutes(5))
        gone |= {each.record.claim for each in plan.removals}
        assert len(gone) <= canaries
    assert len(gone) == canaries
    waiting = kept(plan, RolloutWaits)
    assert len(waiting) == 4 - canaries
    assert {each.reason.on_trial for each in waiting if isinstance(each.reason, RolloutWaits)} == {canaries}


def test_the_rest_follow_once_the_trial_is_over() -> None:
    one = four(1)
    old = {each.claim for each in one.running()}
    one.new_image()
    for _ in range(60):
        one.turn(minutes(10))
    assert old.isdisjoint(each.claim for each in one.running())
