"""What always holds, over many small random worlds: purity, nothing vanishing, limits, budgets, rest, reasons."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.decide import decide
from engine.model import labels as keys
from engine.model.canonical import canonical_json
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import Pod
from engine.model.policy import Budget, ConsolidationPolicy, Disruption, Kubelet, NodePool
from engine.model.quantity import NODES, NVIDIA_GPU, Resources
from engine.model.snapshot import CloudFacts, Snapshot
from tests.builders import daemon_set, minutes, node_class, node_pool, pod, requirement, taint, toleration
from tests.decide.world import World, policy

SMALL = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
T = TypeVar("T")
NAMES = ("cpu", "gpu", "spot")

budgets = st.lists(
    st.one_of(
        st.builds(Budget, nodes=st.integers(0, 3)),
        st.builds(Budget, percent=st.sampled_from([0, 10, 50, 100])),
    ),
    max_size=2,
).map(tuple)
disruptions = st.builds(
    Disruption,
    consolidation_policy=st.sampled_from(ConsolidationPolicy),
    consolidate_after=st.sampled_from([None, minutes(0), minutes(15)]),
    budgets=budgets,
)
limits: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({NVIDIA_GPU: st.integers(0, 6)}),
    st.fixed_dictionaries({NODES: st.integers(0, 4), "cpu": st.integers(0, 64)}),
)


@st.composite
def pools(draw: st.DrawFn) -> tuple[NodePool, ...]:
    base: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {"min_nodes": 1}, {"min_nodes": 2}, {"replicas": 1}])
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    return tuple(
        node_pool(
            name,
            weight=draw(st.integers(0, 1)) * 10,
            requirements=draw(
                st.sampled_from(
                    [(), (requirement(keys.CAPACITY_TYPE, "In", keys.SPOT if name == "spot" else "on-demand"),)]
                )
            ),
            taints=draw(st.sampled_from([(), (taint("team", "a"),)])),
            limits=draw(limits),
            disruption=draw(disruptions),
            **draw(base),
        )
        for name in names
    )


@st.composite
def some_pods(draw: st.DrawFn, prefix: str = "p") -> list[Pod]:
    return [
        pod(
            f"{prefix}{number}",
            cpu=draw(st.sampled_from(["100m", "2", "7", "1000"])),
            memory=draw(st.sampled_from(["128Mi", "6Gi"])),
            gpu=draw(st.sampled_from([None, 1, 1, 2, 8])),
            selector=draw(st.sampled_from([{}, {}, {keys.ZONE: "us-east-1b"}, {"no-such": "label"}])),
            tolerations=draw(st.sampled_from([(), (toleration("team"),)])),
            priority=draw(st.integers(0, 1)),
        )
        for number in range(draw(st.integers(0, 8)))
    ]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A world some passes on, in which some launches were refused and some deletions have failed."""
    unlucky = draw(st.integers(0, 4))

    def refuses(claim: Claim) -> bool:
        return claim.inputs.capacity_type == keys.SPOT and int(claim.name[-1], 16) % 5 < unlucky

    world = World(
        policy(*draw(pools())),
        draw(some_pods()),
        daemon_sets=draw(st.sampled_from([(), (daemon_set(),)])),
        refuses=refuses,
        keeps=lambda claim: int(claim[-1], 16) % 5 < unlucky,
    )
    for _ in range(draw(st.integers(0, 4))):
        world.turn()
        world.finish(
            draw(st.lists(st.sampled_from(sorted(world.pods.values(), key=_key)), max_size=4)) if world.pods else []
        )
        if world.running() and draw(st.integers(0, 5)) == 0:
            world.lose(sorted(each.claim for each in world.running())[0])
    return world


def _key(one: Pod) -> str:
    return str(one.key)


def shuffled(items: Iterable[T], dice: random.Random) -> tuple[T, ...]:
    mixed = list(items)
    dice.shuffle(mixed)
    return tuple(mixed)


def shuffled_snapshot(seen: Snapshot, dice: random.Random) -> Snapshot:
    cloud, document, ledger = seen.cloud, seen.document, seen.ledger
    if document is not None:
        sets = [evolve(each, claims=shuffled(each.claims, dice)) for each in document.node_sets]
        document = evolve(document, node_sets=shuffled(sets, dice), removals=shuffled(document.removals, dice))
    return evolve(
        seen,
        pods=shuffled(seen.pods, dice),
        nodes=shuffled(seen.nodes, dice),
        daemon_sets=shuffled(seen.daemon_sets, dice),
        cloud=evolve(cloud, instances=shuffled(cloud.instances, dice)),
        document=document,
        ledger=evolve(
            ledger,
            unavailable=dict(shuffled(ledger.unavailable.items(), dice)),
            empty_since=dict(shuffled(ledger.empty_since.items(), dice)),
            instance_ids=dict(shuffled(ledger.instance_ids.items(), dice)),
            outcomes=shuffled(ledger.outcomes, dice),
            milestones=dict(shuffled(ledger.milestones.items(), dice)),
            planned=dict(shuffled(ledger.planned.items(), dice)),
            bring_ups=dict(shuffled(ledger.bring_ups.items(), dice)),
            owed=dict(shuffled(ledger.owed.items(), dice)),
        ),
    )


@SMALL
@given(worlds(), st.randoms(use_true_random=False))
def test_the_same_inputs_in_any_order_give_a_byte_identical_plan(world: World, dice: random.Random) -> None:
    plan = canonical_json(world.decide())
    rules = evolve(world.policy, node_pools=shuffled(world.policy.node_pools, dice))
    sold = evolve(
        world.catalog,
        instance_types=shuffled(world.catalog.instance_types, dice),
        offerings=shuffled(world.catalog.offerings, dice),
    )
    again = decide(shuffled_snapshot(world.snapshot(), dice), rules, sold, world.environment)
    if again.document.version == (world.document.version if world.document else 0):
        # An unchanged document is carried as it came, and it came shuffled.
        again = evolve(again, document=world.decide().document, hash=world.decide().hash)
    assert canonical_json(again) == plan


def names(document: DesiredDocument | None) -> Counter[str]:
    return Counter(claim.name for claim in document.claims) if document else Counter()


@SMALL
@given(worlds())
def test_the_document_is_what_was_there_less_what_records_name_plus_launches(world: World) -> None:
    before = world.document
    plan = world.decide()
    released = [each.record.claim for each in plan.removals if each.phase is RemovalPhase.RELEASE]
    launched = [launch.claim.name for launch in plan.launches]
    assert names(plan.document) == names(before) - Counter(released) + Counter(launched)
    assert Counter(released) <= names(before)
    assert set(released) <= {record.claim for record in plan.document.removals}
    kept = {claim.name: claim for claim in before.claims} if before else {}
    assert all(claim == kept[claim.name] for claim in plan.document.claims if claim.name in kept)
    templates = {template.name for template in plan.document.foundation.launch_templates}
    assert {claim.inputs.launch_template for claim in plan.document.claims} == templates


@SMALL
@given(worlds(), st.booleans(), st.booleans())
def test_an_empty_read_removes_nothing(world: World, without_pods: bool, without_instances: bool) -> None:
    world.ledger = evolve(world.ledger, outcomes=())
    cloud = world.cloud()
    blind = world.decide(
        nodes=(),
        pods=() if without_pods else tuple(world.pods.values()),
        cloud=CloudFacts(images=cloud.images) if without_instances else cloud,
    )
    dead = {each.claim for each in world.instances.values() if not each.is_alive}
    assert {removal.record.claim for removal in blind.removals} <= (set() if without_instances else dead)


@SMALL
@given(worlds(), some_pods("later"), st.lists(st.integers(0, 20), min_size=4, max_size=4))
def test_limits_hold_over_passes_that_fail_in_part(world: World, later: list[Pod], luck: list[int]) -> None:
    world.pods |= {each.key: each for each in later}
    capacities = {claim.name: claim for claim in world.document.claims} if world.document else {}
    for turn in luck:
        world.keeps = lambda claim, turn=turn: int(claim[-1], 16) < turn  # type: ignore[misc]
        plan = world.turn()
        capacities |= {launch.claim.name: launch.claim for launch in plan.launches}
        existing = {each.claim for each in world.running()} | set(names(world.document))
        for pool in world.policy.node_pools:
            owned = [
                capacities[name] for name in existing if name in capacities and capacities[name].node_pool == pool.name
            ]
            used = sum((Resources({**claim.capacity, NODES: 1}) for claim in owned), Resources())
            assert all(used.amount(resource) <= limit for resource, limit in pool.limits.items())


@SMALL
@given(worlds(), st.integers(1, 3))
def test_budgets_hold_for_every_voluntary_removal(world: World, passes: int) -> None:
    for _ in range(passes):
        nodes = dict(world.nodes)
        plan = world.decide()
        assert _within_budgets(world, plan, [each.labels[keys.NODE_POOL] for each in nodes.values()])
        world.apply(plan)
        world.finish(list(world.pods.values())[:2])
        world.settle()
        world.now += minutes(20)


def _within_budgets(world: World, plan: Plan, registered: list[str]) -> bool:
    lost = Counter(
        each.record.node_pool
        for each in plan.removals
        if each.record.budget is None and each.record.reason.value == "Lost"
    )
    going = {each.record.node for each in plan.removals if each.record.budget is not None}
    for pool in world.policy.node_pools:
        mine = [each for each in world.nodes.values() if each.labels[keys.NODE_POOL] == pool.name]
        base = registered.count(pool.name) + lost[pool.name]
        out = sum(each.is_marked or each.name in going for each in mine) + lost[pool.name]
        bounds = [
            -(-base * each.percent // 100) if each.percent is not None else each.nodes or 0
            for each in pool.disruption.budgets
        ]
        if any(each.name in going for each in mine) and bounds and out > min(bounds):
            return False
    return True


@SMALL
@given(worlds())
def test_a_world_left_alone_comes_to_rest(world: World) -> None:
    world.keeps = lambda claim: False
    world.refuses = lambda claim: claim.inputs.zone == "us-east-1a"
    quiet = 0
    for _ in range(60):
        quiet = quiet + 1 if world.turn(minutes(20)).is_empty else 0
        if quiet == 5:
            return
    raise AssertionError("no rest after 60 passes")


@SMALL
@given(worlds(), some_pods("later"))
def test_every_pod_and_every_machine_has_its_answer(world: World, later: list[Pod]) -> None:
    world.pods |= {each.key: each for each in later}
    plan = world.decide()
    answered = Counter(each.pod for each in plan.placements)
    answered += Counter(key for launch in plan.launches for key in launch.pods)
    answered += Counter(each.pod for each in plan.unplaced)
    assert answered == Counter(each.key for each in world.pods.values() if each.is_waiting)
    assert all(each.refusals for each in plan.unplaced)
    machines = Counter(each.claim for each in plan.kept) + Counter(each.record.claim for each in plan.removals)
    assert machines == names(world.document)


def bought(plan: Plan) -> Counter[tuple[str, str, tuple[str, ...]]]:
    return Counter(
        (launch.claim.node_pool, launch.claim.inputs.instance_type, tuple(map(str, launch.pods)))
        for launch in plan.launches
    )


@SMALL
@given(worlds(), some_pods("later"))
def test_a_broken_pod_or_pool_never_stops_the_rest(world: World, later: list[Pod]) -> None:
    world.pods |= {each.key: each for each in later}
    expected = world.decide()
    odd = [
        pod("odd-1", unsupported=("resource claims",), gpu=1),
        pod("odd-2", cpu="900000000", priority=1000),
        pod("odd-3", affinity=[[]], priority=1000),
        evolve(pod("odd-4"), node_name="no-such-node"),
    ]
    world.pods |= {each.key: each for each in odd}
    broken = node_class("broken", kubelet=Kubelet(kube_reserved={"cpu": "much"}))
    world.policy = policy(
        *world.policy.node_pools,
        node_pool("broken", node_class="broken", weight=100, min_nodes=1),
        node_pool("lost", node_class="nowhere", weight=99, min_nodes=1),
        node_classes=(*world.policy.node_classes, broken),
    )
    found = world.decide()
    assert bought(found) == bought(expected)
    assert found.removals == expected.removals
