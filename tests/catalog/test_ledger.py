"""Offerings that refused a launch: out for longer each time, and forgotten in the end."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalog.ledger import (
    LONGEST_BACK_OFF,
    Standing,
    pruned,
    standing,
    with_bring_up,
    with_failed_bring_up,
    with_launch,
    with_refusal,
)
from engine.model.catalog import Offering
from engine.model.ledger import Ledger, Unavailable
from tests.builders import NOON, minutes, usd

G5 = Offering("g5.xlarge", "us-east-1a", "spot", usd(1))
ELSEWHERE = Offering("g5.xlarge", "us-east-1b", "spot", usd(1))
ICE = "InsufficientInstanceCapacity"


def is_available(ledger: Ledger, offering: Offering, now: datetime) -> bool:
    stands = standing(ledger, offering, "default", now)
    return stands is None or not stands.barred


def refused_again_and_again(times: int) -> tuple[Ledger, datetime, list[timedelta]]:
    """Refused the moment it comes back, so many times: the ledger, the last refusal's time, each time out."""
    ledger, now, spans = Ledger(), NOON, []
    for _ in range(times):
        ledger = with_refusal(ledger, G5.key, ICE, now)
        spans.append(ledger.unavailable[G5.key].until - now)
        now = ledger.unavailable[G5.key].until
    return ledger, now, spans


def test_an_offering_that_never_refused_is_available() -> None:
    assert is_available(Ledger(), G5, NOON)


def test_a_refusal_bars_that_offering_alone_and_for_three_minutes() -> None:
    ledger = with_refusal(Ledger(), G5.key, ICE, NOON)
    assert not is_available(ledger, G5, NOON + minutes(2.99))
    assert is_available(ledger, G5, NOON + minutes(3))
    assert is_available(ledger, ELSEWHERE, NOON)
    assert ledger.unavailable[G5.key] == Unavailable(until=NOON + minutes(3), refusals=1, code=ICE)


def test_the_time_out_doubles_up_to_an_hour() -> None:
    _, _, spans = refused_again_and_again(8)
    assert [span / minutes(1) for span in spans] == [3, 6, 12, 24, 48, 60, 60, 60]


def test_many_refusals_of_one_pass_count_once() -> None:
    ledger = Ledger()
    for seconds in range(100):
        ledger = with_refusal(ledger, G5.key, ICE, NOON + timedelta(seconds=seconds))
    assert ledger.unavailable[G5.key] == Unavailable(until=NOON + minutes(3), refusals=1, code=ICE)


def test_a_launch_that_succeeds_ends_the_row() -> None:
    ledger, now, _ = refused_again_and_again(4)
    ledger = with_launch(ledger, G5.key)
    assert with_refusal(ledger, G5.key, ICE, now).unavailable[G5.key].refusals == 1


def test_the_row_is_kept_for_an_hour_after_the_offering_came_back() -> None:
    ledger, back_at, _ = refused_again_and_again(2)
    almost = back_at + LONGEST_BACK_OFF - minutes(1)
    assert with_refusal(pruned(ledger, almost), G5.key, ICE, almost).unavailable[G5.key].refusals == 3
    later = back_at + LONGEST_BACK_OFF
    assert pruned(ledger, later).unavailable == {}
    assert with_refusal(ledger, G5.key, ICE, later).unavailable[G5.key].refusals == 1


def test_pruning_keeps_all_other_memory() -> None:
    ledger = Ledger(empty_since={"claim": NOON}, instance_ids={"claim": "i-1"})
    ledger = with_refusal(ledger, G5.key, ICE, NOON)
    left = pruned(ledger, NOON + timedelta(days=1))
    assert left == Ledger(empty_since={"claim": NOON}, instance_ids={"claim": "i-1"})


@given(st.lists(st.integers(0, 7200), min_size=1, max_size=40))
def test_an_offering_is_never_out_for_more_than_an_hour_and_always_for_three_minutes(gaps_s: list[int]) -> None:
    ledger, now = Ledger(), NOON
    for gap in gaps_s:
        now += timedelta(seconds=gap)
        was_available = is_available(ledger, G5, now)
        ledger = with_refusal(ledger, G5.key, ICE, now)
        left = ledger.unavailable[G5.key].until - now
        assert timedelta(0) < left <= LONGEST_BACK_OFF
        assert left >= minutes(3) or not was_available


def test_a_machine_that_did_not_come_up_bars_its_offering_though_the_next_one_launches() -> None:
    ledger = with_failed_bring_up(Ledger(), G5.key, "gpu", NOON)
    assert not is_available(ledger, G5, NOON + minutes(2))
    assert with_launch(ledger, G5.key) == ledger
    assert with_bring_up(ledger, G5.key, "gpu") == Ledger()


def test_a_pools_failures_in_a_row_are_counted_and_its_time_out_grows() -> None:
    ledger, spans = Ledger(), []
    for number in range(5):
        at = NOON + minutes(40 * number)
        ledger = with_failed_bring_up(ledger, G5.key, "gpu", at)
        spans.append(ledger.bring_ups["gpu"].until - at)
    assert ledger.bring_ups["gpu"].failures == 5
    assert spans == [minutes(span) for span in (3, 6, 12, 24, 48)]
    assert with_bring_up(ledger, "another/offering/spot", "other").bring_ups == ledger.bring_ups


def test_a_pools_failures_are_forgotten_with_time() -> None:
    ledger = with_failed_bring_up(Ledger(), G5.key, "gpu", NOON)
    assert pruned(ledger, NOON + timedelta(hours=6)).bring_ups == ledger.bring_ups
    assert pruned(ledger, NOON + timedelta(hours=6, minutes=3)) == Ledger()


# --- probation


def test_after_the_back_off_one_launch_is_probed_until_one_succeeds() -> None:
    ledger, back_at, _ = refused_again_and_again(3)
    assert standing(ledger, G5, "default", back_at) == Standing(
        by=ledger.unavailable[G5.key], barred=False, probes=(G5.key,)
    )
    assert standing(with_launch(ledger, G5.key), G5, "default", back_at) is None


def test_probation_ends_when_the_refusals_are_forgotten() -> None:
    ledger, back_at, _ = refused_again_and_again(3)
    assert standing(ledger, G5, "default", back_at + LONGEST_BACK_OFF - minutes(1)) is not None
    assert standing(ledger, G5, "default", back_at + LONGEST_BACK_OFF) is None


def test_a_machine_that_did_not_come_up_leaves_no_probation() -> None:
    ledger = with_failed_bring_up(Ledger(), G5.key, "gpu", NOON)
    assert standing(ledger, G5, "default", NOON + minutes(3)) is None


def test_a_machine_launched_before_the_refusal_does_not_end_it() -> None:
    ledger = with_refusal(Ledger(), G5.key, ICE, NOON)
    assert with_launch(ledger, G5.key, launched_at=NOON - minutes(1)) == ledger
    assert with_bring_up(ledger, G5.key, "gpu") == ledger
    assert with_launch(ledger, G5.key, launched_at=NOON + minutes(4)) == Ledger()


# --- refusals that bar more than one offering

G6_SPOT = Offering("g6.12xlarge", "us-east-1c", "spot", usd(1))
G5_ON_DEMAND = Offering("g5.xlarge", "us-east-1a", "on-demand", usd(1))
M5_SPOT = Offering("m5.large", "us-east-1a", "spot", usd(1))
ALL = (G5, ELSEWHERE, G6_SPOT, G5_ON_DEMAND, M5_SPOT)


def out_after(code: str, node_class: str = "default", asked_for: str = "default") -> list[Offering]:
    """Of ALL what is out for ``asked_for`` after G5 was refused for ``node_class``."""
    ledger = with_refusal(Ledger(), G5.key, code, NOON, node_class)
    stands = {each: standing(ledger, each, asked_for, NOON) for each in ALL}
    return [each for each, found in stands.items() if found is not None and found.barred]


def test_the_quota_of_spot_bars_all_spot_that_counts_against_it() -> None:
    assert out_after("MaxSpotInstanceCountExceeded") == [G5, ELSEWHERE, G6_SPOT]
    ledger = with_refusal(Ledger(), G5.key, "MaxSpotInstanceCountExceeded", NOON)
    name = "All G and VT Spot Instance Requests"
    assert ledger == Ledger(
        unavailable_groups={name: Unavailable(NOON + minutes(3), 1, "MaxSpotInstanceCountExceeded", quota=name)}
    )


def test_the_limit_of_a_type_bars_it_in_every_zone() -> None:
    assert out_after("InstanceLimitExceeded") == [G5, ELSEWHERE]


def test_subnets_without_addresses_bar_their_zone_for_their_node_class_whatever_the_type() -> None:
    assert out_after("InsufficientFreeAddressesInSubnet") == [G5, G5_ON_DEMAND, M5_SPOT]
    assert out_after("InsufficientFreeAddressesInSubnet", node_class="other") == []


def test_a_missing_role_for_spot_bars_all_spot() -> None:
    assert out_after("AuthFailure.ServiceLinkedRoleCreationNotPermitted") == [G5, ELSEWHERE, G6_SPOT, M5_SPOT]


@pytest.mark.parametrize("code", [ICE, "Unsupported", "UnfulfillableCapacity", "ReservationCapacityExceeded", "New"])
def test_other_codes_bar_the_one_offering(code: str) -> None:
    assert out_after(code) == [G5]


def test_a_quota_of_a_family_that_is_in_no_documented_group_bars_the_one_offering() -> None:
    mac = Offering("mac2.metal", "us-east-1a", "on-demand", usd(1))
    ledger = with_refusal(Ledger(), mac.key, "VcpuLimitExceeded", NOON, "default")
    assert ledger.unavailable == {mac.key: Unavailable(NOON + minutes(3), 1, "VcpuLimitExceeded")}
    assert ledger.unavailable_groups == {}


def test_a_quota_is_probed_as_one_and_free_again_as_one() -> None:
    ledger = with_refusal(Ledger(), G5.key, "MaxSpotInstanceCountExceeded", NOON, "default")
    name = "All G and VT Spot Instance Requests"
    after = NOON + minutes(3)
    probes = [stands.probes for each in (G5, G6_SPOT) if (stands := standing(ledger, each, "default", after))]
    assert probes == [(name,), (name,)]
    assert with_launch(ledger, G6_SPOT.key, "default") == Ledger()
    again = with_refusal(ledger, G6_SPOT.key, "MaxSpotInstanceCountExceeded", after, "default")
    assert (again.unavailable_groups[name].refusals, again.unavailable_groups[name].until) == (2, after + minutes(6))


def test_what_bars_an_offering_longest_decides() -> None:
    ledger = with_refusal(Ledger(), G5.key, "MaxSpotInstanceCountExceeded", NOON, "default")
    ledger = with_refusal(ledger, G5.key, ICE, NOON + minutes(2), "default")
    stands = standing(ledger, G5, "default", NOON + minutes(4))
    assert stands == Standing(by=ledger.unavailable[G5.key], barred=True)
    after = standing(ledger, G5, "default", NOON + minutes(5))
    assert after is not None
    assert set(after.probes) == {G5.key, "All G and VT Spot Instance Requests"}


def test_groups_are_forgotten_as_offerings_are() -> None:
    ledger = with_refusal(Ledger(), G5.key, "VcpuLimitExceeded", NOON, "default")
    assert pruned(ledger, NOON + minutes(62)) == ledger
    assert pruned(ledger, NOON + minutes(63)) == Ledger()
