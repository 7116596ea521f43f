"""Which nodes go for which: one promise of repacking each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from attrs import evolve

from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NODES, NVIDIA_GPU, Resources
from engine.model.stay import NoOtherPlace, RepaidTooLate, SavesTooLittle, TooYoung
from engine.scheduling.movable import MovableNode, MoveCost
from engine.scheduling.problem import ExistingNode, PoolState, Problem
from engine.scheduling.repacking import Repacking, repacked
from engine.scheduling.topology.neighbourhood import StandingNode
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    M5_LARGE,
    PRICES,
    capacity_of,
    existing,
    instance_type,
    node_pool,
    pod,
    pool_state,
    usd,
)
from tests.scheduling.tied_pods import term, tied

G5_4XLARGE = instance_type("g5.4xlarge", vcpus=16, memory_gib=64, accelerators={NVIDIA_GPU: 1})
TYPES = (G5_XLARGE, G5_2XLARGE, G5_4XLARGE, G5_12XLARGE, M5_LARGE)
ALL_PRICES = {**PRICES, "g5.4xlarge": "1.6"}
POOL = node_pool(open_to_all_pods=True)


class Cluster:
    """Nodes of one pool with pods on them; each may go."""

    def __init__(self, state: PoolState | None = None) -> None:
        self.state = state or pool_state(POOL, types=TYPES, prices=ALL_PRICES)
        self.existing: list[ExistingNode] = []
        self.movable: list[MovableNode] = []
        self.standing: list[StandingNode] = []

    def node(
        self,
        name: str,
        kind: InstanceType,
        pods: Iterable[Pod] = (),
        *,
        capacity_type: str = keys.ON_DEMAND,
        price: str | None = None,
        **more: int,
    ) -> Cluster:
        own, labels = tuple(pods), {keys.NODE_POOL: "gpu", keys.CAPACITY_TYPE: capacity_type, keys.HOSTNAME: name}
        there = existing(name, kind, labels=labels)
        self.existing.append(evolve(there, room=there.room.less_each(each.placing.requests for each in own)))
        self.standing.append(StandingNode(name, there.labels, (), own))
        self.movable.append(
            MovableNode(
                node=name,
                claim=there.claim or "",
                node_pool="gpu",
                capacity_type=capacity_type,
                capacity=capacity_of(kind) + Resources({NODES: 1}),
                usd_per_hour=usd(price or ALL_PRICES[kind.name]),
                pods=own,
                **more,
            )
        )
        return self

    def problem(self, waiting: Sequence[Pod] = ()) -> Problem:
        used = sum((each.capacity for each in self.movable), Resources())
        state = evolve(self.state, used=used, nodes=len(self.movable))
        return Problem(tuple(waiting), tuple(self.existing), (state,), standing=tuple(self.standing))

    def repacked(self, cost: MoveCost = MoveCost(), waiting: Sequence[Pod] = ()) -> Repacking:
        return repacked(self.problem(waiting), self.movable, cost)


def gpu_pod(name: str, cpu: str = "3", **more: object) -> Pod:
    return pod(name, cpu=cpu, memory="8Gi", gpu=1, **more)  # type: ignore[arg-type]


def bought(found: Repacking) -> list[str]:
    return sorted(node.option.instance_type.name for move in found.moves for node in move.new_nodes)


def where(found: Repacking) -> Mapping[PodKey, str | None]:
    return {place.pod: place.node for move in found.moves for place in move.placements}


def test_three_large_nodes_at_a_third_go_for_three_small_ones_of_two_types() -> None:
    cluster = Cluster()
    for number, cpu in enumerate(["3", "3", "12"]):
        cluster.node(f"node-{number}", G5_12XLARGE, [gpu_pod(f"pod-{number}", cpu)])
    found = cluster.repacked()
    assert sorted(found.going) == ["claim-node-0", "claim-node-1", "claim-node-2"]
    assert bought(found) == ["g5.4xlarge", "g5.xlarge", "g5.xlarge"]
    assert (found.before, found.after) == (usd("17.1"), usd("3.6"))


def test_what_stands_is_filled_where_replacing_it_saves_too_little() -> None:
    cluster = Cluster().node("full", G5_12XLARGE, [gpu_pod("a"), gpu_pod("b")])
    for name in ("c", "d"):
        cluster.node(name, G5_2XLARGE, [gpu_pod(name)])
    found = cluster.repacked(MoveCost(least_share=Decimal("0.9")))
    assert where(found) == {PodKey("default", "c"): "full", PodKey("default", "d"): "full"}
    assert [move.saving for move in found.moves] == [usd("1.2"), usd("1.2")]


def test_a_node_stays_for_a_saving_below_the_least_and_says_both() -> None:
    cluster = Cluster().node("node", G5_2XLARGE, [gpu_pod("pod")])
    assert cluster.repacked(MoveCost(least_saving=usd("0.2"))).going == ("claim-node",)
    found = cluster.repacked(MoveCost(least_saving=usd("0.21")))
    assert found.stays == {"claim-node": SavesTooLittle(saving=usd("0.2"), least=usd("0.21"))}


def test_the_least_saving_is_a_share_of_what_goes_too() -> None:
    cluster = Cluster().node("node", G5_2XLARGE, [gpu_pod("pod")])
    assert cluster.repacked(MoveCost(least_share=Decimal("0.16"))).going == ("claim-node",)
    found = cluster.repacked(MoveCost(least_share=Decimal("0.2")))
    assert found.stays == {"claim-node": SavesTooLittle(saving=usd("0.2"), least=usd("0.24"))}


def test_spot_goes_for_spot_only_across_the_gap() -> None:
    state = pool_state(POOL, types=[G5_XLARGE], capacity_types=[keys.SPOT])
    for price, goes in (("0.46", ()), ("0.48", ("claim-node",))):
        cluster = Cluster(state).node("node", G5_2XLARGE, [gpu_pod("pod")], capacity_type=keys.SPOT, price=price)
        assert cluster.repacked().going == goes


def test_on_demand_goes_for_cheaper_spot_where_the_pool_permits_it() -> None:
    for sold, goes in (((keys.ON_DEMAND,), ()), ((keys.ON_DEMAND, keys.SPOT), ("claim-node",))):
        cluster = Cluster(pool_state(POOL, types=[G5_XLARGE], capacity_types=sold))
        assert cluster.node("node", G5_XLARGE, [gpu_pod("pod")]).repacked().going == goes


def test_a_move_that_repays_its_restarts_too_late_is_not_made() -> None:
    # 1.2 $/h for 600 s are 0.2 $, which 0.2 $/h repay in an hour.
    cluster = Cluster().node("node", G5_2XLARGE, [gpu_pod("pod")], warm_up_seconds=600)
    assert cluster.repacked(MoveCost(repaid_within_seconds=3600)).going == ("claim-node",)
    found = cluster.repacked(MoveCost(repaid_within_seconds=3599))
    assert found.stays == {"claim-node": RepaidTooLate(200_000, usd("0.2"), repaid_in=3600, within=3599)}


def test_a_node_younger_than_its_least_life_stays() -> None:
    cost = MoveCost(node_life_seconds=600)
    found = Cluster().node("node", G5_12XLARGE, [gpu_pod("pod")], age_seconds=599).repacked(cost)
    assert found.stays == {"claim-node": TooYoung(age_seconds=599, least_seconds=600)}
    assert Cluster().node("node", G5_12XLARGE, [gpu_pod("pod")], age_seconds=600).repacked(cost).going


def test_a_node_stays_whose_pods_have_no_other_place() -> None:
    cluster = Cluster(pool_state(POOL, options=())).node("node", G5_12XLARGE, [gpu_pod("pod")])
    assert cluster.repacked().stays == {"claim-node": NoOtherPlace(PodKey("default", "pod"), pods=1)}


def test_base_capacity_is_kept_on_the_cheapest_empty_nodes() -> None:
    state = pool_state(node_pool(open_to_all_pods=True, min_nodes=2), types=TYPES, prices=ALL_PRICES)
    cluster = Cluster(state).node("dear", G5_12XLARGE)
    for name in ("one", "two"):
        cluster.node(name, M5_LARGE)
    found = cluster.repacked()
    assert (found.going, bought(found)) == (("claim-dear",), [])


def test_pods_that_keep_apart_on_hosts_do_not_meet_on_one() -> None:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        alone = tied(name, cpu="3", memory="8Gi", gpu=1, apart=[term(keys.HOSTNAME)])
        cluster.node(name, G5_12XLARGE, [alone])
    found = cluster.repacked()
    assert bought(found) == ["g5.xlarge"] * 3


def test_pods_that_wait_have_what_is_free_before_those_that_could_move_there() -> None:
    cluster = Cluster(pool_state(POOL, options=()))
    cluster.node("roomy", G5_12XLARGE, [gpu_pod(name) for name in ("a", "b", "c")]).node(
        "node", G5_XLARGE, [gpu_pod("d")]
    )
    assert cluster.repacked().going == ("claim-node",)
    assert cluster.repacked(waiting=[gpu_pod("waiting")]).going == ()


def test_a_limit_counts_what_goes_no_more() -> None:
    state = pool_state(node_pool(open_to_all_pods=True, limits={NVIDIA_GPU: 4}), types=TYPES, prices=ALL_PRICES)
    found = Cluster(state).node("node", G5_12XLARGE, [gpu_pod("pod")]).repacked()
    assert bought(found) == ["g5.xlarge"]


def test_moves_that_buy_nothing_come_first_and_then_the_largest_saving() -> None:
    cluster = Cluster().node("small", G5_2XLARGE, [gpu_pod("a")]).node("large", G5_12XLARGE, [gpu_pod("b")])
    cluster.node("empty", M5_LARGE)
    found = cluster.repacked()
    assert [move.claims for move in found.moves] == [("claim-empty",), ("claim-large",), ("claim-small",)]
