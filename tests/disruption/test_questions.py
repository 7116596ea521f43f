"""How often the scheduler is asked where the pods of machines that are to go would find another place: few times,
however many machines there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from attrs import evolve

from engine.decide import remembered
from engine.model import labels as keys
from engine.model.plan import Plan
from engine.model.policy import Budget, Disruption
from engine.model.quantity import NODES
from engine.model.replacement import AwaitsReplacement, DeleteFirst, NoPlace
from engine.model.upkeep import Upkeep
from engine.scheduling.problem import Problem, Solution
from engine.scheduling.within_waste import answered
from tests.builders import minutes, requirement
from tests.disruption.going_world import GoingWorld, kept, marks, of, served, steady

MACHINES = 12
Asked = Callable[[GoingWorld], tuple[Plan, int]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """A plan, and how many answers were needed for it; nothing is remembered."""
    counts = Counter[str]()

    def counted(problem: Problem, most_steps: int) -> Solution:
        counts["answers"] += 1
        return answered(problem, most_steps)

    monkeypatch.setattr("engine.decide.elsewhere.answered", counted)

    def plan_of(one: GoingWorld) -> tuple[Plan, int]:
        remembered._LAST.clear()
        before = counts["answers"]
        return one.decide(), counts["answers"] - before

    return plan_of


def one_pod_each(machines: int, limit: int) -> GoingWorld:
    """So many machines of one GPU, all of which is used; every one drifts."""
    pool = steady(
        requirements=[requirement(keys.INSTANCE_TYPE, "In", "g5.xlarge"), ON_DEMAND],
        upkeep=Upkeep(canaries=0),
        limits={NODES: limit},
    )
    one = of(*(served(f"p{number:02}") for number in range(machines)), pool=pool).started()
    assert one.types() == ["g5.xlarge"] * machines
    one.new_image()
    return one


ON_DEMAND = requirement(keys.CAPACITY_TYPE, "In", "on-demand")


def test_machines_for_which_a_limit_leaves_no_room_go_first_together(asked: Asked) -> None:
    one = one_pod_each(MACHINES, MACHINES)
    one.environment = evolve(one.environment, caps=evolve(one.environment.caps, removals=5))
    plan, answers = asked(one)
    assert [each.delete_first is not None for each in marks(plan)] == [True] * 5
    assert [len(each.refusals) for each in (mark.delete_first or DeleteFirst() for mark in marks(plan))] == [1] * 5
    told = kept(plan, NoPlace)
    assert len(told) == MACHINES - 5
    # All of them together, and once more with those that may go first off the limit; the pods that wait are the third.
    assert answers <= 3


def test_as_many_as_find_a_place_are_found_without_asking_about_each(asked: Asked) -> None:
    one = one_pod_each(MACHINES, MACHINES + 3)
    plan, answers = asked(one)
    assert len(plan.launches) == 3
    assert len(kept(plan, AwaitsReplacement)) == 3
    # Those that would be the oldest: of equals the first by name.
    awaiting = [each.claim for each in kept(plan, AwaitsReplacement)]
    assert awaiting == sorted(each.claim for each in one.running())[:3]
    assert answers <= 6


def test_pods_that_fit_on_nothing_but_another_machine_that_is_to_go_as_well_move_there() -> None:
    """Asked about together, neither machine's pods have a place: limits are full."""
    pool = steady(
        requirements=[requirement(keys.INSTANCE_TYPE, "In", "g5.12xlarge"), ON_DEMAND],
        upkeep=Upkeep(canaries=0),
        limits={NODES: 2},
    )
    one = of(served("a", gpu=3), served("b", gpu=3), pool=pool).started()
    for key in sorted(one.pods):
        small = served(f"{key.name}-small")
        one.pods[small.key] = small
    one.turn()
    one.finish([served("b"), served("b-small")])
    one.new_image()
    plan = one.decide()
    assert [mark.delete_first for mark in marks(plan)[:1]] == [None]


def test_moves_that_buy_nothing_are_asked_about_at_once(asked: Asked) -> None:
    pool = steady(
        requirements=[requirement(keys.INSTANCE_TYPE, "In", "g5.12xlarge"), ON_DEMAND],
        disruption=Disruption(consolidate_after=minutes(0), budgets=(Budget(percent=100),)),
    )
    one = of(*(served(f"p{number:02}", cpu="1") for number in range(32)), pool=pool).started()
    assert one.types() == ["g5.12xlarge"] * 8
    one.finish([served(f"p{number:02}") for number in range(32) if number % 4])
    one.now += minutes(60)
    one.turn()
    plan, answers = asked(one)
    assert len(plan.removals) == 6
    assert answers <= 3
