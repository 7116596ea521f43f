"""Which nodes are opened when what is there does not do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import Operator, Requirement
from engine.model.pod import Pod
from engine.model.refusal import TooFewValues
from engine.scheduling.problem import PoolState, Problem, Solution
from engine.scheduling.solve import solve
from engine.scheduling.topology.neighbourhood import couplings
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    G6F_LARGE,
    M5_LARGE,
    PRICES,
    ZONES,
    existing,
    instance_type,
    node_pool,
    option,
    pod,
    pool_state,
    requirement,
    taint,
    toleration,
    usd,
)
from tests.scheduling.tied_pods import port, spread, term, tied

TEAM = "example.com/team"
DEAR = {**PRICES, "g5.12xlarge": "3.5"}


def gpu_pods(count: int, **more: object) -> list[Pod]:
    return [pod(f"pod-{number}", cpu="2", memory="13Gi", gpu=1, **more) for number in range(count)]  # type: ignore[arg-type]


def planned(pods: Iterable[Pod], *pools: PoolState, **more: object) -> Solution:
    return solve(Problem(pods=tuple(pods), existing=(), pools=pools, **more))  # type: ignore[arg-type]


def types_of(solution: Solution) -> dict[str, int]:
    return dict(Counter(node.option.instance_type.name for node in solution.new_nodes))


def test_pods_that_stay_on_one_node_get_one_that_holds_all_of_them_however_cheap_smaller_ones_are() -> None:
    together = [tied(f"pod-{number}", cpu="2", memory="13Gi", gpu=1, near=[term(keys.HOSTNAME)]) for number in range(3)]
    solution = planned(together, pool_state())
    assert types_of(solution) == {"g5.12xlarge": 1}
    assert solution.unplaced == ()


def test_pods_that_stay_on_one_node_do_not_begin_on_what_others_leave_where_not_all_of_them_fit() -> None:
    large = pod("large", cpu="2", memory="13Gi", gpu=3)
    together = [tied(f"pod-{number}", cpu="1", memory="13Gi", gpu=1, near=[term(keys.HOSTNAME)]) for number in range(2)]
    solution = planned([large, *together], pool_state())
    assert solution.unplaced == ()
    assert {each.pods for each in solution.new_nodes} == {(large.key,), tuple(each.key for each in together)}


@pytest.mark.parametrize(
    ("tie", "most"),
    [
        ({"ports": [port(80)]}, 1),
        ({"apart": [term(keys.HOSTNAME)]}, 1),
        ({"spreads": [spread(keys.HOSTNAME, 2), spread(keys.ZONE)]}, 2),
        ({"spreads": [spread(keys.ZONE)]}, None),
        ({"near": [term(keys.HOSTNAME)]}, None),
    ],
)
def test_no_more_pods_are_reckoned_with_on_one_more_node_than_go_there(
    tie: dict[str, list[object]], most: int | None
) -> None:
    [coupling] = couplings([tied(f"pod-{number}", **tie) for number in range(2)], (), ()).couplings  # type: ignore[arg-type]
    assert coupling.most_on_a_new_node == most


@pytest.mark.parametrize(
    ("pods", "prices", "types"),
    [
        (2, PRICES, {"g5.xlarge": 2}),
        (4, PRICES, {"g5.xlarge": 4}),
        (4, DEAR, {"g5.12xlarge": 1}),
        (5, DEAR, {"g5.12xlarge": 1, "g5.xlarge": 1}),
        (8, DEAR, {"g5.12xlarge": 2}),
        (3, DEAR, {"g5.xlarge": 3}),
    ],
)
def test_one_large_node_is_weighed_against_several_small_ones(
    pods: int, prices: dict[str, str], types: dict[str, int]
) -> None:
    solution = planned(gpu_pods(pods), pool_state(prices=prices))
    assert types_of(solution) == types
    assert solution.unplaced == ()


def test_at_equal_price_for_each_pod_fewer_nodes_are_launched() -> None:
    assert types_of(planned(gpu_pods(4), pool_state(prices={**PRICES, "g5.12xlarge": "4.0"}))) == {"g5.12xlarge": 1}


def test_where_daemons_make_the_small_type_too_small_the_next_one_is_taken() -> None:
    small = option(G5_XLARGE, allocatable={"memory": "12Gi"})
    state = pool_state(options=[small, option(G5_2XLARGE), option(G5_12XLARGE)])
    assert types_of(planned(gpu_pods(2), state)) == {"g5.2xlarge": 2}


def test_the_pool_with_more_weight_wins_whatever_it_costs() -> None:
    dear = pool_state(node_pool("dear", weight=10), types=[G5_12XLARGE])
    cheap = pool_state(node_pool("cheap"), types=[G5_XLARGE])
    assert types_of(planned(gpu_pods(1), dear, cheap)) == {"g5.12xlarge": 1}


def test_pools_of_equal_weight_compete_on_price() -> None:
    dear = pool_state(node_pool("a"), types=[G5_2XLARGE])
    cheap = pool_state(node_pool("b"), types=[G5_XLARGE])
    assert [node.node_pool for node in planned(gpu_pods(1), dear, cheap).new_nodes] == ["b"]


def test_pools_of_equal_weight_and_price_are_taken_by_name() -> None:
    pools = [pool_state(node_pool(name), types=[G5_XLARGE]) for name in ("b", "a")]
    assert [node.node_pool for node in planned(gpu_pods(1), *pools).new_nodes] == ["a"]


def test_a_pool_with_a_soft_taint_comes_after_those_without() -> None:
    soft = pool_state(node_pool("soft", weight=10, taints=[taint("gpu", effect="PreferNoSchedule")]))
    plain = pool_state(node_pool("plain"))
    assert {node.node_pool for node in planned(gpu_pods(1), soft, plain).new_nodes} == {"plain"}
    tolerant = gpu_pods(1, tolerations=[toleration("gpu")])
    assert {node.node_pool for node in planned(tolerant, soft, plain).new_nodes} == {"soft"}
    assert {node.node_pool for node in planned(gpu_pods(1), soft).new_nodes} == {"soft"}


def test_startup_taints_keep_no_pod_away() -> None:
    state = pool_state(node_pool(startup_taints=[taint("starting")]))
    assert types_of(planned(gpu_pods(1), state)) == {"g5.xlarge": 1}


def test_what_a_pod_leaves_of_a_new_node_serves_later_pods() -> None:
    smaller = [pod(f"cpu-{number}", cpu="1", memory="1Gi") for number in range(2)]
    solution = planned([*gpu_pods(1), *smaller], pool_state(types=[G5_XLARGE, M5_LARGE]))
    assert types_of(solution) == {"g5.xlarge": 1}
    assert len(solution.new_nodes[0].pods) == 3


def test_nodes_of_equal_price_are_spread_over_zones() -> None:
    solution = planned(gpu_pods(4), pool_state(zones=ZONES))
    assert Counter(node.option.offering.zone for node in solution.new_nodes) == {
        "us-east-1a": 2,
        "us-east-1b": 1,
        "us-east-1c": 1,
    }


def test_the_zone_with_the_fewest_nodes_of_the_pool_takes_the_next() -> None:
    running = [
        existing(f"node-{zone}", labels={keys.ZONE: zone, keys.NODE_POOL: "gpu"}, room={"nvidia.com/gpu": 0})
        for zone in ("us-east-1a", "us-east-1b")
    ]
    solution = solve(Problem(tuple(gpu_pods(1)), tuple(running), (pool_state(zones=ZONES),)))
    assert [node.option.offering.zone for node in solution.new_nodes] == ["us-east-1c"]


def test_a_cheaper_zone_wins_over_spreading() -> None:
    options = [option(zone=zone, price=price) for zone, price in (("us-east-1a", "1.0"), ("us-east-1b", "0.9"))]
    solution = planned(gpu_pods(3), pool_state(options=options))
    assert {node.option.offering.zone for node in solution.new_nodes} == {"us-east-1b"}


def test_spot_is_bought_where_it_is_permitted_and_cheaper() -> None:
    state = pool_state(capacity_types=(keys.ON_DEMAND, keys.SPOT))
    assert planned(gpu_pods(1), state).new_nodes[0].option.offering.capacity_type == keys.SPOT
    on_demand = gpu_pods(1, selector={keys.CAPACITY_TYPE: keys.ON_DEMAND})
    assert planned(on_demand, state).new_nodes[0].option.offering.capacity_type == keys.ON_DEMAND


def test_an_offering_without_a_price_is_never_bought() -> None:
    state = pool_state(options=[option(G5_XLARGE, price=None), option(G5_2XLARGE)])
    assert types_of(planned(gpu_pods(1), state)) == {"g5.2xlarge": 1}


def test_an_offering_that_refused_lately_is_passed_over() -> None:
    state = pool_state(options=[option(G5_XLARGE, is_available=False), option(G5_2XLARGE)])
    assert types_of(planned(gpu_pods(1), state)) == {"g5.2xlarge": 1}


def test_the_smallest_type_that_fits_is_bought_although_gpus_stay_unused() -> None:
    eight = instance_type("p4d.24xlarge", vcpus=96, memory_gib=1152, accelerators={"nvidia.com/gpu": 8})
    state = pool_state(types=[G5_12XLARGE, eight], prices={**PRICES, "p4d.24xlarge": "32"})
    counts = [(requirement(keys.INSTANCE_GPU_COUNT, "In", "2", "4", "8"),)]
    assert types_of(planned(gpu_pods(1, affinity=counts), state)) == {"g5.12xlarge": 1}


@pytest.mark.parametrize("gpu", [None, 0])
def test_a_pod_without_an_accelerator_request_gets_no_new_accelerated_node(gpu: int | None) -> None:
    solution = planned([pod(gpu=gpu)], pool_state(types=[G5_XLARGE, G6F_LARGE]))
    assert solution.new_nodes == ()
    assert [told.refusal.code for told in solution.unplaced[0].refusals] == ["gpu-pool-closed"]


@pytest.mark.parametrize("priority", [0, 100])
def test_a_pod_without_a_request_rides_on_a_gpu_node_that_another_pod_needs(priority: int) -> None:
    asking, other = pod("asking", gpu=1), pod("other", cpu="1", priority=priority)
    solution = planned([asking, other], pool_state(types=[G5_XLARGE]))
    assert solution.unplaced == ()
    assert [each.pods for each in solution.new_nodes] == [(asking.key, other.key)]


def test_a_pool_open_to_all_pods_serves_pods_without_a_request() -> None:
    state = pool_state(node_pool(open_to_all_pods=True), types=[G5_XLARGE])
    assert types_of(planned([pod()], state)) == {"g5.xlarge": 1}


def test_a_cheap_fractional_gpu_type_is_no_place_for_cpu_pods() -> None:
    state = pool_state(types=[G6F_LARGE, M5_LARGE])
    assert types_of(planned([pod()], state)) == {"m5.large": 1}


def test_an_urgent_cpu_pod_does_not_take_the_gpu_node_that_another_pod_needs() -> None:
    urgent, wanting = pod("urgent", memory="13Gi", priority=100), pod("wanting", memory="7Gi", gpu=1)
    solution = planned([urgent, wanting], pool_state(types=[G5_XLARGE]))
    assert [[key.name for key in node.pods] for node in solution.new_nodes] == [["wanting"]]
    assert [unplaced.pod.name for unplaced in solution.unplaced] == ["urgent"]


def test_next_best_types_are_named_with_what_the_same_pods_would_cost_there() -> None:
    node = planned(gpu_pods(4), pool_state(prices=DEAR, capacity_types=(keys.ON_DEMAND, keys.SPOT))).new_nodes[0]
    assert (node.option.offering.key, node.option.usd_per_hour) == ("g5.12xlarge/us-east-1a/spot", usd("1.4"))
    assert [(lost.offering, lost.usd_per_hour, lost.extra_usd_per_hour) for lost in node.lost] == [
        ("g5.xlarge/us-east-1a/spot", usd("0.4"), usd("0.2")),
        ("g5.2xlarge/us-east-1a/spot", usd("0.48"), usd("0.52")),
        ("g5.12xlarge/us-east-1a/on-demand", usd("3.5"), usd("2.1")),
    ]


class TestCustomKeys:
    """A custom key of a pool with several values has no value on the options."""

    several = node_pool(requirements=[requirement(TEAM, "In", "b", "a")])

    def label(self, pods: list[Pod], **more: object) -> list[str]:
        pool = evolve(self.several, **more)  # type: ignore[arg-type]
        return sorted(str(node.labels.get(TEAM)) for node in planned(pods, pool_state(pool)).new_nodes)

    def test_the_least_value_is_given_when_no_pod_says_which(self) -> None:
        assert self.label(gpu_pods(1)) == ["a"]

    def test_the_pods_value_is_given_when_the_pool_permits_it(self) -> None:
        assert self.label(gpu_pods(1, selector={TEAM: "b"})) == ["b"]

    def test_pods_that_want_different_values_get_different_nodes(self) -> None:
        small = [pod(team, gpu=0, cpu="1", selector={TEAM: team}) for team in ("a", "b")]
        assert self.label(small, open_to_all_pods=True) == ["a", "b"]

    def test_a_value_that_the_pool_forbids_is_refused_with_both_sides(self) -> None:
        solution = planned(gpu_pods(1, selector={TEAM: "c"}), pool_state(self.several))
        refusal = solution.unplaced[0].refusals[0].refusal
        assert (refusal.code, refusal.key, refusal.wanted, refusal.offered) == (  # type: ignore[union-attr]
            "requirement-mismatch",
            TEAM,
            "c",
            "a, b",
        )

    def test_a_key_that_must_exist_gets_some_value_and_one_that_may_be_absent_none(self) -> None:
        assert self.label(gpu_pods(1), requirements=(requirement(TEAM, "Exists"),)) == ["any"]
        assert self.label(gpu_pods(1), requirements=(requirement(TEAM, "NotIn", "a"),)) == ["None"]

    def test_a_label_of_the_pool_is_not_chosen_again(self) -> None:
        pool = evolve(self.several, labels={TEAM: "b"})
        assert planned(gpu_pods(1), pool_state(pool)).new_nodes[0].labels[TEAM] == "b"


def test_min_values_bar_a_pool_whose_types_show_too_few() -> None:
    flexible = Requirement(keys.INSTANCE_TYPE, Operator.EXISTS, min_values=3)
    pool = node_pool(requirements=[flexible])
    assert types_of(planned(gpu_pods(1), pool_state(pool))) == {"g5.xlarge": 1}
    refused = planned(gpu_pods(1), pool_state(pool, types=[G5_XLARGE, G5_2XLARGE])).unplaced[0].refusals[0].refusal
    assert refused == TooFewValues(keys.INSTANCE_TYPE, min_values=3, left=("g5.2xlarge", "g5.xlarge"))


class TestBaseCapacity:
    def test_missing_nodes_are_launched_without_pods_at_the_cheapest(self) -> None:
        solution = planned([], pool_state(node_pool(min_nodes=2), zones=ZONES))
        assert types_of(solution) == {"g5.xlarge": 2}
        assert {node.option.offering.zone for node in solution.new_nodes} == {"us-east-1a", "us-east-1b"}
        assert all(node.for_base_capacity and node.pods == () for node in solution.new_nodes)

    def test_nodes_launched_for_pods_count_towards_it(self) -> None:
        solution = planned(gpu_pods(1), pool_state(node_pool(min_nodes=1)))
        assert [(node.for_base_capacity, len(node.pods)) for node in solution.new_nodes] == [(False, 1)]

    def test_nodes_that_are_there_count_towards_it(self) -> None:
        assert planned([], pool_state(node_pool(min_nodes=2), nodes=2)).new_nodes == ()

    def test_a_static_pool_is_filled_up_and_makes_no_node_for_a_pod(self) -> None:
        state = pool_state(node_pool(replicas=1), types=[G5_XLARGE])
        solution = planned(gpu_pods(2), state)
        assert [(node.for_base_capacity, len(node.pods)) for node in solution.new_nodes] == [(True, 1)]
        assert [told.refusal.code for told in solution.unplaced[0].refusals] == ["pool-is-static"]

    def test_pods_use_a_static_pools_coming_node_before_another_is_launched(self) -> None:
        static = pool_state(node_pool("static", replicas=1), types=[G5_XLARGE])
        solution = planned(gpu_pods(1), static, pool_state(node_pool("dynamic", weight=10)))
        assert [node.node_pool for node in solution.new_nodes] == ["static"]

    def test_a_shortfall_tells_the_limit_that_causes_it(self) -> None:
        solution = planned([], pool_state(node_pool(min_nodes=3, limits={"nodes": 2})))
        assert len(solution.new_nodes) == 2
        short = solution.base_shortfalls[0]
        assert (short.node_pool, short.wanted, short.have) == ("gpu", 3, 2)
        assert (short.refusal.code, short.refusal.planned) == ("limit-reached", 2)  # type: ignore[union-attr]

    def test_a_shortfall_tells_that_nothing_has_a_price(self) -> None:
        solution = planned([], pool_state(node_pool(min_nodes=1), prices={}))
        assert [short.refusal.code for short in solution.base_shortfalls] == ["no-offering"]


def test_an_empty_problem_has_an_empty_solution() -> None:
    assert planned([]) == Solution((), (), ())
