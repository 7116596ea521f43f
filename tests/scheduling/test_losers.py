"""What else would have held a node's pods is told cheapest first, with how much dearer it is."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from engine.model import labels as keys
from engine.scheduling.kinds import Kind
from engine.scheduling.losers import losers
from engine.scheduling.offers import PoolOffers
from engine.scheduling.problem import NodeOption
from tests.builders import G5_2XLARGE, G5_12XLARGE, G5_XLARGE, P5_48XLARGE, node_pool, option, pool_state, usd

SPOT, ON_DEMAND = keys.SPOT, keys.ON_DEMAND


def kinds(*options: NodeOption, pool: str = "gpu") -> list[Kind]:
    """A pool's kinds, the cheapest first."""
    found = PoolOffers(pool_state(node_pool(pool), options=options), ()).kinds_without_pods()
    return sorted(found, key=lambda kind: (kind.usd_per_hour or usd(0), kind.order))


def alone(rivals: Iterable[Kind]) -> list[tuple[Kind, int]]:
    """Each holds the pods with one node."""
    return [(kind, 1) for kind in rivals]


def told(rivals: list[Kind]) -> list[tuple[str, str]]:
    """What the first of them wins against, each with how much dearer it is."""
    winner = rivals[0]
    assert winner.usd_per_hour is not None
    return [
        (each.offering, str(each.extra_usd_per_hour)) for each in losers(winner, winner.usd_per_hour, alone(rivals))
    ]


def test_the_cheapest_of_each_other_type_is_told_and_no_more_than_three() -> None:
    every = kinds(
        option(G5_XLARGE),
        option(G5_2XLARGE),
        option(G5_12XLARGE),
        option(G5_12XLARGE, capacity_type=SPOT, price="2.3"),
        option(P5_48XLARGE),
    )
    assert told(every) == [
        ("g5.2xlarge/us-east-1a/on-demand", "$0.2000/h"),
        ("g5.12xlarge/us-east-1a/spot", "$1.3000/h"),
        ("g5.12xlarge/us-east-1a/on-demand", "$4.7000/h"),
    ]


def test_its_own_type_on_demand_is_told_beside_three_cheaper_others() -> None:
    every = kinds(
        option(G5_XLARGE, capacity_type=SPOT, price="0.4"),
        option(G5_2XLARGE, capacity_type=SPOT, price="0.48"),
        option(G5_12XLARGE, capacity_type=SPOT, price="0.6"),
        option(P5_48XLARGE, capacity_type=SPOT, price="0.7"),
        option(G5_XLARGE, capacity_type=ON_DEMAND),
    )
    assert told(every)[-1] == ("g5.xlarge/us-east-1a/on-demand", "$0.6000/h")
    assert len(told(every)) == 4


def test_its_own_type_in_another_zone_is_told_where_it_costs_something_else() -> None:
    every = kinds(
        option(G5_XLARGE, capacity_type=SPOT, price="0.4"),
        option(G5_XLARGE, zone="us-east-1b", capacity_type=SPOT, price="0.5"),
        option(G5_XLARGE, zone="us-east-1c", capacity_type=SPOT, price="0.9"),
    )
    assert told(every) == [("g5.xlarge/us-east-1b/spot", "$0.1000/h")]


def test_its_own_type_at_its_own_price_is_no_loser() -> None:
    alike = kinds(option(G5_XLARGE), option(G5_XLARGE, zone="us-east-1b"))
    elsewhere = kinds(option(G5_XLARGE, zone="us-east-1c"), pool="other")
    assert told([*alike, *elsewhere]) == []


@pytest.mark.parametrize("lost", [option(G5_2XLARGE, is_available=False), option(G5_2XLARGE, price=None)])
def test_what_cannot_be_bought_now_is_no_loser(lost: NodeOption) -> None:
    winner, *_ = kinds(option(G5_XLARGE))
    assert losers(winner, usd("1"), alone(kinds(lost))) == ()


def test_what_rules_like_less_may_be_cheaper() -> None:
    [winner], rivals = kinds(option(G5_2XLARGE)), kinds(option(G5_XLARGE))
    [lost] = losers(winner, usd("1.2"), alone(rivals))
    assert (lost.usd_per_hour, lost.extra_usd_per_hour) == (usd("1"), usd("1") - usd("1.2"))


def test_the_order_of_the_rivals_changes_nothing() -> None:
    every = kinds(option(G5_XLARGE), option(G5_2XLARGE), option(G5_12XLARGE))
    assert losers(every[0], usd("1"), alone(every)) == losers(every[0], usd("1"), alone(reversed(every)))


def test_nodes_of_which_it_takes_several_are_compared_by_what_they_cost_together() -> None:
    large, small = kinds(option(G5_12XLARGE, price="3.5"))[0], kinds(option(G5_XLARGE))[0]
    [lost] = losers(large, usd("3.5"), [(large, 1), (small, 4)])
    assert (lost.usd_per_hour, lost.extra_usd_per_hour) == (usd("1"), usd("0.5"))
