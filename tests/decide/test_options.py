"""What a pool can buy, what counts against its limits, and what makes it not ready."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import evolve

from engine.decide.bring_up import bring_ups
from engine.decide.fleet import match
from engine.decide.options import Market
from engine.decide.pools import pool_states
from engine.model import labels as keys
from engine.model.environment import Environment, Network, NetworkMode
from engine.model.ledger import Ledger, Unavailable
from engine.model.node import Instance, InstanceState
from engine.model.policy import Kubelet, NodePool
from engine.model.quantity import NODES, NVIDIA_GPU, Resources
from engine.model.refusal import PoolNotReady
from engine.model.snapshot import CloudFacts, ResolvedSubnet, Snapshot
from engine.scheduling.problem import PoolState
from tests.builders import (
    G5_XLARGE,
    NOON,
    ZONES,
    catalog,
    claim,
    document,
    environment,
    minutes,
    node,
    node_class,
    node_pool,
    requirement,
    snapshot,
    usd,
)
from tests.decide.test_fleet import instance, record
from tests.decide.world import IMAGES, policy

LOOKED_UP = environment(network=Network(mode=NetworkMode.EXISTING, zones=ZONES))
FOUND = CloudFacts(
    images={"default": IMAGES},
    subnets={"default": (ResolvedSubnet("subnet-b", "us-east-1b", 10),)},
    security_group_ids={"default": ("sg-1",)},
)


def state(
    pool: NodePool | None = None,
    seen: Snapshot | None = None,
    stack: Environment | None = None,
    ledger: Ledger | None = None,
    **classes: object,
) -> PoolState:
    looked = seen or snapshot(cloud=CloudFacts(images={"default": IMAGES}))
    where = stack or environment()
    market = Market(catalog(), where, looked, ledger or looked.ledger)
    rules = policy(pool or node_pool(), **classes)
    fleet = match(looked)
    brought = bring_ups(fleet, rules, looked)
    (only,) = pool_states(fleet, brought, (), rules, where, market, ledger or looked.ledger, looked)
    return only


def offered(pool: NodePool, field: str) -> set[str]:
    return {getattr(option.offering, field) for option in state(pool).options}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        (keys.INSTANCE_FAMILY, "In", ["g5"], {"g5.xlarge", "g5.2xlarge", "g5.12xlarge"}),
        (keys.INSTANCE_GPU_COUNT, "Gt", ["3"], {"g5.12xlarge", "p5.48xlarge"}),
        (keys.INSTANCE_GPU_NAME, "DoesNotExist", [], {"m5.large", "g6f.large"}),
        (keys.INSTANCE_TYPE, "NotIn", ["m5.large"], None),
        ("beta.kubernetes.io/instance-type", "In", ["m5.large"], {"m5.large"}),
        (keys.REGION, "In", ["eu-west-1"], set()),
    ],
)
def test_a_pools_requirements_pick_its_types(
    key: str, operator: str, values: list[str], expected: set[str] | None
) -> None:
    types = offered(node_pool(requirements=[requirement(key, operator, *values)]), "instance_type")
    assert types == expected if expected is not None else "m5.large" not in types


def test_requirements_on_zone_and_capacity_type_pick_offerings() -> None:
    pool = node_pool(
        requirements=[
            requirement(keys.CAPACITY_TYPE, "In", keys.SPOT),
            requirement(keys.ZONE_ID, "NotIn", ZONES["us-east-1a"]),
        ]
    )
    assert offered(pool, "capacity_type") == {keys.SPOT}
    assert offered(pool, "zone") == {"us-east-1b", "us-east-1c"}


def test_an_option_carries_the_labels_of_the_node_that_it_becomes() -> None:
    option = state(node_pool(labels={"team": "a"})).options[0]
    told: Mapping[str, str] = option.labels
    assert told["team"] == "a"
    assert told[keys.NODE_POOL] == "gpu"
    assert told[keys.ZONE_ID] == ZONES[option.offering.zone]
    assert told[keys.CAPACITY_TYPE] == option.offering.capacity_type
    assert told[keys.INSTANCE_TYPE] == option.offering.instance_type


def test_an_offering_that_refused_is_there_but_unavailable() -> None:
    barred = Ledger(unavailable={"m5.large/us-east-1a/spot": Unavailable(NOON + minutes(3), 1, "Ins")})
    out = {option.offering.key for option in state(ledger=barred).options if not option.is_available}
    assert out == {"m5.large/us-east-1a/spot"}


def test_where_the_network_is_looked_up_only_zones_with_a_subnet_are_offered() -> None:
    zones = {option.offering.zone for option in state(seen=snapshot(cloud=FOUND), stack=LOOKED_UP).options}
    assert zones == {"us-east-1b"}


@pytest.mark.parametrize(
    ("cloud", "why"),
    [
        (evolve(FOUND, subnets={}), "EC2NodeClass default: subnetSelectorTerms match no subnet"),
        (
            evolve(FOUND, security_group_ids={}),
            "EC2NodeClass default: securityGroupSelectorTerms match no security group",
        ),
    ],
)
def test_a_selector_that_matches_nothing_makes_the_pool_not_ready(cloud: CloudFacts, why: str) -> None:
    found = state(seen=snapshot(cloud=cloud), stack=LOOKED_UP)
    assert found.not_ready == PoolNotReady(why=why)
    assert found.options == ()


def test_a_class_without_any_image_makes_the_pool_not_ready() -> None:
    pool = node_pool(requirements=[requirement(keys.INSTANCE_TYPE, "In", "m5.large")])
    found = state(pool, seen=snapshot())
    assert found.not_ready == PoolNotReady(
        why="EC2NodeClass default: amiSelectorTerms match no image for standard-amd64"
    )


def test_types_without_an_image_are_passed_over() -> None:
    only_standard = CloudFacts(images={"default": {"standard-amd64": "ami-1"}})
    types = {option.instance_type.name for option in state(seen=snapshot(cloud=only_standard)).options}
    assert "m5.large" in types
    assert "g5.xlarge" not in types


def test_a_pool_without_its_class_is_not_ready() -> None:
    assert state(node_classes=()).not_ready == PoolNotReady(why="no file defines EC2NodeClass default")


def test_a_class_with_a_broken_amount_stops_its_own_pools_only() -> None:
    broken = node_class("broken", kubelet=Kubelet(kube_reserved={"cpu": "much"}))
    rules = policy(node_pool("a", node_class="broken"), node_pool("b"), node_classes=(node_class(), broken))
    looked = snapshot(cloud=CloudFacts(images={"default": IMAGES, "broken": IMAGES}))
    market = Market(catalog(), environment(), looked, Ledger())
    fleet = match(looked)
    first, second = pool_states(
        fleet, bring_ups(fleet, rules, looked), (), rules, environment(), market, looked.ledger, looked
    )
    assert first.not_ready is not None
    assert "much" in first.not_ready.why
    assert second.options


# --- what counts against limits


def test_claims_count_whether_they_run_or_not_and_marked_ones_too() -> None:
    flying, running = claim("gpu-1"), claim("gpu-2")
    seen = snapshot(
        document=document(flying, running),
        nodes=[node("n", instance_id="i-2")],
        ledger=Ledger(instance_ids={"gpu-2": "i-2"}),
        cloud=CloudFacts(images={"default": IMAGES}),
    )
    found = state(seen=seen)
    assert found.used == Resources({**(flying.capacity + running.capacity), NODES: 2})
    assert found.nodes == 2


def test_a_machine_that_left_counts_until_it_is_known_to_be_gone() -> None:
    left = evolve(record(), capacity=claim().capacity)
    seen = snapshot(document=document(removals=(left,)), cloud=CloudFacts(images={"default": IMAGES}))
    assert state(seen=seen).used.amount(NVIDIA_GPU) == 1
    assert state(seen=seen).nodes == 0
    gone: Instance = instance("gpu-9", state=InstanceState.TERMINATED.value)
    assert state(seen=evolve(seen, cloud=evolve(seen.cloud, instances=(gone,)))).used == Resources()


def test_nodes_that_carry_the_pools_label_and_are_not_ours_count() -> None:
    theirs = node("theirs", labels={keys.NODE_POOL: "gpu"}, instance_id="i-77")
    other = node("other", labels={keys.NODE_POOL: "cpu"})
    found = state(seen=snapshot(nodes=[theirs, other], cloud=CloudFacts(images={"default": IMAGES})))
    assert found.used.amount(NODES) == 1
    assert found.used.amount(NVIDIA_GPU) == 1
    # What is allocatable on a node is less than what its type has, and it is the latter that counts.
    assert found.used.amount("memory") >= theirs.allocatable.amount("memory")


def test_the_stacks_limits_are_laid_over_the_pools() -> None:
    stack = environment(limits={"gpu": Resources.parse({NVIDIA_GPU: "7"})})
    found = state(node_pool(limits={NVIDIA_GPU: "3", "cpu": "100"}), stack=stack)
    assert found.limits == Resources.parse({NVIDIA_GPU: "7", "cpu": "100"})


def test_volumes_are_in_the_price() -> None:
    assert usd("1.0") in {option.usd_per_hour for option in state().options if option.instance_type == G5_XLARGE}
    dear = evolve(catalog(), ebs_usd_per_gib_month={"gp3": 73.0})
    looked = snapshot(cloud=CloudFacts(images={"default": IMAGES}))
    market = Market(dear, environment(), looked, Ledger())
    options = market.options(node_pool(), node_class())
    assert not isinstance(options, PoolNotReady)
    dearest = max(option.usd_per_hour.micros for option in options if option.usd_per_hour)
    assert dearest > usd(98).micros
