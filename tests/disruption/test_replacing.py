"""The order of a replacement: another node first and up, then the mark, then the pods leave, then the machine goes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from attrs import evolve

from engine.model.money import UsdPerHour
from engine.model.plan import LaunchReason
from engine.model.policy import Budget, Disruption, Spare
from engine.model.quantity import NODES, NVIDIA_GPU, Resources
from engine.model.reason import DisruptionReason
from engine.model.refusal import LimitReached
from engine.model.replacement import AwaitsReplacement, NoPlace, RolloutWaits
from engine.model.upkeep import Upkeep
from engine.report.stay_words import stay_words
from tests.builders import G5_12XLARGE, G5_XLARGE, catalog, minutes
from tests.disruption.going_world import bought, kept, marks, of, releases, served, stay, steady

ALL_AT_ONCE = Upkeep(canaries=0)


def test_another_node_is_launched_first_and_the_machine_stays_until_it_is_up() -> None:
    one = of(served("llm")).started()
    [old] = one.running()
    one.new_image()

    plan = one.decide()
    assert plan.removals == ()
    [launch] = plan.launches
    assert (launch.reason, launch.pods) == (LaunchReason.REPLACEMENT, ())
    assert [key.name for key in launch.displaced] == ["llm"]
    assert launch.claim.replaces == (old.claim,)
    assert [each.reason for each in kept(plan, AwaitsReplacement)] == [
        AwaitsReplacement((launch.claim.name,), "Drifted: image ami-nvidia-amd64 -> ami-nvidia-amd64-new")
    ]

    # While it is on its way nothing more is bought, and nobody is asked to leave.
    one.apply(plan)
    again = one.decide()
    assert (again.launches, again.removals) == ((), ())
    assert [each.claim for each in kept(again, AwaitsReplacement)] == [old.claim]


def test_once_it_is_up_the_pods_leave_for_it_and_the_machine_goes() -> None:
    one = of(served("llm")).started()
    [old] = one.running()
    one.new_image()
    [launch] = one.turn().launches

    plan = one.decide()
    [mark] = marks(plan)
    assert mark.record.claim == old.claim
    assert mark.record.reason is DisruptionReason.DRIFTED
    assert mark.record.rule == "gpu: image ami-nvidia-amd64 -> ami-nvidia-amd64-new"
    assert [(place.pod.name, place.claim) for place in mark.places] == [("llm", launch.claim.name)]
    one.apply(plan)
    one.settle()
    [release] = releases(one.turn())
    assert release.record.claim == old.claim
    assert release.saving == UsdPerHour(0)
    assert one.rest().is_empty
    assert [each.claim for each in one.running()] == [launch.claim.name]
    assert one.homeless == []


def test_pods_go_where_there_is_room_already_and_nothing_is_bought() -> None:
    one = of(served("a", gpu=2), served("b", gpu=2)).started()
    [machine] = one.running()
    assert machine.instance_type == "g5.12xlarge"
    one.pods |= {each.key: each for each in (served("c", gpu=4),)}
    one.turn()
    one.turn()
    one.finish([served("c")])
    # Another machine of the same inputs stands free; the first is asked for by name of its age.
    one.policy = evolve(
        one.policy, node_pools=(evolve(one.policy.node_pools[0], expire_after=minutes(40), upkeep=ALL_AT_ONCE),)
    )
    plan = one.decide()
    assert plan.launches == ()
    assert [len(mark.pods) for mark in marks(plan)] == [2]


def test_many_drifted_machines_are_replaced_within_the_budget_and_nobody_is_without_a_node() -> None:
    pool = steady(disruption=evolve(steady().disruption, budgets=(Budget(nodes=2),)), upkeep=ALL_AT_ONCE)
    one = of(*(served(f"llm-{number}") for number in range(6)), pool=pool).started()
    old = {each.claim for each in one.running()}
    assert len(old) == 6
    one.new_image()
    for _ in range(40):
        plan = one.turn()
        out = sum(node.is_marked for node in one.nodes.values()) + len(kept(plan, AwaitsReplacement))
        assert out <= 2
        assert len(one.running()) <= 8
        if plan.is_empty:
            break
    else:
        raise AssertionError("it comes to no rest")
    assert not old & {each.claim for each in one.running()}
    assert len(one.running()) == 6
    assert one.homeless == []
    assert len(one.evicted) == 6, "each pod moves once"


def test_base_capacity_is_replaced_before_it_goes() -> None:
    pool = steady(min_nodes=2, upkeep=ALL_AT_ONCE)
    one = of(pool=pool).started()
    old = {each.claim for each in one.running()}
    one.new_image()
    serving = []
    for _ in range(20):
        if one.turn().is_empty:
            break
        serving.append(sum(not node.is_marked for node in one.nodes.values()))
    assert min(serving) >= 2
    assert len(one.running()) == 2
    assert not old & {each.claim for each in one.running()}


def test_a_world_that_has_no_drift_left_is_at_rest_for_long() -> None:
    one = of(served("a"), served("b"), pool=steady(upkeep=ALL_AT_ONCE)).started()
    one.new_image()
    one.rest()
    assert all(one.turn(minutes(60)).is_empty for _ in range(6))


def test_a_launch_that_serves_waiting_pods_too_is_for_them_and_says_whom_it_replaces() -> None:
    one = of(served("a", gpu=2), pool=steady(upkeep=ALL_AT_ONCE)).started()
    one.new_image()
    one.pods |= {each.key: each for each in (served("b", gpu=3),)}
    plan = one.decide()
    told = {launch.reason for launch in bought(plan)}
    assert told <= {LaunchReason.PENDING_PODS, LaunchReason.REPLACEMENT}
    assert [key.name for launch in plan.launches for key in launch.pods] == ["b"]
    assert [key.name for launch in plan.launches for key in launch.displaced] in ([], ["a"])


def test_a_replacement_that_comes_smaller_than_promised_is_not_bought_again_and_again() -> None:
    one = of(served("llm"), pool=steady(upkeep=ALL_AT_ONCE)).started()
    old = {each.claim for each in one.running()}
    one.new_image()
    one.reports = lambda claim, node: (
        node if claim.name in old else evolve(node, allocatable=Resources({**node.allocatable, "cpu": 10}))
    )
    launched = [len(one.turn().launches) for _ in range(8)]
    assert sum(launched) == 1
    assert one.evicted == []


def test_a_change_is_tried_on_one_node_and_the_rest_follows_once_it_has_stood_for_a_while() -> None:
    one = of(*(served(f"llm-{number}") for number in range(4)), pool=steady(upkeep=Upkeep(soak=minutes(30)))).started()
    old = {each.claim for each in one.running()}
    one.new_image()
    plan = one.turn(minutes(5))
    assert len(plan.launches) == 1
    assert {type(each.reason) for each in plan.kept} == {AwaitsReplacement, RolloutWaits}
    assert {each.reason.change for each in plan.kept if isinstance(each.reason, RolloutWaits)} == {
        "Drifted: image ami-nvidia-amd64 -> ami-nvidia-amd64-new"
    }
    for _ in range(5):
        plan = one.turn(minutes(5))
        assert plan.launches == ()
    assert len(kept(plan, RolloutWaits)) == 3
    for _ in range(30):
        one.turn(minutes(5))
    assert not old & {each.claim for each in one.running()}
    assert one.homeless == []


def test_a_change_whose_first_node_does_not_come_up_stops_there_and_says_so() -> None:
    one = of(*(served(f"llm-{number}") for number in range(4)), pool=steady()).started()
    old = {each.claim for each in one.running()}
    one.new_image()
    one.registers = lambda claim: claim.name in old
    plans = [one.turn(minutes(10)) for _ in range(12)]
    assert len(kept(plans[0], RolloutWaits)) == 3
    assert old <= {each.claim for each in one.running()}
    assert one.evicted == []
    # By then the pool has failed so often that none of them would be replaced, whoever tries.
    assert {stay_words(each.reason, one.now).partition(": ")[2] for each in plans[-1].kept} == {
        "gpu: 4 machines in a row did not come up in time; the next try in 4m"
    }
    assert sum(len(plan.launches) for plan in plans) == 4


def test_a_machine_that_may_not_go_gives_its_turn_to_try_a_change_to_the_next() -> None:
    one = of(*(served(f"llm-{number}") for number in range(3)), pool=steady()).started()
    one.new_image()
    first = min(one.nodes)
    here = next(pod for pod in one.pods.values() if pod.node_name == first)
    pinned = evolve(here.placing, node_selector={"disk": "there"})
    one.pods[here.key] = evolve(here, placing=pinned)
    one.nodes[first] = evolve(one.nodes[first], labels={**one.nodes[first].labels, "disk": "there"})
    old = set(one.nodes) - {first}
    plan = one.turn()
    assert isinstance(stay(plan, first), NoPlace)
    assert len(kept(plan, AwaitsReplacement)) == len(kept(plan, RolloutWaits)) == 1
    for _ in range(20):
        one.turn()
    assert first in one.nodes
    assert old.isdisjoint(one.nodes)


def test_nobody_is_asked_to_leave_for_a_node_that_shows_no_gpu_any_more_until_it_does() -> None:
    one = of(served("llm")).started()
    [old] = one.nodes
    one.new_image()
    one.turn()
    [new] = one.nodes.keys() - {old}
    whole = one.nodes[new]
    bare = Resources({name: amount for name, amount in whole.allocatable.items() if name != NVIDIA_GPU})
    assert [each.record.node for each in marks(one.decide())] == [old]
    one.nodes[new] = evolve(whole, allocatable=bare)
    assert marks(one.decide()) == []
    one.nodes[new] = whole
    assert [each.record.node for each in marks(one.decide())] == [old]


@pytest.mark.parametrize("limit", [2, 3])
def test_nobody_moves_to_a_machine_that_goes_first_in_the_same_plan(limit: int) -> None:
    """Two machines half in use, each with room for the other's pod, and limits that admit no third."""
    whole = [served(f"{name}-{number}", gpu=2) for name in "ab" for number in range(2)]
    one = of(*whole, pool=steady(limits={NODES: limit}, upkeep=ALL_AT_ONCE)).started()
    assert [each.instance_type for each in one.running()] == ["g5.12xlarge"] * 2
    one.finish([served("a-1"), served("b-1")])
    one.new_image()
    for _ in range(40):
        plan = one.turn()
        first = {each.record.claim for each in plan.removals if each.delete_first is not None}
        going = {each.record.claim for each in plan.removals}
        for mark in marks(plan):
            assert first.isdisjoint(place.claim for place in mark.places)
            assert mark.delete_first is not None or going.isdisjoint(place.claim for place in mark.places)
        if plan.is_empty:
            break
    assert plan.is_empty


@pytest.mark.parametrize("spare", [1, 2])
def test_base_capacity_goes_first_where_a_limit_is_full_though_devices_of_it_are_kept_spare(spare: int) -> None:
    one_out = Disruption(consolidate_after=timedelta(days=9), budgets=(Budget(nodes=1),))
    headroom = (Spare(NVIDIA_GPU, spare),)
    pool = steady(min_nodes=2, headroom=headroom, limits={NVIDIA_GPU: 2}, upkeep=ALL_AT_ONCE, disruption=one_out)
    one = of(pool=pool, sold=catalog([G5_XLARGE])).started()
    old = {each.claim for each in one.running()}
    assert len(old) == 2
    one.new_image()

    [mark] = marks(one.decide())
    assert mark.delete_first is not None
    assert {type(each.refusal) for each in mark.delete_first.refusals} == {LimitReached}
    one.rest()
    new = {each.claim for each in one.running()}
    assert (len(new), old & new) == (2, set())


def test_a_node_with_pods_and_spare_devices_goes_first_where_a_limit_is_full() -> None:
    pool = steady(headroom=(Spare(NVIDIA_GPU, 2),), limits={NODES: 1}, upkeep=ALL_AT_ONCE)
    one = of(served("a"), served("b"), pool=pool, sold=catalog([G5_12XLARGE])).started()
    [old] = one.running()
    one.new_image()

    [mark] = marks(one.decide())
    assert mark.delete_first is not None
    one.rest()
    [new] = one.running()
    assert new.claim != old.claim
    assert all(each.node_name is not None for each in one.pods.values())
