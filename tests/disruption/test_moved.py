"""Pods that moved for money do not move again at once, and each time it takes twice as long."""

from __future__ import annotations

from engine.disruption.moved import may_move_at, with_moved
from engine.model.ledger import Moved
from tests.builders import NOON, minutes
from tests.disruption.going_world import served

LIFE = minutes(10)
KEY = "default/ReplicaSet/llm"


def test_pods_that_never_moved_may_move() -> None:
    assert may_move_at([served("a")], {}, LIFE) is None


def test_the_next_time_is_twice_as_far_each_time_for_pods_that_came_since() -> None:
    moved = with_moved({}, [served("a", created=NOON - minutes(60))], NOON)
    assert moved == {KEY: Moved(NOON, 1)}
    again = served("b", created=NOON + minutes(1))
    assert may_move_at([again], moved, LIFE) == NOON + minutes(20)
    later = NOON + minutes(30)
    moved = with_moved(moved, [again], later)
    assert moved == {KEY: Moved(later, 2)}
    assert may_move_at([served("c", created=later)], moved, LIFE) == later + minutes(40)


def test_pods_of_the_set_that_have_not_moved_are_free_and_do_not_put_it_off() -> None:
    moved = with_moved({}, [served("a", created=NOON - minutes(60))], NOON)
    other = served("b", created=NOON - minutes(60))
    assert may_move_at([other], moved, LIFE) is None
    assert with_moved(moved, [other], NOON + minutes(5)) == {KEY: Moved(NOON + minutes(5), 1)}


def test_it_is_forgotten_after_two_weeks_and_never_longer_than_one() -> None:
    often = {KEY: Moved(NOON, 12)}
    assert may_move_at([served("a", created=NOON)], often, LIFE) == NOON + minutes(7 * 24 * 60)
    assert with_moved(often, [], NOON + minutes(14 * 24 * 60)) == {}
