"""Cases of scheduling that went wrong elsewhere, one test or more for each; the names begin with the case's subject."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.environment import Caps
from engine.model.ledger import Ledger, Unavailable
from engine.model.money import UsdPerHour
from engine.model.plan import Plan
from engine.model.policy import NodePool
from engine.model.refusal import OfferingsUnavailable, Refusal, ReservedExhausted
from engine.model.reservation import MatchCriteria, OpenReservations, WhyIdle
from engine.model.rule import Expression, RequirementRule
from engine.report.idle_reservations import idle_words
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    NOON,
    SOMEWHERE,
    catalog,
    environment,
    minutes,
    node_pool,
    pod,
    requirement,
    usd,
)
from tests.decide.reserving import SELECTING, ReservingWorld, block, unselected
from tests.decide.world import World, policy


def _capacity_types(plan: Plan) -> set[str]:
    return {launch.claim.inputs.capacity_type for launch in plan.launches}


def _refusals(plan: Plan) -> list[Refusal]:
    return [each.refusal for unplaced in plan.unplaced for each in unplaced.refusals]


# --- 28: capacity storm


def test_a_capacity_storm_is_bounded_probes_and_one_stable_reason() -> None:
    sold = catalog([G5_XLARGE], zones={"us-east-1a": "use1-az1"}, capacity_types=[keys.ON_DEMAND])
    stack = environment(caps=Caps(launches=100, added_usd_per_hour=UsdPerHour(10**12)))
    pods = [pod(f"pod-{index:03}", gpu=1) for index in range(600)]
    one = World(policy(node_pool()), pods, sold=sold, stack=stack, refuses=lambda claim: True)
    launched: dict[float, int] = {}
    told: dict[float, set[Refusal]] = {}
    while one.now <= NOON + minutes(30):
        at = (one.now - NOON) / minutes(1)
        plan = one.turn(minutes(0.5))
        if plan.launches:
            launched[at] = len(plan.launches)
        if at > 0:
            told[at] = set(_refusals(plan))
            assert len(plan.unplaced) + len(plan.launches) == 600
    # The cap bounds the first contact; then 3, 6 and 12 minutes after each answer there is one probe.
    assert launched == {0.0: 100, 3.5: 1, 10.0: 1, 22.5: 1}
    assert sum(launched.values()) == 103
    code = "InsufficientInstanceCapacity"
    in_order = [next(iter(reasons)) for reasons in told.values() if len(reasons) == 1]
    assert len(in_order) == len(told), "all pods are told the same"
    assert list(dict.fromkeys(in_order)) == [
        OfferingsUnavailable(1, until=NOON + minutes(3.5), refusals=1, last_code=code),
        OfferingsUnavailable(1, until=NOON + minutes(10), refusals=2, last_code=code),
        OfferingsUnavailable(1, until=NOON + minutes(22.5), refusals=3, last_code=code),
        OfferingsUnavailable(1, until=NOON + minutes(47), refusals=4, last_code=code),
    ]


# --- 29: a quota is not one offering


def test_a_spot_quota_bars_all_spot_of_its_families_at_once_and_on_demand_is_used_in_the_next_pass() -> None:
    spot = node_pool("s", weight=100, requirements=[requirement(keys.CAPACITY_TYPE, "In", keys.SPOT)])
    on_demand = node_pool("o", weight=10, requirements=[requirement(keys.CAPACITY_TYPE, "In", keys.ON_DEMAND)])
    is_raised = False

    def refuses(claim: Claim) -> bool | str:
        return claim.inputs.capacity_type == keys.SPOT and not is_raised and "MaxSpotInstanceCountExceeded"

    # Four types in three zones each: twelve spot offerings.
    sold = catalog([G5_XLARGE, G5_2XLARGE, G5_12XLARGE])
    one = World(policy(spot, on_demand), [pod(f"pod-{index}", gpu=1) for index in range(3)], sold=sold, refuses=refuses)
    first = one.turn(minutes(1))
    assert _capacity_types(first) == {keys.SPOT}
    second = one.turn(minutes(1))
    assert _capacity_types(second) == {keys.ON_DEMAND}
    assert {placed for launch in second.launches for placed in launch.pods} == set(one.pods)
    one.pods |= {each.key: each for each in [pod(f"more-{index}", gpu=1) for index in range(4)]}
    assert _capacity_types(one.turn(minutes(2))) == {keys.ON_DEMAND}
    # Three minutes after the refusal spot is tried again, by one launch.
    one.pods |= {each.key: each for each in [pod(f"late-{index}", gpu=1) for index in range(4)]}
    is_raised = True
    probing = one.turn(minutes(1))
    assert [launch.claim.node_pool for launch in probing.launches].count("s") == 1
    one.pods |= {each.key: each for each in [pod(f"last-{index}", gpu=1) for index in range(4)]}
    assert _capacity_types(one.turn(minutes(1))) == {keys.SPOT}


# --- 30: one list of prices for plan and launch, and spot no dearer than on-demand

_PREFERS_SPOT = RequirementRule(
    name="spot-first",
    position=SOMEWHERE,
    message="spot first",
    prefer=Expression('instanceType.capacityType == "spot" ? 1.0 : 0.0', SOMEWHERE),
)


def _sold(on_demand: str, spot: str) -> Catalog:
    """One type in three zones at these prices."""
    paid = {keys.ON_DEMAND: usd(on_demand), keys.SPOT: usd(spot)}
    sold = catalog([G5_XLARGE])
    return evolve(sold, offerings=tuple(evolve(each, usd_per_hour=paid[each.capacity_type]) for each in sold.offerings))


def _bought(*pools: NodePool, sold: Catalog, prefers_spot: bool = False, **more: object) -> tuple[str, UsdPerHour]:
    """The capacity type and price of the one machine that is bought for one pod."""
    rules = policy(*(pools or (node_pool(),)), rules=(_PREFERS_SPOT,) if prefers_spot else ())
    one = World(rules, [pod(gpu=1, **more)], sold=sold)  # type: ignore[arg-type]
    (launch,) = one.decide().launches
    return launch.claim.inputs.capacity_type, launch.claim.usd_per_hour


def test_with_on_demand_at_two_thirds_off_the_plan_buys_on_demand_at_that_price() -> None:
    assert _bought(sold=_sold("1.0", "0.4")) == (keys.SPOT, usd("0.4"))
    assert _bought(sold=_sold("0.32", "0.4")) == (keys.ON_DEMAND, usd("0.32"))


def test_spot_dearer_than_on_demand_is_not_bought_even_where_a_rule_prefers_spot() -> None:
    assert _bought(sold=_sold("1.0", "0.9999"), prefers_spot=True)[0] == keys.SPOT
    assert _bought(sold=_sold("1.0", "1.0"), prefers_spot=True)[0] == keys.SPOT
    assert _bought(sold=_sold("1.0", "1.0001"), prefers_spot=True) == (keys.ON_DEMAND, usd("1.0"))


def test_spot_dearer_than_on_demand_is_bought_where_on_demand_is_not_permitted() -> None:
    sold, spot_alone = _sold("1.0", "1.2"), [requirement(keys.CAPACITY_TYPE, "In", keys.SPOT)]
    assert _bought(node_pool(requirements=spot_alone), sold=sold) == (keys.SPOT, usd("1.2"))
    assert _bought(sold=sold, selector={keys.CAPACITY_TYPE: keys.SPOT}) == (keys.SPOT, usd("1.2"))


def test_spot_dearer_than_on_demand_is_bought_in_the_zones_where_on_demand_is_out() -> None:
    sold = _sold("1.0", "1.2")
    one = World(policy(node_pool(), rules=(_PREFERS_SPOT,)), [pod(gpu=1)], sold=sold)
    barred = Unavailable(NOON + minutes(3), 1, "InsufficientInstanceCapacity")
    one.ledger = Ledger(unavailable={"g5.xlarge/us-east-1b/on-demand": barred})
    (launch,) = one.decide().launches
    inputs = launch.claim.inputs
    assert (inputs.capacity_type, inputs.zone) in {(keys.SPOT, "us-east-1b"), (keys.ON_DEMAND, "us-east-1a")}
    zones = ("us-east-1a", "us-east-1b", "us-east-1c")
    one.ledger = Ledger(unavailable={f"g5.xlarge/{zone}/on-demand": barred for zone in zones})
    (launch,) = one.decide().launches
    assert (launch.claim.inputs.capacity_type, launch.claim.usd_per_hour) == (keys.SPOT, usd("1.2"))


def test_the_weights_of_pools_ladder_spot_and_on_demand_at_any_price() -> None:
    spot = node_pool("s", weight=100, requirements=[requirement(keys.CAPACITY_TYPE, "In", keys.SPOT)])
    on_demand = node_pool("o", weight=10, requirements=[requirement(keys.CAPACITY_TYPE, "In", keys.ON_DEMAND)])
    assert _bought(spot, on_demand, sold=_sold("1.0", "1.2")) == (keys.SPOT, usd("1.2"))


# --- 23: several capacity blocks


def test_several_capacity_blocks_are_filled_one_after_the_other_to_the_last_place() -> None:
    """Case 23."""
    blocks = [block("cr-1", 4), block("cr-2", 2), block("cr-3", 2)]
    pods = [pod(f"train-{index}", gpu=8) for index in range(8)]
    only = node_pool(requirements=[requirement(keys.CAPACITY_TYPE, "In", keys.RESERVED)])
    one = ReservingWorld(policy(only, node_classes=(SELECTING,)), pods, blocks)
    plan = one.turn()
    assert Counter(each.claim.inputs.capacity_reservation_id for each in plan.launches) == {
        "cr-1": 4,
        "cr-2": 2,
        "cr-3": 2,
    }
    assert len(one.running()) == 8, "EC2 refused none"
    ninth = pod("train-9", gpu=8)
    one.pods[ninth.key] = ninth
    then = one.turn()
    assert then.launches == ()
    assert _refusals(then) == [ReservedExhausted(reservations=3, slots=8)]


def test_what_no_capacity_block_has_a_place_for_is_bought_on_demand_where_permitted() -> None:
    """Case 23."""
    blocks = [block("cr-1", 4), block("cr-2", 2), block("cr-3", 2)]
    pods = [pod(f"train-{index}", gpu=8) for index in range(9)]
    either = node_pool(requirements=[requirement(keys.CAPACITY_TYPE, "In", keys.RESERVED, keys.ON_DEMAND)])
    stack = environment(caps=Caps(launches=100, added_usd_per_hour=UsdPerHour(10**12)))
    plan = ReservingWorld(policy(either, node_classes=(SELECTING,)), pods, blocks, stack=stack).decide()
    assert Counter(each.claim.inputs.capacity_type for each in plan.launches) == {keys.RESERVED: 8, keys.ON_DEMAND: 1}


# --- 27: an open reservation that nobody selects


@pytest.mark.parametrize(("said", "used_by"), [(OpenReservations.LEAVE, ()), (OpenReservations.USE, ("gpu",))])
def test_an_open_reservation_that_no_class_selects_is_told_with_the_pools_choice(
    said: OpenReservations, used_by: tuple[str, ...]
) -> None:
    """Case 27."""
    on_demand = node_pool(requirements=[requirement(keys.CAPACITY_TYPE, "In", keys.ON_DEMAND)], open_reservations=said)
    idle = unselected("cr-1", 5, "g5.xlarge", MatchCriteria.OPEN)
    plan = ReservingWorld(policy(on_demand), [pod("one", gpu=1)], [idle]).decide()
    (told,) = plan.idle_reservations
    assert (told.unused, told.why, told.node_pools) == (5, WhyIdle.NO_CLASS_SELECTS_IT, ("gpu",))
    assert told.used_by == used_by
    assert f"pool gpu: nodewright.dev/open-reservations {said.value}" in idle_words(told)
    (launch,) = plan.launches
    assert launch.claim.inputs.open_reservations is said
