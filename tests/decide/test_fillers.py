"""Pods of a priority class that may not start nodes (case 7): they fill what is there and say what they wait for."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.refusal import PoolRefusal
from engine.model.spare_refusal import WaitsForSpareCapacity
from engine.model.workload import PriorityClass, Workload
from engine.report.words import refusal_words
from tests.builders import G5_12XLARGE, NOON, catalog, minutes, node_pool, pod
from tests.decide.world import World, policy

FILLER = PriorityClass("filler", value=-10, annotations={keys.MAY_START_NODES: "false"})
WORKLOAD = Workload(priority_classes=(FILLER, PriorityClass("batch", value=5)))
SOLD = catalog([G5_12XLARGE])


def filler(name: str, priority: int = -10, gpu: int = 1) -> Pod:
    return evolve(pod(name, gpu=gpu, priority=priority), priority_class="filler")


def world(*pods: Pod) -> World:
    return World(policy(node_pool()), pods, sold=SOLD)


def decide(one: World) -> Plan:
    return one.decide(workload=WORKLOAD)


def test_case_7_one_filler_has_the_free_gpu_and_the_others_wait_without_a_node() -> None:
    one = world(*(pod(f"real-{number}", gpu=1) for number in range(3)))
    one.turn(minutes(1))
    fillers = [filler(f"filler-{number}") for number in range(3)]
    one.pods.update({each.key: each for each in fillers})
    plan = decide(one)
    assert plan.launches == ()
    assert len(plan.placements) == 1
    assert {each.refusals for each in plan.unplaced} == {(PoolRefusal("", WaitsForSpareCapacity("filler")),)}
    assert len(plan.unplaced) == 2
    words = refusal_words(WaitsForSpareCapacity("filler"), NOON)
    assert words.startswith("waits for spare capacity")
    assert "filler" in words


def test_fillers_ride_on_nodes_that_are_launched_for_others() -> None:
    plan = decide(world(pod("real", gpu=3), *(filler(f"filler-{number}") for number in range(2))))
    [launch] = plan.launches
    assert len(launch.pods) == 2
    assert len(plan.unplaced) == 1


def test_fillers_alone_start_nothing() -> None:
    assert decide(world(filler("filler"))).launches == ()


def test_nothing_larger_is_bought_to_hold_fillers_too() -> None:
    both = World(policy(node_pool()), [pod("real", gpu=1), filler("filler")])
    [launch] = both.decide(workload=WORKLOAD).launches
    assert launch.claim.capacity.amount("nvidia.com/gpu") == 1


def test_fillers_leave_the_room_to_real_pods_whatever_their_priority() -> None:
    one = world(*(pod(f"real-{number}", gpu=1) for number in range(3)))
    one.turn(minutes(1))
    late, eager = pod("late", gpu=1), filler("eager", priority=1000)
    one.pods.update({late.key: late, eager.key: eager})
    plan = decide(one)
    assert plan.launches == ()
    assert [each.pod for each in plan.placements] == [late.key]


def test_a_class_that_says_nothing_may_start_nodes() -> None:
    real = evolve(pod("real", gpu=1), priority_class="batch")
    assert len(decide(world(real)).launches) == 1
