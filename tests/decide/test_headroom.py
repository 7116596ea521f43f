"""GPUs that a pool keeps spare: bought when they are missing, kept while they are wanted, given to pods that come."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

from attrs import evolve
from rich.console import Console

from engine.decide import decide
from engine.model import labels as keys
from engine.model.canonical import canonical_json, from_json
from engine.model.plan import HeadroomUse, LaunchReason, Plan
from engine.model.policy import Disruption, NodePool, Spare
from engine.model.quantity import NVIDIA_GPU
from engine.model.refusal import AcceleratorNotOffered, LimitReached, PoolPaused
from engine.model.stay import KeepsHeadroom
from engine.model.workload import PriorityClass, Workload
from engine.report.plan_gaps import headroom_section
from engine.report.stay_words import stay_words
from tests.builders import G5_12XLARGE, G5_XLARGE, M5_LARGE, NOON, ZONES, catalog, minutes, node_pool, pod, taint
from tests.decide.world import World, policy

GOES_AT_ONCE = Disruption(consolidate_after=timedelta(0))
SOLD = catalog([G5_XLARGE])


def pool(*, spare: int = 2, each: bool = False, **more: object) -> NodePool:
    headroom = (Spare(NVIDIA_GPU, spare, in_each_zone=each),)
    return node_pool(headroom=headroom, disruption=GOES_AT_ONCE, **more)  # type: ignore[arg-type]


def world(kept: NodePool | None = None, *pods: object, **more: object) -> World:
    return World(policy(kept or pool()), pods, **{"sold": SOLD, **more})  # type: ignore[arg-type]


def uses(plan: Plan) -> list[tuple[str, int, int]]:
    return [(use.zone, use.spare, use.wanted) for use in plan.headroom]


def test_what_is_missing_is_launched_and_says_what_for() -> None:
    plan = world().decide()
    assert [launch.reason for launch in plan.launches] == [LaunchReason.HEADROOM] * 2
    assert [launch.pods for launch in plan.launches] == [(), ()]
    assert plan.headroom == (HeadroomUse("gpu", "", NVIDIA_GPU, wanted=2, spare=2),)


def test_nothing_of_it_is_taken_for_a_pod() -> None:
    one = world(pool(spare=1, limits={NVIDIA_GPU: 0}))
    plan = one.decide()
    assert (plan.placements, plan.unplaced, plan.nominations, plan.ledger.planned) == ((), (), (), {})
    one = world()
    one.turn(minutes(1))
    plan = one.decide()
    assert (plan.placements, plan.unplaced, plan.nominations, plan.ledger.planned) == ((), (), (), {})


def test_once_it_is_there_nothing_happens_however_long_it_stands_empty() -> None:
    one = world()
    plan = one.rest()
    assert len(one.running()) == 2
    for _ in range(5):
        plan = one.turn(timedelta(hours=1))
        assert plan.is_empty
    reasons = {each.reason for each in plan.kept}
    assert reasons == {KeepsHeadroom(devices=1)}
    assert stay_words(KeepsHeadroom(devices=1), NOON) == "headroom: 1 of its GPUs is kept free"


def test_machines_on_their_way_count() -> None:
    one = world(registers=lambda claim: False)
    one.turn(minutes(1))
    assert one.decide().launches == ()


def test_a_real_pod_takes_the_spare_node_and_another_is_launched() -> None:
    one = world()
    one.rest()
    comes = pod("comes", gpu=1)
    one.pods[comes.key] = comes
    plan = one.turn(minutes(1))
    assert [each.pod for each in plan.placements] == [comes.key]
    assert [launch.reason for launch in plan.launches] == [LaunchReason.HEADROOM]
    assert one.pods[comes.key].node_name is not None
    one.rest()
    assert len(one.running()) == 3


def test_when_the_pod_has_gone_the_surplus_goes_too() -> None:
    one = world()
    one.rest()
    comes = pod("comes", gpu=1)
    one.pods[comes.key] = comes
    one.rest()
    one.finish([comes])
    one.rest()
    assert len(one.running()) == 2
    assert len(one.launched_ever) == 3


def test_spare_gpus_of_nodes_in_use_count_first() -> None:
    one = world(pool(spare=0), pod("uses", gpu=1), sold=catalog([G5_12XLARGE]))
    one.rest()
    one.policy = policy(pool(spare=3))
    plan = one.decide()
    assert plan.launches == ()
    assert uses(plan) == [("", 3, 3)]
    one.policy = policy(pool(spare=4))
    assert len(one.decide().launches) == 1


def test_each_zone_keeps_its_own() -> None:
    one = world(pool(spare=1, each=True))
    plan = one.turn()
    assert sorted(launch.claim.inputs.zone for launch in plan.launches) == sorted(ZONES)
    assert uses(plan) == [(zone, 1, 1) for zone in sorted(ZONES)]
    assert one.rest().is_empty


def test_a_limit_holds_and_is_the_reason() -> None:
    plan = world(pool(limits={NVIDIA_GPU: 1})).decide()
    assert len(plan.launches) == 1
    [use] = plan.headroom
    assert (use.spare, use.wanted) == (1, 2)
    assert [type(each) for each in use.refusals] == [LimitReached]


def test_real_pods_have_the_limit_before_headroom() -> None:
    plan = world(pool(limits={NVIDIA_GPU: 1}), pod("real", gpu=1)).decide()
    [launch] = plan.launches
    assert len(launch.pods) == 1
    assert uses(plan) == [("", 0, 2)]


def test_a_pool_that_has_no_such_device_says_so() -> None:
    plan = world(sold=catalog([M5_LARGE])).decide()
    assert plan.launches == ()
    [use] = plan.headroom
    assert [type(each) for each in use.refusals] == [AcceleratorNotOffered]


def test_a_paused_pool_keeps_what_it_has_and_launches_none() -> None:
    plan = world(pool(paused="why")).decide()
    assert plan.launches == ()
    [use] = plan.headroom
    assert use.refusals == (PoolPaused(why="why"),)


def test_the_pools_own_taints_keep_no_headroom_away() -> None:
    plan = world(pool(taints=(taint("nvidia.com/gpu"),))).decide()
    assert len(plan.launches) == 2


def test_pods_that_start_no_nodes_start_none_by_way_of_headroom() -> None:
    """They sit on the spare GPUs, and make way; what they hold counts as spare, or they would be followed for ever."""
    workload = Workload(priority_classes=(PriorityClass("filler", -10, annotations={keys.MAY_START_NODES: "false"}),))
    one = world()
    one.rest()
    fillers = [evolve(pod(f"filler-{number}", gpu=1, priority=-10), priority_class="filler") for number in range(5)]
    one.pods.update({each.key: each for each in fillers})
    for _ in range(5):
        plan = one.decide(workload=workload)
        assert plan.launches == ()
        one.apply(plan)
        one.settle()
        one.now += minutes(10)
    assert sum(each.node_name is not None for each in one.pods.values()) == 2
    assert uses(plan) == [("", 2, 2)]


def test_the_order_of_the_input_changes_nothing() -> None:
    one = world(pool(spare=1), *(pod(f"pod-{number}", gpu=1) for number in range(3)))
    one.turn(minutes(1))
    snapshot = one.snapshot()
    turned = evolve(snapshot, pods=snapshot.pods[::-1], nodes=snapshot.nodes[::-1])
    plans = [decide(each, one.policy, one.catalog, one.environment) for each in (snapshot, turned)]
    assert plans[0] == plans[1]


def test_a_plan_with_headroom_comes_back_from_its_json() -> None:
    plan = world(pool(limits={NVIDIA_GPU: 1})).decide()
    assert from_json(Plan, canonical_json(plan)) == plan


def test_the_plan_screen_tells_what_is_free_and_why_no_more() -> None:
    one = world(pool(limits={NVIDIA_GPU: 1}))
    plan = one.decide()
    section = headroom_section(plan, NOON)
    console = Console(width=120, record=True, file=StringIO())
    for each in section:
        console.print(each)
    text = console.export_text()
    assert "1 of 2" in text
    assert "limit" in text
