"""What always holds on a live cluster: late machines, a scheduler of its own mind, lanes, a Karpenter beside us."""

from __future__ import annotations

import random
from typing import Any

from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.model.claim import Claim
from engine.model.document import node_sets
from engine.model.environment import Lanes
from engine.model.node import Node
from engine.model.plan import Plan
from engine.model.pod import Pod, PodKey
from engine.model.policy import Budget, Disruption, NodePool
from engine.model.quantity import NODES, NVIDIA_GPU, Resources
from engine.model.reason import DisruptionReason
from engine.model.snapshot import KarpenterFacts
from tests.builders import environment, minutes, node_pool, pod, taint
from tests.decide.world import World, policy

SMALL = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIVE = Disruption(consolidate_after=minutes(5), budgets=(Budget(percent=100),))
AGENT = taint("agent.example.com/not-ready")

sizes = st.lists(
    st.sampled_from([("1", 1), ("2", 1), ("3500m", 1), ("1", 2), ("1", 4), ("500m", None), ("1500m", None)]),
    min_size=1,
    max_size=8,
)


def pods_of(drawn: list[tuple[str, int | None]], prefix: str = "p") -> list[Pod]:
    return [pod(f"{prefix}{n}", cpu=cpu, gpu=gpu) for n, (cpu, gpu) in enumerate(drawn)]


class Faults:
    """What goes wrong with each machine, drawn once for its name."""

    def __init__(self, dice: random.Random, share: float) -> None:
        self._dice, self.share = dice, share
        self._drawn: dict[str, str] = {}

    def of(self, claim: Claim) -> str:
        if claim.name not in self._drawn:
            bad = self._dice.random() < self.share
            self._drawn[claim.name] = self._dice.choice(["absent", "gpuless", "tainted", "unready"]) if bad else ""
        return self._drawn[claim.name]

    def registers(self, claim: Claim) -> bool:
        return self.of(claim) != "absent"

    def reports(self, claim: Claim, node: Node) -> Node:
        match self.of(claim):
            case "gpuless":
                return evolve(node, allocatable=Resources({**node.allocatable, NVIDIA_GPU: 0}))
            case "tainted":
                return evolve(node, taints=(*node.taints, AGENT))
            case "unready":
                return evolve(node, ready=False)
            case _:
                return node


pools: st.SearchStrategy[NodePool] = st.builds(
    node_pool,
    st.just("gpu"),
    limits=st.sampled_from([{}, {NVIDIA_GPU: 3}, {NODES: 2}]),
    disruption=st.just(FIVE),
    open_to_all_pods=st.booleans(),
    min_nodes=st.sampled_from([0, 0, 1]),
)


def faulty(pool: NodePool, drawn: list[tuple[str, int | None]], dice: random.Random, share: float) -> World:
    faults = Faults(dice, share)
    return World(policy(pool), pods_of(drawn), registers=faults.registers, reports=faults.reports)


@SMALL
@given(pools, sizes, st.randoms(use_true_random=False), st.lists(st.integers(1, 25), min_size=8, max_size=14))
def test_a_deadline_never_removes_a_machine_on_which_pods_run_and_limits_stay_exact(
    pool: NodePool, drawn: list[tuple[str, int | None]], dice: random.Random, steps: list[int]
) -> None:
    world = faulty(pool, drawn, dice, 0.6)
    ever: dict[str, Claim] = {}
    for step in steps:
        plan = world.decide()
        ever |= {launch.claim.name: launch.claim for launch in plan.launches}
        busy = {each.node_name for each in world.pods.values() if each.node_name is not None}
        late = [each for each in plan.removals if each.record.reason is DisruptionReason.NOT_INITIALIZED]
        assert not busy & {each.record.node for each in late}
        assert len(late) <= world.environment.caps.removals
        world.apply(plan)
        world.settle()
        world.finish([each for each in list(world.pods.values()) if dice.random() < 0.1])
        world.now += minutes(step)
        counted = {each.claim for each in world.running()}
        counted |= {claim.name for claim in world.document.claims} if world.document else set()
        used = sum((Resources({**ever[name].capacity, NODES: 1}) for name in counted), Resources())
        assert all(used.amount(resource) <= limit for resource, limit in pool.limits.items())


@SMALL
@given(pools, sizes, st.randoms(use_true_random=False))
def test_once_machines_come_up_again_the_world_comes_to_rest(
    pool: NodePool, drawn: list[tuple[str, int | None]], dice: random.Random
) -> None:
    world = faulty(pool, drawn, dice, 0.7)
    for _ in range(8):
        world.turn(minutes(11))
    world.registers, world.reports = lambda claim: True, lambda claim, node: node
    quiet = 0
    for _ in range(80):
        quiet = quiet + 1 if world.turn(minutes(20)).is_empty else 0
        if quiet == 6:
            break
    assert quiet == 6
    assert world.ledger.planned.keys() <= {str(key) for key, each in world.pods.items() if each.is_waiting}


@SMALL
@given(pools, sizes, st.randoms(use_true_random=False), st.integers(1, 5), st.booleans())
def test_a_node_list_that_comes_empty_fails_no_machine(
    pool: NodePool, drawn: list[tuple[str, int | None]], dice: random.Random, turns: int, with_pods: bool
) -> None:
    world = faulty(pool, drawn, dice, 0.3)
    for _ in range(turns):
        world.turn()
    world.apply(world.decide())
    world.now += minutes(120)
    known = any(each.registered_at for each in world.ledger.milestones.values())
    plan = world.decide(nodes=(), pods=tuple(world.pods.values()) if with_pods else ())
    late = {each.record.claim for each in plan.removals if each.record.reason is DisruptionReason.NOT_INITIALIZED}
    before = {name for name, each in world.ledger.milestones.items() if each.failed_at}
    assert late <= before or not known


def demanded(plan: Plan) -> set[PodKey]:
    return {key for launch in plan.launches for key in launch.pods}


@SMALL
@given(sizes, sizes, st.randoms(use_true_random=False), st.booleans())
def test_whatever_the_scheduler_binds_where_nothing_is_bought_while_what_is_there_would_do(
    first: list[tuple[str, int | None]], later: list[tuple[str, int | None]], dice: random.Random, nominates: bool
) -> None:
    """Planned pods are bound to any node that fits; deciding again buys only for pods that fit nowhere."""
    pool = node_pool(disruption=FIVE, open_to_all_pods=True)
    weights: dict[tuple[PodKey, str], float] = {}
    world = World(
        policy(pool),
        pods_of(first),
        binds=lambda each, node: weights.setdefault((each.key, node.name), dice.random()),
    )
    world.apply(world.decide())
    assert world.decide().launches == (), "while the first are in flight"
    world.pods |= {each.key: each for each in pods_of(later, "late")}
    for _ in range(12):
        plan = world.decide()
        for key in demanded(plan):
            room = [world.room(node) for node in world.nodes.values() if not node.unschedulable]
            spare = len([each for each in room if world.pods[key].placing.requests.fits_in(each)])
            others = len(plan.placements)
            assert spare <= others, "a node that would do is left to nobody"
        if nominates:
            for nomination in plan.nominations:
                named = world.pods[nomination.pod]
                world.pods[nomination.pod] = evolve(named, nominated_node_name=nomination.node)
        world.apply(plan)
        world.settle()
        world.now += minutes(6)
    assert not any(each.is_waiting for each in world.pods.values())
    used = {each.node_name for each in world.pods.values()}
    assert {node.name for node in world.nodes.values()} == used, "what stayed empty was released"
    assert world.ledger.planned == {}


@SMALL
@given(st.integers(1, 6), st.integers(0, 6), st.randoms(use_true_random=False))
def test_of_pods_that_need_a_machine_each_no_more_machines_than_pods_are_ever_bought(
    first: int, later: int, dice: random.Random
) -> None:
    weights: dict[tuple[PodKey, str], float] = {}
    world = World(
        policy(node_pool(disruption=FIVE)),
        pods_of([("1", 1)] * first),
        binds=lambda each, node: weights.setdefault((each.key, node.name), dice.random()),
    )
    world.turn(minutes(1))
    differences = 0
    world.pods |= {each.key: each for each in pods_of([("1", 1)] * later, "late")}
    for _ in range(4):
        plan = world.turn(minutes(1))
        differences += len(plan.binding_differences)
    assert len(world.launched_ever) == first + later
    assert differences <= first + later, "each is told once"


def launched(plan: Plan) -> list[tuple[str, object, tuple[PodKey, ...]]]:
    return [(each.claim.name, evolve(each.claim, stack=""), each.pods) for each in plan.launches]


@SMALL
@given(sizes, sizes, st.integers(0, 3), st.integers(1, 3), st.sets(st.integers(0, 3)))
def test_lanes_change_where_a_launch_is_kept_and_never_what_is_launched(
    first: list[tuple[str, int | None]],
    later: list[tuple[str, int | None]],
    most: int,
    claims: int,
    busy: set[int],
) -> None:
    pool = node_pool(disruption=FIVE, open_to_all_pods=True)
    world = World(policy(pool), pods_of(first), stack=environment(lanes=Lanes(most=0)))
    world.turn()
    world.pods |= {each.key: each for each in pods_of(later, "late")}
    alone = world.decide()
    published = {each.name for each in world.document.foundation.launch_templates} if world.document else set()
    needs_template = any(each.claim.inputs.launch_template not in published for each in alone.launches)
    world.environment = environment(lanes=Lanes(most=most, claims=claims))
    stacks = tuple("test" if number == 0 else f"test.{number}" for number in busy)
    split = world.decide(busy_stacks=stacks)
    if needs_template and "test" in stacks:
        assert {each.claim.inputs.launch_template for each in split.launches} <= published
        assert split.document.foundation == (world.document.foundation if world.document else None)
        return
    assert launched(split) == launched(alone)
    idle = {lane for lane in ("test", *(f"test.{number}" for number in range(1, most + 1))) if lane not in stacks}
    assert {each.claim.stack for each in split.launches} <= (idle or {"test"}) | ({"test"} if needs_template else set())


@SMALL
@given(sizes, st.randoms(use_true_random=False))
def test_beside_a_live_karpenter_nothing_of_its_pools_and_nodes_is_touched(
    drawn: list[tuple[str, int | None]], dice: random.Random
) -> None:
    world = World(policy(node_pool(disruption=Disruption(consolidate_after=minutes(0), budgets=()))), pods_of(drawn))
    world.turn()
    world.finish([each for each in list(world.pods.values()) if dice.random() < 0.5])
    world.pods |= {each.key: each for each in pods_of(drawn, "more")}
    facts: Any = KarpenterFacts(is_live=True, node_pools=("gpu",))
    if dice.random() < 0.5:
        facts = evolve(facts, node_pools=(), nodes=tuple(world.nodes))
    plan = world.decide(karpenter=facts)
    assert plan.removals == ()
    assert plan.launches == () or not facts.node_pools
    gone = sorted(each.claim for each in world.running())[:1]
    for claim in gone:
        world.lose(claim)
    told = world.decide(karpenter=facts)
    assert [each.record.claim for each in told.removals] == gone
    assert all(each.record.reason is DisruptionReason.LOST for each in told.removals)
    assert node_sets(tuple(plan.document.claims)) == plan.document.node_sets
