"""The checker itself: every corruption of a good plan is found, by the rule that it breaks."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from engine.decide import decide
from engine.model import labels as keys
from engine.model.document import node_sets
from engine.model.environment import Caps
from engine.model.ledger import Milestones, Unavailable
from engine.model.money import total
from engine.model.node import Instance, InstanceState
from engine.model.plan import Launch, LaunchReason, Nomination, Placement, Plan, Unplaced
from engine.model.pod import PodKey
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.snapshot import CloudFacts
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    M5_LARGE,
    NOON,
    catalog,
    claim,
    daemon_set,
    document,
    environment,
    minutes,
    node,
    node_class,
    node_pool,
    pod,
    requirement,
    snapshot,
    taint,
    toleration,
    usd,
)
from tests.decide.world import IMAGES, policy
from tests.scheduling.checker.plan import violations
from tests.scheduling.random_clusters import Cluster

CPU_POOL = node_pool("cpu", min_nodes=2, requirements=[requirement(keys.CAPACITY_TYPE, "In", keys.ON_DEMAND)])
GPU_POOL = node_pool("gpu", taints=[taint("gpu")], limits={NVIDIA_GPU: 4})
STANDING = claim("cpu-00001", M5_LARGE, pool=CPU_POOL, created=NOON - minutes(60))
GPU, BIG, WIDE = PodKey("default", "gpu"), PodKey("default", "big"), PodKey("default", "wide")
SMALL, GATED, SPREAD = PodKey("default", "small"), PodKey("default", "gated"), PodKey("default", "spread")


def a_cluster() -> Cluster:
    """A node with some room, a tainted GPU pool with a limit, a pool with base capacity, a pod of each kind."""
    pods = [
        pod("running", cpu="500m", node="node-1"),
        pod("small", cpu="500m"),
        pod("big", cpu="1500m", selector={keys.ZONE: "us-east-1b"}),
        pod("gpu", gpu=1, tolerations=[toleration("gpu")]),
        pod("wide", cpu="400"),
        pod("spread", unsupported=("topology spread (DoNotSchedule)",)),
        evolve(pod("gated"), scheduling_gated=True),
    ]
    identity = "i-1"
    instance = Instance(
        identity, STANDING.name, InstanceState.RUNNING, "m5.large", "us-east-1a", keys.ON_DEMAND, NOON - minutes(60)
    )
    stands = node("node-1", M5_LARGE, instance_id=identity, labels=STANDING.labels, created=NOON - minutes(59))
    seen = snapshot(
        pods=pods,
        nodes=[stands],
        daemon_sets=[daemon_set()],
        cloud=CloudFacts(instances=(instance,), images={"default": IMAGES}),
        document=document(STANDING),
    )
    up = Milestones(asked_at=NOON - minutes(60), launched_at=NOON - minutes(60), initialized_at=NOON - minutes(50))
    seen = evolve(
        seen, ledger=evolve(seen.ledger, milestones={STANDING.name: up}, instance_ids={STANDING.name: identity})
    )
    sold = catalog([M5_LARGE, G5_2XLARGE, G5_12XLARGE])
    return Cluster(seen, policy(CPU_POOL, GPU_POOL, node_classes=(node_class(),)), sold, environment())


def rules_broken(cluster: Cluster, plan: Plan) -> set[str]:
    found = violations(cluster.snapshot, plan, cluster.policy, cluster.environment, cluster.catalog)
    return {each.rule for each in found}


def planned(cluster: Cluster) -> Plan:
    return decide(cluster.snapshot, cluster.policy, cluster.catalog, cluster.environment)


def test_the_plan_that_is_to_be_corrupted_is_good_and_has_something_of_everything() -> None:
    cluster = a_cluster()
    plan = planned(cluster)
    assert rules_broken(cluster, plan) == set()
    assert {each.pod for each in plan.placements} == {SMALL}
    assert {each.pods for each in plan.launches} == {(GPU,), (BIG,)}
    assert {each.pod for each in plan.unplaced} == {WIDE, SPREAD}


# --- what is done to plans


def relaunched(plan: Plan, *launches: Launch) -> Plan:
    """The plan with other launches; document and money go along."""
    old = {each.claim.name for each in plan.launches}
    claims = [each for each in plan.document.claims if each.name not in old]
    claims += [each.claim for each in launches]
    proposed = evolve(plan.document, node_sets=node_sets(iter(claims)))
    after = total(each.usd_per_hour for each in claims)
    return evolve(plan, launches=launches, document=proposed, usd_per_hour_after=after)


def changed(pool: str, change: Callable[[Launch], Launch]) -> Callable[[Plan], Plan]:
    """The launch of a pool becomes another."""
    return lambda plan: relaunched(
        plan, *(change(each) if each.claim.node_pool == pool else each for each in plan.launches)
    )


def with_claim(**fields: Any) -> Callable[[Launch], Launch]:
    return lambda launch: evolve(launch, claim=evolve(launch.claim, **fields))


def with_inputs(**fields: Any) -> Callable[[Launch], Launch]:
    return lambda launch: evolve(launch, claim=evolve(launch.claim, inputs=evolve(launch.claim.inputs, **fields)))


def with_pods(*pods: PodKey) -> Callable[[Launch], Launch]:
    return lambda launch: evolve(launch, pods=pods)


def label(key: str, value: str) -> Callable[[Launch], Launch]:
    return lambda launch: evolve(launch, claim=evolve(launch.claim, labels={**launch.claim.labels, key: value}))


def moved(pod: PodKey, node: str | None = "node-1", claim: str | None = STANDING.name) -> Callable[[Plan], Plan]:
    """A pod is placed, on the standing node if nothing else is said, and nowhere else."""

    def move(plan: Plan) -> Plan:
        there = [each for each in plan.placements if each.pod != pod]
        unplaced = tuple(each for each in plan.unplaced if each.pod != pod)
        launches = tuple(evolve(each, pods=tuple(key for key in each.pods if key != pod)) for each in plan.launches)
        return evolve(plan, placements=(*there, Placement(pod, node, claim)), unplaced=unplaced, launches=launches)

    return move


def of_pool(plan: Plan, pool: str) -> Launch:
    return next(each for each in plan.launches if each.claim.node_pool == pool)


def twice(plan: Plan) -> Plan:
    launch = of_pool(plan, "gpu")
    more = [evolve(launch, claim=evolve(launch.claim, name=f"gpu-more-{number}")) for number in range(4)]
    return relaunched(plan, *plan.launches, *(evolve(each, pods=()) for each in more))


def renamed(name: str) -> Callable[[Launch], Launch]:
    return with_claim(name=name)


def without_answer(plan: Plan) -> Plan:
    return evolve(plan, unplaced=plan.unplaced[1:])


def without_reasons(plan: Plan) -> Plan:
    return evolve(plan, unplaced=tuple(Unplaced(each.pod, ()) for each in plan.unplaced))


def without_standing_claim(plan: Plan) -> Plan:
    left = [each for each in plan.document.claims if each.name != STANDING.name]
    return evolve(plan, document=evolve(plan.document, node_sets=node_sets(iter(left))))


def without_cpu_launch(plan: Plan) -> Plan:
    return relaunched(plan, of_pool(plan, "gpu"))


def told_otherwise(plan: Plan) -> Plan:
    return evolve(plan, limits=tuple(evolve(each, planned=each.planned + 1) for each in plan.limits))


def with_more_memory(launch: Launch) -> Launch:
    more = Resources({**launch.claim.allocatable, "memory": launch.claim.allocatable["memory"] + 2**30})
    return evolve(launch, claim=evolve(launch.claim, allocatable=more))


CORRUPTIONS: dict[str, tuple[str, Callable[[Plan], Plan]]] = {
    "a pod is placed twice": ("placed-once", lambda plan: evolve(plan, placements=plan.placements * 2)),
    "a pod is placed and refused": ("placed-once", changed("gpu", with_pods(GPU, WIDE))),
    "a waiting pod has no answer": ("answered", without_answer),
    "a pod is refused without a reason": ("reasons", without_reasons),
    "a pod behind a gate is placed": ("not-waiting", moved(GATED)),
    "a pod is placed that nobody knows": ("answered", moved(PodKey("default", "nobody"))),
    "a constraint that nobody judged is passed over": ("unsupported", moved(SPREAD)),
    "a node that stands is filled past its allocatable": ("room", moved(BIG)),
    "a new node is filled past its allocatable": ("room", changed("cpu", with_pods(BIG, SMALL))),
    "a taint is not tolerated": ("taints", changed("gpu", with_pods(GPU, SMALL))),
    "a selector is not met": ("node-labels", moved(BIG)),
    "a pod is on a node that is not there": ("placed-nowhere", moved(SMALL, "node-2")),
    "a pod is nominated elsewhere": (
        "nominated",
        lambda plan: evolve(plan, nominations=(Nomination(GPU, "node-1"),)),
    ),
    "a GPU node is launched for nobody": ("accelerated", changed("gpu", with_pods())),
    "a node is launched for nobody": (
        "for-somebody",
        changed("cpu", lambda launch: evolve(launch, pods=(), reason=LaunchReason.PENDING_PODS)),
    ),
    "an offering is not in the catalog": ("offering", changed("gpu", with_inputs(instance_type="g9.large"))),
    "an offering is in no zone of ours": ("offering", changed("gpu", with_inputs(zone="eu-west-1a"))),
    "a price is too low": ("price", changed("gpu", with_claim(usd_per_hour=usd("0.01")))),
    "a label tells another zone": ("claim-labels", changed("gpu", label(keys.ZONE, "us-east-1z"))),
    "a label comes from nowhere": ("claim-labels", changed("gpu", label("example.com/team", "a"))),
    "a pool's requirement is broken": ("pool-requirements", changed("cpu", label(keys.CAPACITY_TYPE, keys.SPOT))),
    "a taint of the pool is left out": ("claim-taints", changed("gpu", with_claim(taints=()))),
    "a node holds more than it will": ("allocatable", changed("cpu", with_more_memory)),
    "a node counts for less than it is": ("capacity", changed("gpu", with_claim(capacity=Resources()))),
    "a pool is no pool": ("pool", changed("gpu", with_claim(node_pool="other"))),
    "a claim has the name of another": ("new-name", changed("cpu", renamed(STANDING.name))),
    "a limit is passed": ("limits", twice),
    "a limit's use is told wrong": ("limits-told", told_otherwise),
    "a claim leaves without a record": ("records", without_standing_claim),
    "a claim comes without a launch": ("document", lambda plan: evolve(plan, launches=plan.launches[1:])),
    "the sum after is wrong": ("money", lambda plan: evolve(plan, usd_per_hour_after=usd("1"))),
    "base capacity is missing and not told": ("base", without_cpu_launch),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corrupted_plan_is_found_out(name: str) -> None:
    rule, corrupt = CORRUPTIONS[name]
    cluster = a_cluster()
    assert rule in rules_broken(cluster, corrupt(planned(cluster)))


# --- what is done to the world under a plan


def on_node(**fields: Any) -> Callable[[Cluster], Cluster]:
    def change(cluster: Cluster) -> Cluster:
        (stands,) = cluster.snapshot.nodes
        return evolve(cluster, snapshot=evolve(cluster.snapshot, nodes=(evolve(stands, **fields),)))

    return change


def with_pool(name: str, **fields: Any) -> Callable[[Cluster], Cluster]:
    def change(cluster: Cluster) -> Cluster:
        pools = tuple(evolve(each, **fields) if each.name == name else each for each in cluster.policy.node_pools)
        return evolve(cluster, policy=evolve(cluster.policy, node_pools=pools))

    return change


def refusing_all(cluster: Cluster) -> Cluster:
    barred = Unavailable(until=NOON + timedelta(minutes=3), refusals=1, code="InsufficientInstanceCapacity")
    ledger = evolve(cluster.snapshot.ledger, unavailable={each.key: barred for each in cluster.catalog.offerings})
    return evolve(cluster, snapshot=evolve(cluster.snapshot, ledger=ledger))


def with_instance_gone(cluster: Cluster) -> Cluster:
    dead = tuple(evolve(each, state=InstanceState.TERMINATED) for each in cluster.snapshot.cloud.instances)
    return evolve(cluster, snapshot=evolve(cluster.snapshot, cloud=evolve(cluster.snapshot.cloud, instances=dead)))


def with_caps(caps: Caps) -> Callable[[Cluster], Cluster]:
    return lambda cluster: evolve(cluster, environment=evolve(cluster.environment, caps=caps))


def with_stack_limit(cluster: Cluster) -> Cluster:
    limits = {"gpu": Resources({NVIDIA_GPU: 0})}
    return evolve(cluster, environment=evolve(cluster.environment, limits=limits))


def with_larger_daemon(cluster: Cluster) -> Cluster:
    large = daemon_set(cpu="1200m")
    return evolve(cluster, snapshot=evolve(cluster.snapshot, daemon_sets=(large,)))


CHANGES: dict[str, tuple[str, Callable[[Cluster], Cluster]]] = {
    "the node is cordoned": ("closed", on_node(unschedulable=True)),
    "the node is being deleted": ("closed", on_node(deleting=True)),
    "the node's instance is gone": ("closed", with_instance_gone),
    "the node is not ready": ("closed", on_node(ready=False)),
    "somebody taints the node": ("taints", on_node(taints=(taint("drained"),))),
    "the node lost its memory": ("room", on_node(allocatable=Resources({"cpu": 2000, "pods": 29}))),
    "a daemonset comes that takes the room": ("room", with_larger_daemon),
    "every offering refused a launch": ("unavailable", refusing_all),
    "the pool is paused": ("pool", with_pool("gpu", paused="by hand")),
    "the pool becomes static": ("static", with_pool("gpu", replicas=1)),
    "a limit of the stack says less": ("limits", with_stack_limit),
    "the pass may launch one": ("cap-launches", with_caps(Caps(launches=1))),
    "the pass may spend little": ("cap-dollars", with_caps(Caps(added_usd_per_hour=usd("0.1")))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_for_another_world_is_found_out(name: str) -> None:
    rule, change = CHANGES[name]
    cluster = a_cluster()
    assert rule in rules_broken(change(cluster), planned(cluster))


def test_the_checker_knows_values_and_nothing_of_what_it_judges() -> None:
    folder = Path(__file__).with_name("checker")
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    line = re.compile(r"^(?:from|import) ((?:engine|tests)[.\w]*)", re.MULTILINE)
    imported = {name: set(line.findall(text)) for name, text in texts.items()}
    own = ("engine.model.", "tests.scheduling.checker")
    assert len(texts) > 10
    assert {name: told for name, told in imported.items() if not all(each.startswith(own) for each in told)} == {}


def test_a_refused_pod_of_higher_priority_is_found_out() -> None:
    cluster = a_cluster()
    urgent = pod("urgent", cpu="500m", priority=10)
    seen = evolve(cluster.snapshot, pods=(*cluster.snapshot.pods, urgent))
    plan = planned(cluster)
    passed_over = evolve(plan, unplaced=(*plan.unplaced, evolve(plan.unplaced[0], pod=urgent.key)))
    assert rules_broken(evolve(cluster, snapshot=seen), passed_over) == {"priority"}


@pytest.mark.parametrize("trouble", ["node.kubernetes.io/not-ready", "readiness.k8s.io/network", "starting"])
def test_a_taint_of_start_up_keeps_pods_off_once_the_node_is_up_and_not_before(trouble: str) -> None:
    cluster = a_cluster()
    starting = evolve(STANDING, startup_taints=(taint("starting"),))
    seen = evolve(cluster.snapshot, document=document(starting))
    tainted = on_node(taints=(taint(trouble),))(evolve(cluster, snapshot=seen))
    plan = planned(cluster)
    assert "taints" in rules_broken(tainted, plan)
    coming = Milestones(launched_at=NOON - minutes(3), registered_at=NOON - minutes(1))
    before = evolve(plan, ledger=evolve(plan.ledger, milestones={**plan.ledger.milestones, STANDING.name: coming}))
    assert "taints" not in rules_broken(tainted, before)
