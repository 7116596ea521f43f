"""Reserved capacity: used first, across several reservations, to the last place; and told where it stays empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from attrs import evolve

from engine.decide.reserved import places
from engine.model import labels as keys
from engine.model.claim import ClaimInputs
from engine.model.money import UsdPerHour
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import NodePool
from engine.model.refusal import OfferingsUnavailable, ReservedExhausted
from engine.model.reservation import (
    CapacityReservation,
    MatchCriteria,
    OpenReservations,
    ReservationKind,
    WhyIdle,
)
from tests.builders import NOON, minutes, node_class, node_pool, pod, requirement
from tests.decide.reserving import SELECTING, ReservingWorld, block, reservation, unselected
from tests.decide.world import policy

RESERVED_ONLY = requirement(keys.CAPACITY_TYPE, "In", "reserved")
ON_DEMAND_ONLY = requirement(keys.CAPACITY_TYPE, "In", "on-demand")
P5 = requirement(keys.INSTANCE_TYPE, "In", "p5.48xlarge")


def whole_nodes(count: int) -> list[Pod]:
    return [pod(f"train-{index}", gpu=8) for index in range(count)]


def world(pods: Sequence[Pod], reservations: Sequence[CapacityReservation], *pools: NodePool) -> ReservingWorld:
    return ReservingWorld(policy(*(pools or (node_pool(),)), node_classes=(SELECTING,)), pods, reservations)


def launched_in(plan: Plan) -> Counter[str | None]:
    return Counter(launch.claim.inputs.capacity_reservation_id for launch in plan.launches)


def inputs_of(plan: Plan) -> ClaimInputs:
    (launch,) = plan.launches
    return launch.claim.inputs


# --- what is launched, and how


def test_a_reservation_is_used_before_anything_that_costs_more() -> None:
    inputs = inputs_of(world(whole_nodes(1), [reservation("cr-1", 1)]).decide())
    assert (inputs.capacity_type, inputs.capacity_reservation_id) == ("reserved", "cr-1")
    assert inputs.capacity_reservation_kind is ReservationKind.DEFAULT
    assert inputs.open_reservations is None
    assert inputs.offering_key == "p5.48xlarge/us-east-1a/reserved/cr-1"


def test_a_reserved_machine_adds_nothing_to_the_bill() -> None:
    plan = world(whole_nodes(1), [reservation("cr-1", 1)]).decide()
    assert plan.usd_per_hour_after == UsdPerHour(0)


def test_a_reserved_node_carries_karpenters_labels_of_its_reservation() -> None:
    (launch,) = world(whole_nodes(1), [block("cr-1", 1)]).decide().launches
    told = {key: launch.claim.labels[key] for key in sorted(launch.claim.labels) if "capacity" in key}
    assert told == {
        keys.CAPACITY_RESERVATION_ID: "cr-1",
        keys.CAPACITY_RESERVATION_TYPE: "capacity-block",
        keys.CAPACITY_TYPE: "reserved",
    }


def test_a_pod_may_ask_for_one_reservation() -> None:
    asking = pod("asking", gpu=8, selector={keys.CAPACITY_RESERVATION_ID: "cr-2"})
    plan = world([asking], [reservation("cr-1", 1), reservation("cr-2", 1)]).decide()
    assert launched_in(plan) == {"cr-2": 1}


def test_a_reservation_without_end_is_used_before_a_capacity_block() -> None:
    plan = world(whole_nodes(1), [block("cr-1", 1), reservation("cr-2", 1)]).decide()
    assert launched_in(plan) == {"cr-2": 1}


def test_what_is_beyond_the_reservations_is_bought_where_the_pool_permits_it() -> None:
    pool = node_pool(requirements=[P5, requirement(keys.CAPACITY_TYPE, "In", "reserved", "on-demand")])
    plan = world(whole_nodes(3), [reservation("cr-1", 2)], pool).decide()
    assert launched_in(plan) == {"cr-1": 2, None: 1}
    assert plan.unplaced == ()


def test_what_is_beyond_the_reservations_waits_where_the_pool_permits_nothing_else() -> None:
    one = world(whole_nodes(3), [reservation("cr-1", 2)], node_pool(requirements=[RESERVED_ONLY]))
    first = one.turn()
    assert launched_in(first) == {"cr-1": 2}
    second = one.turn()
    for plan in (first, second):
        ((refused,),) = [each.refusals for each in plan.unplaced]
        assert refused.refusal == ReservedExhausted(reservations=1, slots=2)
    assert second.launches == ()


def test_pools_share_a_reservations_places() -> None:
    pools = [
        node_pool(name, requirements=[RESERVED_ONLY], labels={"team": name}, weight=weight)
        for name, weight in (("a", 10), ("b", 0))
    ]
    pods = [pod(f"{name}-{index}", gpu=8, selector={"team": name}) for name in "ab" for index in range(2)]
    plan = world(pods, [reservation("cr-1", 3)], *pools).decide()
    assert launched_in(plan) == {"cr-1": 3}
    assert len(plan.unplaced) == 1


def test_a_pool_that_does_not_permit_reserved_capacity_leaves_it() -> None:
    plan = world(whole_nodes(1), [reservation("cr-1", 1)], node_pool(requirements=[ON_DEMAND_ONLY])).decide()
    assert launched_in(plan) == {None: 1}


@pytest.mark.parametrize(
    ("there", "offered"),
    [
        (block("cr-1", 1, ends_at=NOON + minutes(41)), 1),
        (block("cr-1", 1, ends_at=NOON + minutes(40)), 0),
        (reservation("cr-1", 1, ends_at=NOON + minutes(1)), 1),
        (reservation("cr-1", 1, ends_at=NOON), 0),
        (reservation("cr-1", 1, state="pending"), 0),
        (reservation("cr-1", 1, tags={"team": "ads"}), 0),
        (reservation("cr-1", 1, zone="us-east-1z"), 0),
        (reservation("cr-1", 1, "p9.48xlarge"), 0),
    ],
)
def test_only_what_is_selected_active_and_lasts_is_offered(there: CapacityReservation, offered: int) -> None:
    plan = world(whole_nodes(1), [there], node_pool(requirements=[RESERVED_ONLY])).decide()
    assert len(plan.launches) == offered


# --- how many places there are


def test_a_launch_that_ec2_does_not_count_yet_takes_its_place() -> None:
    one = world(whole_nodes(2), [reservation("cr-1", 2)])
    plan = one.decide()
    unseen = evolve(one.snapshot(), document=plan.document)
    assert [each.left for each in places(unseen)] == [0]


def test_a_machine_that_ec2_counts_is_not_counted_twice() -> None:
    one = world(whole_nodes(2), [reservation("cr-1", 3)])
    one.turn()
    assert [each.left for each in places(one.snapshot())] == [1]


def test_the_place_of_a_machine_that_is_gone_is_free() -> None:
    one = world(whole_nodes(1), [reservation("cr-1", 1)], node_pool(requirements=[RESERVED_ONLY]))
    (launch,) = one.turn().launches
    one.lose(launch.claim.name)
    assert launched_in(one.turn()) == {"cr-1": 1}


def test_places_are_never_fewer_than_none() -> None:
    one = world(whole_nodes(2), [reservation("cr-1", 2)])
    plan = one.decide()
    one.others["cr-1"] = 1
    assert [each.left for each in places(evolve(one.snapshot(), document=plan.document))] == [0]


def test_a_refused_reserved_launch_bars_that_reservation_alone() -> None:
    one = world(whole_nodes(1), [reservation("cr-1", 1), reservation("cr-2", 1)])
    one.refuses = lambda claim: "ReservationCapacityExceeded" if claim.inputs.capacity_reservation_id == "cr-1" else ""
    assert launched_in(one.turn(minutes(1))) == {"cr-1": 1}
    second = one.turn(minutes(1))
    assert set(second.ledger.unavailable) == {"p5.48xlarge/us-east-1a/reserved/cr-1"}
    assert launched_in(second) == {"cr-2": 1}


def test_a_pod_that_waits_for_a_refused_reservation_is_told_so() -> None:
    one = world(whole_nodes(1), [reservation("cr-1", 1)], node_pool(requirements=[RESERVED_ONLY]))
    one.refuses = lambda claim: "ReservationCapacityExceeded"
    one.turn(minutes(1))
    ((refused,),) = [each.refusals for each in one.decide().unplaced]
    assert isinstance(refused.refusal, OfferingsUnavailable)
    assert refused.refusal.last_code == "ReservationCapacityExceeded"


# --- what stays empty


def test_the_plan_tells_what_stays_empty_of_a_reservation_and_what_that_costs() -> None:
    plan = world(whole_nodes(1), [reservation("cr-1", 3)]).decide()
    (idle,) = plan.idle_reservations
    assert (idle.id, idle.unused, idle.total, idle.why) == ("cr-1", 2, 3, WhyIdle.NO_POD_TAKES_IT)
    assert idle.node_pools == ("gpu",)
    assert idle.usd_per_hour == UsdPerHour(2 * 98_000_000)


@pytest.mark.parametrize(
    ("there", "pool", "why"),
    [
        (block("cr-1", 1, ends_at=NOON + minutes(30)), node_pool(), WhyIdle.ENDING),
        (reservation("cr-1", 1), node_pool(requirements=[ON_DEMAND_ONLY]), WhyIdle.NO_POOL_PERMITS_IT),
        (reservation("cr-1", 1, zone="us-east-1z"), node_pool(), WhyIdle.NO_POOL_PERMITS_IT),
        (reservation("cr-1", 1), node_pool(), WhyIdle.NO_POD_TAKES_IT),
        (unselected("cr-1", 1, "p5.48xlarge", MatchCriteria.TARGETED), node_pool(), WhyIdle.NO_CLASS_SELECTS_IT),
    ],
)
def test_the_plan_tells_why_a_reservation_stays_empty(there: CapacityReservation, pool: NodePool, why: WhyIdle) -> None:
    (idle,) = world([], [there], pool).decide().idle_reservations
    assert idle.why is why


def test_a_reservation_that_refused_lately_is_told_as_such() -> None:
    one = world(whole_nodes(1), [reservation("cr-1", 1)], node_pool(requirements=[RESERVED_ONLY]))
    one.refuses = lambda claim: "ReservationCapacityExceeded"
    one.turn(minutes(1))
    (idle,) = one.decide().idle_reservations
    assert idle.why is WhyIdle.REFUSED_LATELY


def test_a_full_reservation_and_one_of_types_that_no_pool_permits_are_not_told() -> None:
    others = unselected("cr-2", 5, "m5.large", MatchCriteria.OPEN)
    plan = world(whole_nodes(1), [reservation("cr-1", 1), others], node_pool(requirements=[P5])).decide()
    assert plan.idle_reservations == ()


def test_a_capacity_block_is_paid_already_so_its_emptiness_has_no_price() -> None:
    (idle,) = world([], [block("cr-1", 1)]).decide().idle_reservations
    assert idle.usd_per_hour is None


def test_what_others_do_in_a_reservation_leaves_a_reviewed_plan_as_it_is() -> None:
    one = world(whole_nodes(1), [reservation("cr-1", 3)])
    before = one.decide()
    one.others["cr-1"] = 1
    assert one.decide().hash == before.hash
    assert one.decide().idle_reservations != before.idle_reservations


# --- open reservations


@pytest.mark.parametrize("said", list(OpenReservations))
def test_an_on_demand_launch_says_what_to_do_with_open_reservations(said: OpenReservations) -> None:
    pool = node_pool(requirements=[ON_DEMAND_ONLY], open_reservations=said)
    assert inputs_of(world(whole_nodes(1), [], pool).decide()).open_reservations is said


def test_a_spot_launch_says_nothing_of_open_reservations() -> None:
    pool = node_pool(requirements=[requirement(keys.CAPACITY_TYPE, "In", "spot")])
    assert inputs_of(world(whole_nodes(1), [], pool).decide()).open_reservations is None


def test_a_class_without_terms_selects_nothing() -> None:
    one = ReservingWorld(
        policy(node_pool(requirements=[P5]), node_classes=(node_class(),)), whole_nodes(1), [reservation("cr-1", 1)]
    )
    assert launched_in(one.decide()) == {None: 1}
