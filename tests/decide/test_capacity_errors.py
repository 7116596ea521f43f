"""What EC2 refuses: how much of it is not asked for again, until when, and how it is tried anew."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta

import pytest
from attrs import evolve

from engine.catalog.ledger import names, standing
from engine.model import labels as keys
from engine.model.catalog import Offering
from engine.model.claim import Claim
from engine.model.environment import Caps
from engine.model.ledger import Ledger, Unavailable
from engine.model.money import UsdPerHour
from engine.model.plan import Plan
from engine.model.refusal import OfferingsUnavailable, Refusal
from engine.model.stay import Overdue
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    M5_LARGE,
    NOON,
    catalog,
    environment,
    minutes,
    node_pool,
    pod,
    requirement,
)
from tests.decide.world import World, policy

ICE = "InsufficientInstanceCapacity"
SPOT_QUOTA = "All G and VT Spot Instance Requests"
ONE_ZONE = {"us-east-1a": "use1-az1"}
SPOT = requirement(keys.CAPACITY_TYPE, "In", keys.SPOT)
ON_DEMAND = requirement(keys.CAPACITY_TYPE, "In", keys.ON_DEMAND)


def offering_of(claim: Claim) -> str:
    return f"{claim.inputs.instance_type}/{claim.inputs.zone}/{claim.inputs.capacity_type}"


def asked(plan: Plan) -> list[str]:
    return sorted(offering_of(launch.claim) for launch in plan.launches)


def reasons(plan: Plan) -> set[Refusal]:
    return {each.refusal for unplaced in plan.unplaced for each in unplaced.refusals}


def gpu_pods(count: int) -> Iterable[object]:
    return [pod(f"pod-{index:03}", gpu=1) for index in range(count)]


def one_offering(pods: int, refuses: Callable[[Claim], bool | str]) -> World:
    """One type in one zone at one capacity type is all that there is."""
    sold = catalog([G5_XLARGE], zones=ONE_ZONE, capacity_types=[keys.ON_DEMAND])
    stack = environment(caps=Caps(launches=20, added_usd_per_hour=UsdPerHour(10**12)))
    return World(policy(node_pool()), gpu_pods(pods), sold=sold, stack=stack, refuses=refuses)  # type: ignore[arg-type]


# --- probes


def test_while_a_probe_has_no_answer_nothing_more_of_the_offering_is_asked() -> None:
    one = one_offering(50, lambda claim: True)
    one.turn(minutes(1))
    one.turn(minutes(3))
    one.refuses, one.vanishes = (lambda claim: False), (lambda claim: True)
    assert len(one.turn(minutes(0.1)).launches) == 1
    quiet = [one.turn(minutes(0.1)) for _ in range(5)]
    assert [len(plan.launches) for plan in quiet] == [0] * 5
    told = {frozenset(reasons(plan)) for plan in quiet}
    assert told == {frozenset({OfferingsUnavailable(1, NOON + minutes(4), 1, ICE)})}


def test_a_probe_that_succeeds_opens_the_offering() -> None:
    one = one_offering(50, lambda claim: one.now < NOON + minutes(3))
    one.turn(minutes(1))
    assert len(one.turn(minutes(3)).launches) == 0
    assert len(one.turn(minutes(1)).launches) == 1
    assert len(one.turn(minutes(1)).launches) == 20
    assert len(one.turn(minutes(1)).launches) == 20
    assert one.turn().ledger.unavailable == {}


def test_base_capacity_is_probed_one_by_one_too() -> None:
    one = one_offering(0, lambda claim: True)
    one.policy = policy(node_pool(replicas=10))
    counts = [len(one.turn(minutes(1)).launches) for _ in range(12)]
    assert counts == [10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    (short,) = one.decide().base_shortfalls
    assert isinstance(short.refusal, OfferingsUnavailable)


def test_pods_go_elsewhere_while_one_zone_is_probed() -> None:
    stack = environment(caps=Caps(launches=20, added_usd_per_hour=UsdPerHour(10**12)))
    sold = catalog([G5_XLARGE], capacity_types=[keys.ON_DEMAND])
    dear = [each for each in sold.offerings if each.zone != "us-east-1a"]
    cheap = [evolve(each, usd_per_hour=UsdPerHour(10_000)) for each in sold.offerings if each.zone == "us-east-1a"]
    out = Ledger(unavailable={cheap[0].key: Unavailable(NOON - minutes(1), 2, ICE)})
    one = World(policy(node_pool()), gpu_pods(10), sold=evolve(sold, offerings=(*cheap, *dear)), stack=stack)  # type: ignore[arg-type]
    one.ledger = out
    launched = asked(one.decide())
    assert launched.count(cheap[0].key) == 1
    assert len(launched) == 10


# --- what one refusal bars


def two_zones(refuses: Callable[[Claim], bool | str], *pools: object) -> World:
    sold = catalog([G5_XLARGE, G5_2XLARGE, M5_LARGE], zones={"us-east-1a": "use1-az1", "us-east-1b": "use1-az2"})
    return World(policy(*(pools or (node_pool(),))), gpu_pods(3), sold=sold, refuses=refuses)  # type: ignore[arg-type]


def test_a_vcpu_quota_leaves_the_other_capacity_type() -> None:
    one = two_zones(lambda claim: claim.inputs.capacity_type == keys.SPOT and "MaxSpotInstanceCountExceeded")
    assert {each.rpartition("/")[2] for each in asked(one.turn(minutes(1)))} == {"spot"}
    assert {each.rpartition("/")[2] for each in asked(one.turn(minutes(1)))} == {"on-demand"}
    assert list(one.ledger.unavailable_groups) == [SPOT_QUOTA]


def test_a_pod_that_only_the_quota_keeps_waiting_is_told_its_name() -> None:
    one = two_zones(lambda claim: "MaxSpotInstanceCountExceeded", node_pool(requirements=[SPOT]))
    one.turn(minutes(1))
    code = "MaxSpotInstanceCountExceeded"
    # Two types in two zones, of which one launch was refused.
    assert reasons(one.turn(minutes(1))) == {OfferingsUnavailable(4, NOON + minutes(4), 1, code, quota=SPOT_QUOTA)}


def test_a_quota_of_one_group_leaves_the_others() -> None:
    one = two_zones(lambda claim: claim.inputs.instance_type.startswith("g5") and "VcpuLimitExceeded")
    one.policy = policy(node_pool(requirements=[ON_DEMAND]))
    one.turn(minutes(1))
    one.pods |= {each.key: each for each in [pod("cpu")]}
    assert {each.partition("/")[0] for each in asked(one.turn(minutes(1)))} == {"m5.large"}


def test_the_limit_of_a_type_leaves_other_types() -> None:
    one = two_zones(
        lambda claim: claim.inputs.instance_type == "g5.xlarge" and "InstanceLimitExceeded",
        node_pool(requirements=[ON_DEMAND]),
    )
    assert {each.partition("/")[0] for each in asked(one.turn(minutes(1)))} == {"g5.xlarge"}
    assert {each.partition("/")[0] for each in asked(one.turn(minutes(1)))} == {"g5.2xlarge"}


def test_subnets_without_addresses_leave_other_zones() -> None:
    one = two_zones(lambda claim: claim.inputs.zone == "us-east-1a" and "InsufficientFreeAddressesInSubnet")
    one.turn(minutes(1))
    assert {each.split("/")[1] for each in asked(one.turn(minutes(1)))} <= {"us-east-1b"}
    assert len(one.running()) == 3


def test_without_the_role_for_spot_on_demand_is_bought() -> None:
    code = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
    one = two_zones(lambda claim: claim.inputs.capacity_type == keys.SPOT and code)
    one.turn(minutes(1))
    assert {each.rpartition("/")[2] for each in asked(one.turn(minutes(1)))} == {"on-demand"}


@pytest.mark.parametrize("code", ["MaxSpotInstanceCountExceeded", ICE])
def test_refusals_told_in_another_order_are_the_same_lesson(code: str) -> None:
    one = two_zones(lambda claim: code)
    one.turn(minutes(1))
    backwards = one.decide(ledger=evolve(one.ledger, outcomes=one.ledger.outcomes[::-1]))
    assert one.decide().ledger == backwards.ledger


# --- advice for the pass after


def test_after_a_refusal_the_next_pass_takes_the_first_of_the_advice_that_is_not_out() -> None:
    sold = catalog([G5_XLARGE, G5_2XLARGE, G5_12XLARGE])
    one = World(policy(node_pool()), gpu_pods(1), sold=sold, refuses=lambda claim: True)  # type: ignore[arg-type]
    (first,) = one.turn(minutes(0.1)).launches
    assert first.next_best[:2] == ("g5.xlarge/us-east-1b/spot", "g5.xlarge/us-east-1c/spot")
    tried, advice = [offering_of(first.claim)], first.next_best
    while advice:
        plan = one.turn(minutes(0.1))
        (launch,) = plan.launches
        assert offering_of(launch.claim) == next(key for key in advice if key not in plan.ledger.unavailable)
        tried.append(offering_of(launch.claim))
        advice = launch.next_best
    # All there is was tried in turn, each once: three types in three zones at two capacity types.
    assert sorted(tried) == sorted(each.key for each in sold.offerings)


def test_advice_is_spread_over_zones() -> None:
    sold = catalog([G5_XLARGE], capacity_types=[keys.ON_DEMAND])
    one = World(policy(node_pool()), gpu_pods(3), sold=sold)  # type: ignore[arg-type]
    one.turn()
    # A node in each of two zones and two in a third: the emptier of the others is the first advice.
    one.pods |= {each.key: each for each in [pod("more", gpu=1)]}
    (launch,) = one.turn().launches
    one.pods |= {each.key: each for each in [pod("late", gpu=1)]}
    (late,) = one.decide().launches
    zones = [key.split("/")[1] for key in (offering_of(late.claim), *late.next_best)]
    assert sorted(zones) == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert zones[-1] == launch.claim.inputs.zone


def test_many_refused_in_one_zone_are_spread_over_the_others() -> None:
    sold = catalog([G5_XLARGE], capacity_types=[keys.ON_DEMAND])
    one = World(policy(node_pool()), gpu_pods(6), sold=sold, refuses=lambda claim: claim.inputs.zone == "us-east-1a")  # type: ignore[arg-type]
    assert [each.split("/")[1] for each in asked(one.turn(minutes(1)))].count("us-east-1a") == 2
    assert [each.split("/")[1] for each in asked(one.turn(minutes(1)))] == ["us-east-1b", "us-east-1c"]


# --- whatever EC2 answers

CODES = (ICE, "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "InstanceLimitExceeded", "Unsupported")
MORE_CODES = (*CODES, "InsufficientFreeAddressesInSubnet", "AuthFailure.ServiceLinkedRoleCreationNotPermitted")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_refused_nothing_that_is_out_is_asked_and_probes_go_one_by_one(seed: int) -> None:
    dice = random.Random(seed)
    sold = catalog([G5_XLARGE, G5_2XLARGE, G5_12XLARGE, M5_LARGE])

    def refuses(claim: Claim) -> bool | str:
        return dice.random() < 0.7 and dice.choice(MORE_CODES)

    one = World(policy(node_pool()), gpu_pods(6), sold=sold, refuses=refuses)  # type: ignore[arg-type]
    one.vanishes = lambda claim: dice.random() < 0.2
    in_flight: dict[str, Claim] = {}
    tried = 0
    for _ in range(25):
        now = one.now
        plan = one.turn(timedelta(seconds=dice.choice([5, 30, 200, 700])))
        alive = {each.claim for each in one.running()} | {each.record.claim for each in plan.removals}
        # A launch of which nothing was heard for too long holds up no probe.
        overdue = {each.claim for each in plan.kept if isinstance(each.reason, Overdue)}
        in_flight = {name: claim for name, claim in in_flight.items() if name not in alive | overdue}
        launched = {launch.claim.name: launch.claim for launch in plan.launches}
        asked_of = Counter(
            name for claim in {**in_flight, **launched}.values() for name in names(offering_of(claim), claim.node_class)
        )
        for claim in launched.values():
            inputs = claim.inputs
            offering = Offering(inputs.instance_type, inputs.zone, inputs.capacity_type, None)
            stands = standing(plan.ledger, offering, claim.node_class, now)
            assert stands is None or not stands.barred
            for probe in stands.probes if stands else ():
                tried += 1
                assert asked_of[probe] == 1
        there = {each.claim for each in plan.ledger.outcomes} | {each.claim for each in one.ledger.outcomes}
        in_flight |= {name: claim for name, claim in launched.items() if name not in there}
        in_flight = {name: claim for name, claim in in_flight.items() if name not in alive}
        one.pods |= {each.key: each for each in [pod(f"more-{len(one.pods)}", gpu=dice.choice([1, 2]))]}
    assert tried, "nothing was ever on probation"
