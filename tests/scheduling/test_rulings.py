"""What rules say of instance types: barred ones are bought for nobody whom they bar, liked ones come first."""

from __future__ import annotations

from itertools import permutations

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.ledger import Unavailable
from engine.model.pod import Pod
from engine.model.refusal import NoTypeFits, OfferingsUnavailable, RuleForbids, TooFewValues
from engine.policy.rules.ruling import Bar, Ruling, Rulings
from engine.scheduling.problem import ExistingNode, PoolState, Problem, Reservation, Solution
from engine.scheduling.solve import solve
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    NOON,
    existing,
    minutes,
    node_pool,
    option,
    pod,
    pool_state,
    requirement,
)

NO = Bar("floor", "too small")
ERRED = Bar("odd", "cannot be judged", error="no such key", is_forbidden=False)


def bars(*types: str, by: Bar = NO, pool: str = "gpu", capacity_type: str = keys.ON_DEMAND) -> Rulings:
    return Rulings(((pool, Ruling(bars=tuple(((name, capacity_type), by) for name in sorted(types)))),))


def likes(pool: str = "gpu", **scores: float) -> Rulings:
    """``likes(g5_2xlarge=0.5)``."""
    named = ((name.replace("_", "."), score) for name, score in scores.items())
    return Rulings(((pool, Ruling(scores=tuple(sorted(((name, keys.ON_DEMAND), score) for name, score in named)))),))


def solved(
    pods: list[Pod],
    rulings: dict[str, Rulings],
    *pools: PoolState,
    nodes: tuple[ExistingNode, ...] = (),
    **more: object,
) -> Solution:
    ruled = {one.key: rulings[one.key.name] for one in pods if one.key.name in rulings}
    return solve(Problem(tuple(pods), nodes, pools or (pool_state(),), rulings=ruled, **more))  # type: ignore[arg-type]


def bought(solution: Solution) -> list[tuple[str, list[str]]]:
    """Each new node's type with the names of its pods."""
    return [(each.option.instance_type.name, [key.name for key in each.pods]) for each in solution.new_nodes]


def placed(solution: Solution) -> dict[str, str | None]:
    return {each.pod.name: each.node or each.claim for each in solution.placements}


# A node of the pool that is there, and one that is on its way.
STANDING = existing("a", labels={keys.NODE_POOL: "gpu"})
COMING = existing("b", labels={keys.NODE_POOL: "gpu"}, in_flight=True)


def test_a_barred_type_is_not_bought_and_the_next_one_is() -> None:
    assert bought(solved([pod("one", gpu=1)], {})) == [("g5.xlarge", ["one"])]
    assert bought(solved([pod("one", gpu=1)], {"one": bars("g5.xlarge")})) == [("g5.2xlarge", ["one"])]


def test_a_type_that_a_rule_erred_on_is_not_bought() -> None:
    assert bought(solved([pod("one", gpu=1)], {"one": bars("g5.xlarge", by=ERRED)})) == [("g5.2xlarge", ["one"])]


def test_a_bar_holds_in_its_own_pool_and_at_its_own_capacity_type_only() -> None:
    spot = pool_state(capacity_types=(keys.SPOT,))
    assert bought(solved([pod("one", gpu=1)], {"one": bars("g5.xlarge")}, spot)) == [("g5.xlarge", ["one"])]
    other = pool_state(node_pool("other"))
    assert bought(solved([pod("one", gpu=1)], {"one": bars("g5.xlarge")}, other)) == [("g5.xlarge", ["one"])]


def test_a_pod_does_not_go_onto_a_node_of_this_plan_that_is_barred_for_it() -> None:
    big, little = pod("big", gpu=1, cpu="2", priority=5), pod("little", cpu="1", memory="1Gi", gpu=None)
    pool = pool_state(node_pool(open_to_all_pods=True), types=(G5_XLARGE, G5_12XLARGE))
    assert bought(solved([big, little], {}, pool)) == [("g5.xlarge", ["big", "little"])]
    ruled = solved([big, little], {"little": bars("g5.xlarge")}, pool)
    assert bought(ruled) == [("g5.12xlarge", ["big", "little"])], "the one node that both may have"


def test_a_node_that_stands_is_a_fact_and_one_that_is_on_its_way_is_not() -> None:
    one = pod("one", gpu=1)
    ruled = {"one": bars("g5.xlarge")}
    assert placed(solved([one], ruled, nodes=(STANDING,))) == {"one": "a"}
    assert placed(solved([one], {}, nodes=(COMING,))) == {"one": "claim-b"}
    coming = solved([one], ruled, nodes=(COMING,))
    assert (placed(coming), bought(coming)) == ({}, [("g5.2xlarge", ["one"])])


def test_a_pod_that_was_planned_for_a_claim_leaves_it_when_a_rule_forbids_it_and_stays_when_one_errs() -> None:
    one = pod("one", gpu=1)
    before = (Reservation(one.key, node=None, claim="claim-b"),)
    forbidden = solved([one], {"one": bars("g5.xlarge")}, nodes=(COMING,), reservations=before)
    assert (placed(forbidden), bought(forbidden)) == ({}, [("g5.2xlarge", ["one"])])
    erred = solved([one], {"one": bars("g5.xlarge", by=ERRED)}, nodes=(COMING,), reservations=before)
    assert (placed(erred), bought(erred)) == ({"one": "claim-b"}, [])


def test_a_liked_type_wins_at_any_price() -> None:
    assert bought(solved([pod("one", gpu=1)], {"one": likes(g5_12xlarge=0.1)})) == [("g5.12xlarge", ["one"])]


def test_price_decides_between_types_that_are_liked_alike() -> None:
    both = likes(g5_12xlarge=0.5, g5_2xlarge=0.5)
    assert bought(solved([pod("one", gpu=1)], {"one": both})) == [("g5.2xlarge", ["one"])]


def test_a_pools_weight_comes_before_what_a_pod_likes() -> None:
    first = pool_state(node_pool("first", weight=10), types=(G5_XLARGE,))
    second = pool_state(node_pool("second"), types=(G5_2XLARGE,))
    solution = solved([pod("one", gpu=1)], {"one": likes("second", g5_2xlarge=1.0)}, first, second)
    assert bought(solution) == [("g5.xlarge", ["one"])]


def test_types_that_are_barred_do_not_count_towards_min_values() -> None:
    needs = requirement(keys.INSTANCE_TYPE, "Exists")
    pool = node_pool(requirements=[evolve(needs, min_values=2)])
    waiting = pod("one", gpu=1)
    assert bought(solved([waiting], {"one": bars("g5.xlarge")}, pool_state(pool))) == [("g5.2xlarge", ["one"])]
    barred = solved([waiting], {"one": bars("g5.xlarge", "g5.2xlarge")}, pool_state(pool))
    assert why(barred) == TooFewValues(keys.INSTANCE_TYPE, min_values=2, left=("g5.12xlarge",))


# --- refusals


def why(solution: Solution) -> object:
    ((refusal,),) = [[each.refusal for each in answer.refusals] for answer in solution.unplaced]
    return refusal


def test_a_pod_that_rules_leave_no_type_hears_which_rule_removed_the_last_of_how_many() -> None:
    last = Bar("z-last", "the last word")
    found = Rulings(
        (
            (
                "gpu",
                Ruling(
                    bars=(
                        (("g5.12xlarge", keys.ON_DEMAND), last),
                        (("g5.2xlarge", keys.ON_DEMAND), ERRED),
                        (("g5.xlarge", keys.ON_DEMAND), NO),
                    )
                ),
            ),
        )
    )
    refusal = why(solved([pod("one", gpu=1)], {"one": found}))
    assert refusal == RuleForbids(
        "z-last", "the last word", types=3, errors=1, sample="no such key", example="g5.12xlarge/on-demand"
    )


def test_only_types_that_would_fit_count() -> None:
    refusal = why(solved([pod("one", gpu=2)], {"one": bars("g5.12xlarge", "g5.2xlarge", "g5.xlarge")}))
    assert refusal == RuleForbids("floor", "too small", types=1, example="g5.12xlarge/on-demand")


def test_what_does_not_fit_anyhow_is_no_rules_doing() -> None:
    refusal = why(solved([pod("one", gpu=9)], {"one": bars("g5.12xlarge", "g5.2xlarge", "g5.xlarge")}))
    assert isinstance(refusal, NoTypeFits)


def test_a_type_that_is_left_and_out_for_now_is_what_the_pod_waits_for() -> None:
    pool = node_pool()
    refused = Unavailable(until=NOON + minutes(3), refusals=1, code="InsufficientInstanceCapacity")
    out = option(G5_2XLARGE, pool=pool, refused=refused)
    state = pool_state(pool, [option(G5_XLARGE, pool=pool), out])
    refusal = why(solved([pod("one", gpu=1)], {"one": bars("g5.xlarge")}, state))
    assert isinstance(refusal, OfferingsUnavailable)


# --- classes


def test_the_order_of_pods_changes_nothing_where_rulings_differ() -> None:
    pods = [pod(name, gpu=1) for name in ("a", "b", "c")]
    ruled = {"a": bars("g5.xlarge"), "b": likes(g5_12xlarge=1.0)}
    answers = {repr(solved(list(order), ruled, pool_state())) for order in permutations(pods)}
    assert len(answers) == 1


def test_equal_rulings_leave_pods_in_one_class_so_they_share_a_node() -> None:
    shared = likes(g5_12xlarge=1.0)
    pods = [pod(f"pod-{number}", gpu=1) for number in range(4)]
    solution = solved(pods, {one.key.name: shared for one in pods})
    assert bought(solution) == [("g5.12xlarge", [one.key.name for one in pods])]


@pytest.mark.parametrize("nothing", [{}, {"one": Rulings()}])
def test_without_rulings_the_answer_is_the_same_as_ever(nothing: dict[str, Rulings]) -> None:
    pods = [pod("one", gpu=1), pod("two", cpu="2", gpu=None)]
    assert repr(solved(pods, nothing)) == repr(solve(Problem(tuple(pods), (), (pool_state(),))))
