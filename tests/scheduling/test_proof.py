"""What new nodes cost at the least, for pods that no packing placed."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.environment import Caps
from engine.scheduling.draft import Draft
from engine.scheduling.existing import World
from engine.scheduling.groups import pod_classes
from engine.scheduling.market import Market
from engine.scheduling.offers import PoolOffers
from engine.scheduling.proof import packing_bound
from engine.scheduling.steps import Steps
from engine.scheduling.topology.neighbourhood import Neighbourhood
from tests.builders import G5_XLARGE, M5_LARGE, option, pod, pool_state, usd


def test_pods_that_were_placed_one_by_one_have_a_bound_too() -> None:
    state = pool_state(types=[M5_LARGE, G5_XLARGE])
    market = Market([PoolOffers(state, ())])
    classes = pod_classes([*(pod(f"cpu-{index}", cpu="900m") for index in range(4)), pod("gpu", gpu=1)])
    empty = World(frozenset())
    draft = Draft(market, [state], Caps(), (), empty, Neighbourhood(), 0, Steps())
    draft.placed_one_by_one(classes).finished()
    assert draft.lower_bound_micros == 0, "nothing was packed"
    bound = packing_bound(draft, market, classes, [state])
    assert bound is not None
    # The GPU node takes pods that it would not be bought for: nothing is proven of these.
    assert bound.cost == usd("1.1")
    assert usd("1") <= bound.lower_bound + usd("0.001")
    assert bound.lower_bound <= bound.cost


def test_the_places_of_a_reservation_bound_what_it_can_save() -> None:
    own = option(G5_XLARGE, capacity_type=keys.RESERVED, price="0.001")
    reserved = evolve(own, offering=evolve(own.offering, reservation_id="cr-1"), available=1)
    state = pool_state(options=[option(G5_XLARGE), reserved])
    market = Market([PoolOffers(state, ())])
    classes = pod_classes([pod(f"gpu-{index}", gpu=1) for index in range(3)])
    draft = Draft(market, [state], Caps(), (), World(frozenset()), Neighbourhood(), 0, Steps())
    bound = packing_bound(draft.placed_one_by_one(classes).finished(), market, classes, [state])
    assert bound is not None
    assert bound.cost == usd("2.001")
    assert bound.gap is not None
    assert bound.gap < 0.001
