"""What holds for every repacking."""

from __future__ import annotations

from random import Random

from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.model.money import total
from engine.scheduling.estate import Estate, vacated
from engine.scheduling.problem import Solution
from engine.scheduling.repacking import repacked
from engine.scheduling.solve import solve
from tests.scheduling.random_estates import after, answer_of, scattered
from tests.scheduling.solution_checker import faults

_QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_QUICK
@given(scattered(with_ties=True))
def test_a_repacked_cluster_is_not_repacked_again(estate: Estate) -> None:
    first = repacked(estate.problem, estate.movable)
    settled = after(estate, first)
    assert repacked(settled.problem, settled.movable).moves == ()


@_QUICK
@given(scattered())
def test_every_displaced_pod_gets_a_place_that_kubernetes_and_limits_accept(estate: Estate) -> None:
    found = repacked(estate.problem, estate.movable)
    going = [each for each in estate.movable if each.claim in found.going]
    there_already = faults(estate.problem, Solution((), (), ()))
    assert set(faults(vacated(estate.problem, going), answer_of(found))) <= set(there_already)


@_QUICK
@given(scattered(with_ties=True))
def test_what_is_promised_costs_what_it_says_and_never_more_than_before(estate: Estate) -> None:
    found = repacked(estate.problem, estate.movable)
    assert found.before == total(each.usd_per_hour for each in estate.movable)
    assert found.after == total(each.usd_per_hour for each in after(estate, found).movable)
    assert found.before - found.after == total(move.saving for move in found.moves)
    assert all(move.saving.micros > 0 for move in found.moves)


@_QUICK
@given(scattered(with_ties=True))
def test_the_scheduler_finds_a_place_for_all_once_the_nodes_are_gone(estate: Estate) -> None:
    found = repacked(estate.problem, estate.movable)
    going = [each for each in estate.movable if each.claim in found.going]
    assert solve(vacated(estate.problem, going)).unplaced == ()


@_QUICK
@given(scattered(with_ties=True))
def test_each_node_goes_or_has_a_reason_to_stay(estate: Estate) -> None:
    found = repacked(estate.problem, estate.movable)
    claims = sorted(each.claim for each in estate.movable)
    assert sorted([*found.going, *found.stays]) == claims


@_QUICK
@given(scattered(with_ties=True), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(estate: Estate, random: Random) -> None:
    problem = estate.problem
    mixed = evolve(
        problem,
        existing=tuple(random.sample(problem.existing, len(problem.existing))),
        pools=tuple(random.sample(problem.pools, len(problem.pools))),
        standing=tuple(random.sample(problem.standing, len(problem.standing))),
    )
    movable = [evolve(each, pods=tuple(random.sample(each.pods, len(each.pods)))) for each in estate.movable]
    random.shuffle(movable)
    assert repacked(mixed, movable) == repacked(problem, estate.movable)
