"""Cases from public bug reports on live clusters: late, partial and missing devices, pods that trickle in."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.model.claim import Claim
from engine.model.node import Node
from engine.model.plan import Plan, RemovalPhase
from engine.model.policy import Disruption
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.reason import DisruptionReason
from engine.model.refusal import BringUpsFailed
from engine.model.replacement import Hold, PodHolds
from engine.model.stay import Degraded, NotInitialized, Overdue
from tests.builders import NOON, minutes, node_pool, pod, requirement, taint
from tests.decide.world import World, policy

P5 = requirement("node.kubernetes.io/instance-type", "In", "p5.48xlarge")
AT_ONCE = Disruption(consolidate_after=minutes(0), budgets=())


def with_gpus(node: Node, count: int) -> Node:
    return evolve(node, allocatable=Resources({**node.allocatable, NVIDIA_GPU: count}))


def without_gpus(claim: Claim, node: Node) -> Node:
    return with_gpus(node, 0)


def phases(plan: Plan) -> list[tuple[DisruptionReason, RemovalPhase]]:
    return [(each.record.reason, each.phase) for each in plan.removals]


# --- 9: too many claims for pods that come together


def test_case_9_the_second_batch_counts_the_node_in_flight() -> None:
    pods = [pod(f"web-{number}", cpu="100m", memory="128Mi") for number in range(10)]
    world = World(policy(node_pool()), pods[:5])
    world.apply(world.decide())
    world.now += minutes(0.2)
    world.pods |= {each.key: each for each in pods[5:]}
    plan = world.decide()
    assert plan.launches == ()
    assert len(plan.placements) == 10
    assert len(world.launched_ever) == 1


# --- 10: the node registers, the GPU never appears


def gpuless(**more: object) -> World:
    fields: dict[str, object] = {"reports": without_gpus, **more}
    return World(policy(node_pool(disruption=AT_ONCE)), [pod("llm", gpu=1)], **fields)  # type: ignore[arg-type]


def test_case_10_a_node_whose_gpu_never_appears_is_replaced_once_and_meanwhile_nothing_is_bought() -> None:
    world = gpuless()
    for _ in range(3):
        plan = world.turn()
    assert len(world.launched_ever) == 1, "up to the deadline it counts as what it will be"
    assert [type(each.reason) for each in plan.kept] == [NotInitialized]

    world.reports = lambda claim, node: node if claim.name != world.launched_ever[0] else with_gpus(node, 0)
    failing = world.turn(minutes(1))
    assert phases(failing) == [(DisruptionReason.NOT_INITIALIZED, RemovalPhase.MARK)]
    assert failing.removals[0].record.rule == "gpu: not initialized within 30m of its launch: 0 of 1 nvidia.com/gpu"
    assert failing.removals[0].record.budget is None
    assert len(failing.launches) == 1, "replaced once"
    first, second = (world.document.claim(name) for name in world.launched_ever) if world.document else (None, None)
    assert first is not None
    assert second is not None
    assert first.inputs.zone != second.inputs.zone, "the offering is marked down"
    assert phases(world.turn(minutes(1))) == [(DisruptionReason.NOT_INITIALIZED, RemovalPhase.RELEASE)]
    assert world.rest().unplaced == ()
    assert len(world.launched_ever) == 2
    assert [each.claim for each in world.running()] == [world.launched_ever[1]]
    assert world.ledger.bring_ups == {}


def test_case_10_a_node_that_never_registers_is_released_at_once() -> None:
    world = gpuless(registers=lambda claim: False)
    world.turn(minutes(14))
    assert world.turn(minutes(1)).removals == ()
    plan = world.turn(minutes(1))
    assert phases(plan) == [(DisruptionReason.NOT_INITIALIZED, RemovalPhase.RELEASE)]
    assert plan.removals[0].record.rule == "gpu: not registered within 15m of its launch"
    assert len(plan.launches) == 1


def test_case_10_after_three_in_a_row_the_pool_stops_says_so_and_tries_again_one_at_a_time() -> None:
    world = gpuless()
    world.pods |= {each.key: each for each in [pod("other", gpu=1)]}
    while not (plan := world.turn(minutes(5))).unplaced:
        assert world.now < NOON + minutes(24 * 60)
    assert len(world.launched_ever) == 4, "two pods, two tries each; the second two made it four in a row"
    (refusal,) = {each.refusal for told in plan.unplaced for each in told.refusals}
    assert isinstance(refusal, BringUpsFailed)
    assert refusal.failures == 4
    while not (plan := world.turn(minutes(5))).launches:
        assert len(plan.unplaced) == 2
    assert plan.decided_at >= refusal.until
    assert len(plan.launches) == 1, "one at a time"
    assert len(plan.unplaced) == 1
    world.reports = lambda claim, node: node
    world.turn()
    world.turn()
    assert world.rest().unplaced == ()
    assert world.ledger.bring_ups == {}
    assert len(world.running()) == 2


# --- 11: the device plugin is late, restarts, or an agent taints the node


@pytest.mark.parametrize("is_late", [minutes(1.5), minutes(29)])
def test_case_11_a_node_whose_gpu_is_late_counts_as_in_flight(is_late: object) -> None:
    world = gpuless()
    world.turn(is_late)  # type: ignore[arg-type]
    plan = world.decide()
    assert plan.is_empty
    assert [each.claim for each in plan.placements] == world.launched_ever


def test_case_11_a_taint_of_an_agent_passes_for_gone_until_the_deadline_and_counts_then() -> None:
    agent = taint("agent.example.com/not-ready")
    world = gpuless(reports=lambda claim, node: evolve(node, taints=(*node.taints, agent)))
    world.policy = policy(node_pool(disruption=Disruption(consolidate_after=None)))
    world.turn(minutes(1.5))
    while (plan := world.turn()).decided_at < NOON + minutes(30):
        assert plan.is_empty
    assert len(plan.launches) == 1
    assert plan.removals == (), "it came up, with a taint that stays"
    for _ in range(20):
        plan = world.turn()
    assert len(world.launched_ever) <= 6, "and a pool of such nodes stops after three in a row"
    assert world.ledger.bring_ups["gpu"].failures >= 3


def test_case_11_a_restarting_plugin_is_no_lost_gpu_within_the_grace() -> None:
    world = World(policy(node_pool(disruption=AT_ONCE)), [pod("llm", gpu=1)])
    world.rest()
    first = pod("llm", gpu=1)
    world.finish([first])
    world.pods[first.key] = evolve(first, created_at=world.now)
    world.reports = without_gpus
    world.settle()
    assert not world.nodes[next(iter(world.nodes))].allocatable.amount(NVIDIA_GPU)
    began = world.now
    for passed in range(5):
        world.now = began + minutes(passed)
        plan = world.decide()
        assert plan.is_empty, f"{passed} minutes on"
        world.apply(plan)
    world.now = began + minutes(5)
    late = world.decide()
    assert len(late.launches) == 1, "then it counts as what it is"


def test_case_11_a_gpu_that_came_back_starts_a_new_grace_the_next_time() -> None:
    world = World(policy(node_pool()), [pod("llm", gpu=1)])
    world.rest()
    world.reports = without_gpus
    world.turn(minutes(4))
    world.turn(minutes(1))
    world.reports = lambda claim, node: node
    world.turn(minutes(1))
    world.turn(minutes(1))
    (milestones,) = world.ledger.milestones.values()
    assert milestones.accelerators_short_since is None
    assert milestones.initialized_at is not None


# --- 13: seven of eight


def partial() -> World:
    pool = node_pool(requirements=[P5], disruption=AT_ONCE)
    return World(policy(pool), [pod("train", gpu=8)], reports=lambda claim, node: with_gpus(node, 7))


def test_case_13_seven_of_eight_is_not_initialized_and_fails_at_the_deadline() -> None:
    world = partial()
    while (plan := world.turn()).decided_at < NOON + minutes(30):
        assert all(each.initialized_at is None for each in world.ledger.milestones.values())
        assert len(world.launched_ever) == 1
    assert phases(plan) == [(DisruptionReason.NOT_INITIALIZED, RemovalPhase.MARK)]


def test_case_13_with_pods_on_it_it_stays_flagged_and_takes_no_pod_for_what_it_lacks() -> None:
    world = partial()
    small, large = pod("small", gpu=1), pod("large", gpu=7)
    world.pods = {small.key: small}
    world.turn()
    assert world.pods[small.key].node_name is not None
    world.turn()
    world.pods[large.key] = large
    assert world.turn().is_empty, "until the deadline it is expected to have eight"
    world.now = NOON + minutes(31)
    plan = world.decide()
    assert plan.removals == ()
    assert [each.reason for each in plan.kept] == [Degraded(NVIDIA_GPU, 7, 8)]
    assert [each.pods for each in plan.launches] == [(large.key,)]
    world.apply(plan)
    world.finish([small])
    assert phases(world.decide()) == [(DisruptionReason.NOT_INITIALIZED, RemovalPhase.MARK)]


def test_case_13_a_gpu_lost_later_is_flagged_and_the_empty_node_may_still_go() -> None:
    world = World(policy(node_pool(requirements=[P5], disruption=AT_ONCE)), [pod("train", gpu=7)])
    world.rest()
    world.reports = lambda claim, node: with_gpus(node, 7)
    world.turn()
    world.turn()
    plan = world.turn()
    assert [each.reason for each in plan.kept] == [Degraded(NVIDIA_GPU, 7, 8)]
    world.finish(list(world.pods.values()))
    assert phases(world.decide()) == [(DisruptionReason.EMPTY, RemovalPhase.MARK)]


# --- a launch that nobody ever sees


def test_a_launch_that_never_shows_counts_as_in_flight_to_its_deadline_and_against_limits_for_good() -> None:
    pool = node_pool(limits={NVIDIA_GPU: 2})
    world = World(policy(pool), [pod("llm", gpu=1)], vanishes=lambda claim: claim.name == world.launched_ever[0])
    world.turn(minutes(1))
    assert world.turn(minutes(4)).is_empty
    assert world.turn(minutes(1)).is_empty
    plan = world.turn()
    assert len(plan.launches) == 1
    assert plan.removals == (), "absence is no proof"
    deadline = NOON + minutes(1 + 5)
    assert [each.reason.deadline for each in plan.kept if isinstance(each.reason, Overdue)] == [deadline]
    world.pods |= {each.key: each for each in [pod("next", gpu=1)]}
    world.turn()
    held = world.turn()
    assert held.launches == ()
    assert held.limits[0].used == 2
    assert PodHolds("default/llm", Hold.NOBODYS) in [each.reason for each in held.kept], "it would not come back"
