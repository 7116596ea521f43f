"""The plan as a whole: claims, documents, losses, memory."""

from __future__ import annotations

import re

import pytest
from attrs import evolve

from engine.decide.fleet import match
from engine.decide.launches import launches
from engine.model import labels as keys
from engine.model.canonical import canonical_json, from_json
from engine.model.environment import Network, NetworkMode
from engine.model.ledger import Ledger, Unavailable
from engine.model.node import InstanceState
from engine.model.outcome import ClaimOutcome, OutcomeStatus
from engine.model.plan import LaunchReason, Plan, RemovalPhase
from engine.model.policy import Budget, Disruption
from engine.model.quantity import NVIDIA_GPU
from engine.model.reason import DisruptionReason
from engine.model.refusal import LimitReached
from engine.model.replacement import PodHolds
from engine.model.snapshot import CloudFacts, ResolvedSubnet
from engine.model.stay import BaseCapacity, BudgetExhausted, InUse, NotInitialized, PoolUnknown
from engine.scheduling.problem import NewNode
from tests.builders import (
    G5_XLARGE,
    M5_LARGE,
    NOON,
    ZONES,
    catalog,
    environment,
    minutes,
    node_class,
    node_pool,
    option,
    pod,
    taint,
    toleration,
    usd,
)
from tests.decide.world import IMAGES, World, policy

AT_ONCE = Disruption(consolidate_after=minutes(0), budgets=())
AFTER_FIVE = Disruption(consolidate_after=minutes(5), budgets=(Budget(percent=50),))


def gpu_pods(count: int) -> list[object]:
    return [pod(f"llm-{number}", gpu=1) for number in range(count)]


def world(pods: int = 1, **more: object) -> World:
    pool = more.pop("pool", node_pool(disruption=AFTER_FIVE))
    return World(policy(pool), gpu_pods(pods), **more)  # type: ignore[arg-type]


def refused(plan: Plan, code: str = "InsufficientInstanceCapacity") -> tuple[ClaimOutcome, ...]:
    return tuple(ClaimOutcome(launch.claim.name, OutcomeStatus.FAILED_CAPACITY, code=code) for launch in plan.launches)


# --- launches


def test_a_pending_pod_gets_the_cheapest_claim_that_fits_it() -> None:
    plan = world().decide()
    (launch,) = plan.launches
    claim = launch.claim
    assert (claim.inputs.instance_type, claim.inputs.capacity_type) == ("g5.xlarge", keys.SPOT)
    assert launch.reason is LaunchReason.PENDING_PODS
    assert [key.name for key in launch.pods] == ["llm-0"]
    assert claim.usd_per_hour == usd("0.4") == plan.usd_per_hour_after
    assert plan.usd_per_hour_before == usd(0)
    assert plan.document.version == 1
    assert list(plan.document.claims) == [claim]
    assert plan.document.plan_hash == plan.hash


def test_a_claim_is_named_by_its_pool_and_tagged_from_the_launch_on() -> None:
    one = world(
        stack=environment(tags={"owner": "ml", keys.TAG_CLAIM: "nonsense"}),
        pool=node_pool(taints=[taint("gpu")], startup_taints=[taint("cilium")]),
    )
    one.policy = policy(*one.policy.node_pools, node_classes=(node_class(tags={"cost": "42"}),))
    one.pods = {each.key: each for each in [pod("llm", gpu=1, tolerations=[toleration("gpu")])]}
    (launch,) = one.decide().launches
    claim = launch.claim
    assert re.fullmatch(r"gpu-[0-9a-f]{10}", claim.name)
    assert claim.inputs.tags == {
        "owner": "ml",
        "cost": "42",
        "Name": claim.name,
        keys.TAG_CLAIM: claim.name,
        keys.TAG_NODE_POOL: "gpu",
        keys.TAG_ENVIRONMENT: "test",
        keys.TAG_DOCUMENT_VERSION: "1",
        "kubernetes.io/cluster/cluster": "owned",
    }
    assert (claim.taints, claim.startup_taints) == ((taint("gpu"),), (taint("cilium"),))
    assert claim.labels[keys.INSTANCE_TYPE] == "g5.xlarge"
    assert (claim.stack, claim.created_at, claim.node_class) == ("test", NOON, "default")


def test_no_two_claims_share_a_name_and_the_next_version_gives_others() -> None:
    one = world(pods=5)
    plan = one.decide()
    first = {launch.claim.name for launch in plan.launches}
    one.lose(one.turn().launches[0].claim.name)
    second = {launch.claim.name for _ in range(3) for launch in one.turn().launches}
    assert (len(first), len(second)) == (5, 1)
    assert not first & second


def test_an_unchanged_world_gives_the_reviewed_plan_again_however_much_later() -> None:
    one = world(pods=5)
    reviewed = one.decide()
    one.now += minutes(30)
    again = one.decide()
    assert again.hash == reviewed.hash
    assert [launch.claim.name for launch in again.launches] == [launch.claim.name for launch in reviewed.launches]


def test_an_owned_network_leaves_subnet_and_security_group_to_the_program() -> None:
    (launch,) = world().decide().launches
    assert (launch.claim.inputs.subnet_id, launch.claim.inputs.security_group_ids) == (None, None)


def test_launches_are_spread_over_the_subnets_with_most_addresses_left() -> None:
    one = world(pods=4, stack=environment(network=Network(mode=NetworkMode.EXISTING, zones=ZONES)))
    subnets = (ResolvedSubnet("subnet-1", "us-east-1a", 12), ResolvedSubnet("subnet-2", "us-east-1a", 10))
    cloud = CloudFacts(
        images={"default": IMAGES}, subnets={"default": subnets}, security_group_ids={"default": ("sg-2", "sg-1")}
    )
    inputs = [launch.claim.inputs for launch in one.decide(cloud=cloud).launches]
    assert sorted(each.subnet_id or "" for each in inputs) == ["subnet-1"] * 3 + ["subnet-2"]
    assert {each.security_group_ids for each in inputs} == {("sg-1", "sg-2")}


def test_base_capacity_is_launched_without_pods() -> None:
    plan = world(pods=0, pool=node_pool(min_nodes=2)).decide()
    assert [launch.reason for launch in plan.launches] == [LaunchReason.BASE_CAPACITY] * 2


def test_a_pod_that_fits_on_a_claim_in_flight_buys_nothing() -> None:
    one = world()
    one.apply(one.decide())
    plan = one.decide()
    assert plan.is_empty
    (placement,) = plan.placements
    assert placement.node is None
    assert placement.claim == next(iter(one.document.claims)).name  # type: ignore[union-attr]
    assert [kept.reason for kept in plan.kept] == [NotInitialized()]


def test_a_node_whose_device_is_late_is_not_doubled() -> None:
    one = world(pods=1)
    one.apply(one.decide())
    waiting = dict(one.pods)
    one.settle()
    one.pods = waiting
    one.nodes = {
        name: evolve(each, allocatable=each.allocatable - G5_XLARGE.accelerators) for name, each in one.nodes.items()
    }
    assert one.decide().is_empty


def test_gated_daemon_and_finished_pods_buy_nothing() -> None:
    one = world(pods=0)
    gated = evolve(pod("gated", gpu=1), scheduling_gated=True)
    going = evolve(pod("going", gpu=1), deleting=True)
    one.pods = {each.key: each for each in (gated, going)}
    plan = one.decide()
    assert (plan.launches, plan.unplaced) == ((), ())


def test_a_limit_is_shown_with_what_is_used_and_planned() -> None:
    plan = world(pods=3, pool=node_pool(limits={NVIDIA_GPU: 2})).decide()
    (use,) = plan.limits
    assert (use.limit, use.used, use.planned) == (2, 0, 2)
    (unplaced,) = plan.unplaced
    assert isinstance(unplaced.refusals[0].refusal, LimitReached)


def test_a_limit_below_what_runs_removes_nothing_and_launches_nothing() -> None:
    one = world(pods=3)
    one.turn()
    one.policy = policy(node_pool(disruption=AFTER_FIVE, limits={NVIDIA_GPU: 1}))
    one.pods |= {each.key: each for each in [pod("more", gpu=1)]}
    plan = one.decide()
    assert (plan.launches, plan.removals) == ((), ())
    assert len(plan.kept) == 3
    assert (plan.limits[0].limit, plan.limits[0].used) == (1, 3)


# --- the document


def test_nothing_to_do_carries_the_published_document_as_it_is() -> None:
    one = world()
    one.turn()
    plan = one.decide()
    assert plan.is_empty
    assert plan.document == one.document
    assert plan.base_version == plan.document.version == 1


def test_a_first_plan_without_pods_makes_an_owned_network() -> None:
    plan = world(pods=0).decide()
    assert plan.foundation_changes
    assert not plan.is_empty
    assert plan.document.version == 1
    assert plan.document.foundation.zones == ZONES


@pytest.mark.parametrize(("owns", "made"), [(True, "own-queue"), (False, "")])
def test_a_queue_that_the_environment_makes_is_of_its_foundation_and_one_that_is_read_is_not(
    owns: bool, made: str
) -> None:
    one = world(pods=0)
    one.turn()
    one.environment = environment(interruption_queue="own-queue", owns_interruption_queue=owns)
    plan = one.decide()
    assert (plan.foundation_changes, plan.document.foundation.interruption_queue) == (owns, made)


def test_a_first_plan_with_nothing_to_make_is_empty() -> None:
    one = world(pods=0, stack=environment(network=Network(mode=NetworkMode.EXISTING, zones=ZONES)))
    one.policy = policy(node_classes=())
    plan = one.decide()
    assert plan.is_empty
    assert plan.document.version == 0


def test_a_mark_alone_publishes_nothing() -> None:
    one = world(pool=node_pool(disruption=AT_ONCE))
    one.turn()
    one.finish(list(one.pods.values()))
    plan = one.decide()
    assert [removal.phase for removal in plan.removals] == [RemovalPhase.MARK]
    assert plan.document == one.document
    assert not plan.is_empty


def test_a_release_takes_the_claim_out_by_its_record() -> None:
    one = world(pods=2, pool=node_pool(disruption=AT_ONCE))
    one.turn()
    (gone, _) = sorted(one.pods.values(), key=lambda each: each.key)
    one.finish([gone])
    one.turn()
    plan = one.turn()
    (removal,) = plan.removals
    assert removal.phase is RemovalPhase.RELEASE
    assert plan.document.removals == (removal.record,)
    assert removal.record.capacity.amount(NVIDIA_GPU) == 1
    assert len(list(plan.document.claims)) == 1
    assert plan.usd_per_hour_after == usd("0.4")


def test_a_template_is_carried_as_published_and_leaves_with_its_last_claim() -> None:
    one = world(pool=node_pool(disruption=AT_ONCE))
    one.turn()
    published = one.document
    assert published is not None
    (template,) = published.foundation.launch_templates
    odd = evolve(template, user_data="as it was once")
    one.document = evolve(published, foundation=evolve(published.foundation, launch_templates=(odd,)))
    assert one.decide().document.foundation.launch_templates == (odd,)
    one.finish(list(one.pods.values()))
    one.rest()
    assert one.document.foundation.launch_templates == ()
    assert list(one.document.claims) == []


def test_a_record_is_carried_into_the_next_document_while_its_machine_lives() -> None:
    one = world(pods=2, pool=node_pool(disruption=AT_ONCE, limits={NVIDIA_GPU: 2}), keeps=lambda claim: True)
    one.turn()
    one.finish(sorted(one.pods.values(), key=lambda each: each.key)[:1])
    one.turn()
    (record,) = one.turn().document.removals
    one.pods |= {each.key: each for each in [pod("new", gpu=1)]}
    held = one.decide()
    # It runs still, so it counts: the limit holds although the document names one claim.
    assert held.launches == ()
    one.policy = policy(node_pool(disruption=AT_ONCE))
    carried = one.turn().document
    assert record in carried.removals
    one.keeps = lambda claim: False
    one.apply(evolve(one.decide(), document=evolve(carried, version=carried.version + 1), base_version=carried.version))
    one.pods |= {each.key: each for each in [pod("newer", gpu=1)]}
    assert record not in one.decide().document.removals


# --- what is lost, refused or unknown


def test_a_refused_launch_leaves_by_a_record_and_the_next_offering_is_tried() -> None:
    one = world()
    first = one.decide()
    one.apply(first)
    one.instances.clear()
    one.ledger = evolve(one.ledger, outcomes=refused(first), instance_ids={})
    plan = one.decide()
    (removal,) = plan.removals
    assert (removal.record.reason, removal.phase) == (DisruptionReason.LAUNCH_REFUSED, RemovalPhase.RELEASE)
    assert removal.record.budget is None
    (launch,) = plan.launches
    assert launch.claim.name != first.launches[0].claim.name
    tried = {each.claim.inputs.zone for each in (launch, first.launches[0])}
    assert len(tried) == 2
    assert list(plan.ledger.unavailable) == [
        first.launches[0].claim.inputs.instance_type
        + "/"
        + "/".join((first.launches[0].claim.inputs.zone, first.launches[0].claim.inputs.capacity_type))
    ]
    assert plan.ledger.outcomes == ()


def test_a_failed_launch_whose_instance_is_there_stays() -> None:
    one = world()
    first = one.turn()
    one.ledger = evolve(one.ledger, outcomes=refused(first))
    plan = one.decide()
    assert plan.removals == ()
    assert plan.ledger.outcomes == ()
    assert plan.ledger.unavailable == {}


def test_a_launch_that_failed_after_it_had_an_instance_waits_for_proof() -> None:
    one = world()
    first = one.turn()
    name = first.launches[0].claim.name
    failed = ClaimOutcome(name, OutcomeStatus.FAILED_OTHER, instance_id="i-00001")
    one.ledger = evolve(one.ledger, outcomes=(failed,), instance_ids={})
    assert one.decide(cloud=evolve(one.cloud(), instances=())).removals == ()
    gone = evolve(one.cloud(), instances=(), absent_claims=(name,))
    assert [each.record.reason for each in one.decide(cloud=gone).removals] == [DisruptionReason.LOST]


def test_a_machine_that_is_gone_leaves_at_once_and_is_replaced_under_the_limit() -> None:
    one = world(pool=node_pool(disruption=Disruption(budgets=(Budget(nodes=0),)), limits={NVIDIA_GPU: 1}))
    one.turn()
    name = next(iter(one.document.claims)).name  # type: ignore[union-attr]
    one.lose(name)
    plan = one.decide()
    assert [(each.record.claim, each.record.reason) for each in plan.removals] == [(name, DisruptionReason.LOST)]
    assert len(plan.launches) == 1


def test_a_lost_machine_counts_against_the_budget() -> None:
    pool = node_pool(disruption=Disruption(consolidate_after=minutes(0), budgets=(Budget(nodes=1),)))
    one = world(pods=3, pool=pool)
    one.turn()
    one.finish(list(one.pods.values()))
    one.lose(min(claim.name for claim in one.document.claims))  # type: ignore[union-attr]
    assert [each.record.reason for each in one.decide().removals] == [DisruptionReason.LOST]


def test_a_lost_machine_whose_node_lingers_leaves_once() -> None:
    one = world(pods=2, pool=node_pool(disruption=AT_ONCE))
    one.turn()
    one.finish(list(one.pods.values()))
    lingering = dict(one.nodes)
    name = min(claim.name for claim in one.document.claims)  # type: ignore[union-attr]
    one.lose(name)
    plan = one.decide(nodes=tuple(lingering.values()))
    assert [each.record.reason for each in plan.removals if each.record.claim == name] == [DisruptionReason.LOST]
    assert len(plan.removals) == 2


def test_a_marked_node_in_use_counts_against_the_budget() -> None:
    pool = node_pool(disruption=Disruption(consolidate_after=minutes(0), budgets=(Budget(nodes=1),)))
    one = world(pods=2, pool=pool)
    one.turn()
    used, spare = sorted(one.pods.values(), key=lambda each: each.key)
    one.finish([spare])
    assert len(one.decide().removals) == 1
    one.mark(used.node_name or "")
    plan = one.decide()
    assert plan.removals == ()
    assert {type(kept.reason) for kept in plan.kept} == {PodHolds, BudgetExhausted}


def test_the_order_of_new_nodes_changes_no_name() -> None:
    one = world()
    seen, rules, stack = one.snapshot(), one.policy, one.environment
    kinds = [NewNode("gpu", option(kind), ()) for kind in (G5_XLARGE, M5_LARGE)]
    fleet = match(seen)
    assert launches(kinds, fleet, seen, rules, stack) == launches(reversed(kinds), fleet, seen, rules, stack)


def test_an_empty_read_removes_nothing() -> None:
    one = world(pods=3)
    one.turn()
    blind = one.decide(pods=(), nodes=(), cloud=CloudFacts())
    assert blind.removals == ()
    assert len(list(blind.document.claims)) == 3


def test_a_pool_deleted_from_policy_removes_nothing() -> None:
    one = world(pods=2, pool=node_pool(disruption=AT_ONCE))
    one.turn()
    one.finish(list(one.pods.values()))
    one.policy = policy(node_pool("other"))
    plan = one.decide()
    assert plan.removals == ()
    assert {kept.reason for kept in plan.kept} == {PoolUnknown(node_pool="gpu")}
    assert len(list(plan.document.claims)) == 2
    assert len(plan.document.foundation.launch_templates) == 1


# --- empty nodes


def test_an_empty_node_leaves_after_consolidate_after_and_not_before() -> None:
    one = world(pool=node_pool(disruption=Disruption(consolidate_after=minutes(5), budgets=())))
    one.turn()
    one.finish(list(one.pods.values()))
    first = one.turn(minutes(4))
    assert first.removals == ()
    assert one.turn(minutes(1)).removals == ()
    assert [removal.phase for removal in one.turn(minutes(1)).removals] == [RemovalPhase.MARK]
    assert [removal.phase for removal in one.turn(minutes(1)).removals] == [RemovalPhase.RELEASE]
    assert one.running() == []


def test_the_clock_stops_when_a_pod_comes_back() -> None:
    one = world(pool=node_pool(disruption=AFTER_FIVE))
    one.turn()
    one.finish(list(one.pods.values()))
    assert len(one.turn(minutes(4)).ledger.empty_since) == 1
    one.pods = {each.key: each for each in [pod("back", gpu=1)]}
    one.settle()
    assert one.decide().ledger.empty_since == {}


def test_a_node_that_a_pending_pod_will_use_stays() -> None:
    one = world(pool=node_pool(disruption=AT_ONCE))
    one.turn()
    one.finish(list(one.pods.values()))
    one.pods = {each.key: each for each in [pod("next", gpu=1)]}
    plan = one.decide()
    assert plan.is_empty
    assert [kept.reason for kept in plan.kept] == [InUse(pods=0, planned=1)]


def test_base_capacity_stays_when_its_pods_are_gone() -> None:
    one = world(pods=3, pool=node_pool(disruption=AT_ONCE, min_nodes=1))
    one.turn()
    one.finish(list(one.pods.values()))
    plan = one.rest()
    assert len(one.running()) == 1
    assert [kept.reason for kept in plan.kept] == [BaseCapacity(nodes=1)]


def test_a_pod_that_must_not_be_disrupted_keeps_even_a_daemons_node() -> None:
    one = world(pool=node_pool(disruption=AT_ONCE))
    one.turn()
    (bound,) = one.pods.values()
    one.pods = {bound.key: evolve(bound, do_not_disrupt=True)}
    assert one.rest().removals == ()


# --- memory


def test_instance_ids_are_remembered_while_the_document_names_the_claim() -> None:
    one = world(pods=2, pool=node_pool(disruption=AT_ONCE))
    one.turn()
    names = {claim.name for claim in one.document.claims}  # type: ignore[union-attr]
    one.ledger = evolve(one.ledger, instance_ids={**one.ledger.instance_ids, "gpu-of-old": "i-old"})
    assert set(one.decide().ledger.instance_ids) == names


def test_a_launch_that_came_clears_its_offerings_refusals() -> None:
    one = world()
    plan = one.turn()
    inputs = plan.launches[0].claim.inputs
    key = f"{inputs.instance_type}/{inputs.zone}/{inputs.capacity_type}"
    barred = Ledger(unavailable={key: Unavailable(until=NOON, refusals=3, code="InsufficientInstanceCapacity")})
    assert one.decide(ledger=barred).ledger.unavailable == {}


def test_a_plan_comes_back_from_its_json() -> None:
    plan = world(pods=3).decide()
    assert from_json(Plan, canonical_json(plan)) == plan


def test_cpu_pods_go_to_the_general_pool() -> None:
    plan = World(policy(node_pool("gpu", weight=10), node_pool("general")), [pod("web")]).decide()
    assert [launch.claim.inputs.instance_type for launch in plan.launches] == [M5_LARGE.name]


def test_an_instance_that_is_stopping_is_still_there() -> None:
    one = world()
    one.turn()
    one.instances = {name: evolve(each, state=InstanceState.STOPPING) for name, each in one.instances.items()}
    assert one.decide(nodes=()).removals == ()


def test_the_catalogs_digest_and_the_policys_are_in_the_plan() -> None:
    plan = world().decide()
    assert (plan.policy_digest, plan.catalog_digest) == ("test-policy", catalog().digest)
