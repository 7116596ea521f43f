"""A machine whose reservation ends runs on as an on-demand one: relabelled, repriced, and not replaced for that."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.money import UsdPerHour
from engine.model.reservation import CapacityReservation
from engine.reconcile.registrations import Step, registrations
from engine.report.plan_report import plan_line
from tests.builders import minutes, node_class, node_pool, pod, requirement, usd
from tests.decide.reserving import SELECTING, ReservingWorld, block, reservation
from tests.decide.world import policy

ANY_TYPE = requirement(keys.CAPACITY_TYPE, "In", "reserved", "on-demand")


def running_in(there: CapacityReservation) -> ReservingWorld:
    world = ReservingWorld(
        policy(node_pool(requirements=(ANY_TYPE,)), node_classes=(SELECTING,)), [pod("train", gpu=8)], [there]
    )
    world.turn(minutes(1))
    world.turn(minutes(1))
    assert claim_of(world).inputs.capacity_type == "reserved"
    return world


def claim_of(world: ReservingWorld) -> Claim:
    assert world.document is not None
    [claim] = world.document.claims
    return claim


def test_once_its_reservation_is_gone_the_claim_is_on_demand_at_its_price_and_its_inputs_stay() -> None:
    world = running_in(reservation("cr-1", 1))
    before = claim_of(world)
    world.reservations.clear()
    plan = world.turn(minutes(1))
    after = claim_of(world)
    assert plan.repriced == (before.name,)
    assert (plan.launches, plan.removals) == ((), ())
    assert not plan.is_empty
    assert after.inputs == before.inputs
    assert after.labels[keys.CAPACITY_TYPE] == "on-demand"
    assert keys.CAPACITY_RESERVATION_ID not in after.labels
    assert (before.usd_per_hour, after.usd_per_hour) == (UsdPerHour(0), usd("98"))
    assert plan.usd_per_hour_after == usd("98")


def test_it_is_done_once_and_the_node_is_told() -> None:
    world = running_in(reservation("cr-1", 1))
    world.reservations.clear()
    world.turn(minutes(1))
    plan = world.decide()
    assert plan.is_empty
    [told] = registrations(plan, world.snapshot())
    assert (told.step, told.labels) == (Step.LABEL, {keys.CAPACITY_TYPE: "on-demand"})


def test_one_that_is_shown_past_its_end_has_ended_too() -> None:
    world = running_in(reservation("cr-1", 1))
    world.reservations["cr-1"] = evolve(world.reservations["cr-1"], ends_at=world.now)
    assert world.decide().repriced


def test_a_full_reservation_and_a_capacity_block_are_no_such() -> None:
    world = running_in(reservation("cr-1", 1))
    assert not world.decide().repriced
    blocked = running_in(block("cr-2", 1))
    blocked.reservations.clear()
    assert not blocked.decide().repriced


def test_where_no_class_selects_reservations_that_none_is_shown_proves_nothing() -> None:
    world = running_in(reservation("cr-1", 1))
    world.reservations.clear()
    world.policy = policy(world.policy.node_pools[0], node_classes=(node_class(),))
    assert not world.decide().repriced


def test_the_plan_says_which_machines_are_billed_on_demand_from_now_on() -> None:
    world = running_in(reservation("cr-1", 1))
    name = claim_of(world).name
    world.reservations.clear()
    assert "1 to relabel" in plan_line(world.decide())
    assert name in world.decide().repriced
