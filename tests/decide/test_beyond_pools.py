"""Where a pool has no type large enough, the cheapest that would do is told, with the requirement that keeps it out."""

from __future__ import annotations

import pytest

from engine.decide.beyond_pools import BeyondPools
from engine.decide.question import see
from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.constraint import Requirement
from engine.model.plan import Unplaced
from engine.model.pod import DaemonSet, Pod
from engine.model.policy import NodePool
from engine.model.refusal import GpuPoolClosed, NoTypeFits, PoolRefusal, Refusal
from engine.model.snapshot import CloudFacts
from engine.scheduling.groups import Demand
from tests.builders import catalog, daemon_set, environment, node_pool, pod, requirement, snapshot
from tests.decide.world import IMAGES, World, policy

XLARGE = requirement(keys.INSTANCE_SIZE, "In", "xlarge")
ON_DEMAND = requirement(keys.CAPACITY_TYPE, "In", "on-demand")
LARGE_POD = pod(gpu=1, memory="15510Mi")
TOO_SMALL = NoTypeFits("memory", needed=15510 * 2**20, nearest_amount=14162 * 2**20, nearest_type="g5.xlarge")


def beyond(
    *pools: NodePool, daemon_sets: tuple[DaemonSet, ...] = (), sold: Catalog | None = None, **cloud: object
) -> BeyondPools:
    facts: dict[str, object] = {"images": {"default": IMAGES}, **cloud}
    moment = snapshot(daemon_sets=daemon_sets, cloud=CloudFacts(**facts))  # type: ignore[arg-type]
    return BeyondPools(see(moment, policy(*pools), sold or catalog(), environment()))


def would_do(pool: NodePool, waiting: Pod = LARGE_POD, **more: object) -> tuple[str, str]:
    """The type and what bars it; empty where none would do."""
    placing = waiting.placing
    told = beyond(pool, **more).completed(  # type: ignore[arg-type]
        TOO_SMALL, pool.name, placing.requests, Demand.of(placing)
    )
    assert isinstance(told, NoTypeFits)
    assert not told.is_barred_by_pod
    return told.would_do, told.barred_by


def test_the_cheapest_type_that_a_requirement_of_the_pool_keeps_out_is_told_with_it() -> None:
    assert would_do(node_pool(requirements=[XLARGE])) == ("g5.2xlarge", f"{keys.INSTANCE_SIZE} In xlarge")


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        # On-demand is dearer than spot, but only one requirement is in its way.
        ((ON_DEMAND, XLARGE), ("g5.2xlarge", f"{keys.INSTANCE_SIZE} In xlarge")),
        (
            (XLARGE, requirement(keys.INSTANCE_FAMILY, "In", "g6")),
            ("g5.2xlarge", f"{keys.INSTANCE_SIZE} In xlarge; {keys.INSTANCE_FAMILY} In g6"),
        ),
        # What a pool may choose freely keeps nothing out.
        ((requirement("team", "In", "a"), XLARGE), ("g5.2xlarge", f"{keys.INSTANCE_SIZE} In xlarge")),
    ],
)
def test_the_fewest_requirements_that_are_in_the_way_are_told(
    requirements: tuple[Requirement, ...], told: tuple[str, str]
) -> None:
    assert would_do(node_pool(requirements=requirements)) == told


@pytest.mark.parametrize(
    ("waiting", "more"),
    [
        (pod(gpu=16), {}),
        (pod(resources={"amd.com/gpu": 1}, memory="100Gi"), {}),
        (pod(gpu=1, memory="15510Mi", selector={keys.ZONE: "us-east-1f"}), {}),
        (pod(gpu=1, memory="15510Mi", selector={"team": "b"}), {}),
        (LARGE_POD, {"images": {"default": {"standard-amd64": "ami-standard"}}}),
        (LARGE_POD, {"sold": catalog(prices={})}),
        (LARGE_POD, {"daemon_sets": (daemon_set(memory="3000Gi"),)}),
        (pod(memory="7900Mi"), {}),
    ],
    ids=["too large", "other vendor", "zone", "custom label", "no image", "no price", "daemons", "kept for GPUs"],
)
def test_a_type_that_would_not_do_either_is_not_told(waiting: Pod, more: dict[str, object]) -> None:
    assert would_do(node_pool(requirements=[XLARGE]), waiting, **more) == ("", "")


def test_what_daemons_take_of_a_type_beyond_the_pool_counts() -> None:
    daemons = (daemon_set(memory="20Gi"),)
    assert would_do(node_pool(requirements=[XLARGE]), daemon_sets=daemons)[0] == "g5.12xlarge"


def test_pods_that_share_their_refusals_are_answered_by_one_value_and_others_are_left_alone() -> None:
    shared: tuple[PoolRefusal, ...] = (PoolRefusal("gpu", TOO_SMALL),)
    closed: Refusal = GpuPoolClosed()
    pods = [pod(name, gpu=1, memory="15510Mi") for name in "ab"] + [pod("c")]
    unplaced = [
        *(Unplaced(each.key, shared) for each in pods[:2]),
        Unplaced(pods[2].key, (PoolRefusal("gpu", closed),)),
    ]
    first, second, third = beyond(node_pool(requirements=[XLARGE])).told(unplaced, pods)
    assert first.refusals is second.refusals
    [completed] = [each.refusal for each in first.refusals]
    assert isinstance(completed, NoTypeFits)
    assert completed.would_do == "g5.2xlarge"
    assert third.refusals == (PoolRefusal("gpu", closed),)


def test_a_plan_tells_of_a_pod_that_lacks_memory_which_type_would_do() -> None:
    one = World(policy(node_pool(requirements=[XLARGE])), [LARGE_POD])
    [unplaced] = one.decide().unplaced
    refusal = unplaced.refusals[0].refusal
    assert isinstance(refusal, NoTypeFits)
    assert (refusal.resource, refusal.nearest_type) == ("memory", "g5.xlarge")
    assert (refusal.would_do, refusal.barred_by) == ("g5.2xlarge", f"{keys.INSTANCE_SIZE} In xlarge")
