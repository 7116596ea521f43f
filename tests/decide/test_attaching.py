"""How many volumes a node takes: what its CSINode says, else what is foretold of its type."""

from __future__ import annotations

from attrs import evolve

from engine.catalog.attach_limits import EBS_DRIVER, volume_limit
from engine.model.plan import Placement, Plan
from engine.model.quantity import ATTACHABLE_VOLUMES
from engine.model.refusal import NoTypeFits
from engine.model.snapshot import Snapshot
from engine.model.workload import AttachLimit, PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.builders import M5_LARGE, node, node_class, node_pool, pod
from tests.decide.volume_values import GENERAL, bound, claim, planned, seen, small, storage, volume
from tests.decide.world import World, policy

LIMIT = volume_limit(M5_LARGE, node_class())
SHARED = StorageClass("shared", provisioner="efs.csi.aws.com", waits_for_consumer=True)


def names(of: str, count: int) -> list[str]:
    return [f"{of}-{number}" for number in range(count)]


def with_node(limit: int | None, *there: str, waiting: int = 1) -> Snapshot:
    """A node with ``there`` claims in use, and pods with a claim each that wait."""
    claims = [claim(name) for name in {*there, *names("new", waiting)}]
    running = [small(f"running-{index}", name, node="n-1") for index, name in enumerate(there)]
    limits = () if limit is None else (AttachLimit("n-1", EBS_DRIVER, limit),)
    return seen(
        *running,
        *(small(f"p-{name}", name) for name in names("new", waiting)),
        workload=evolve(storage(*claims), attach_limits=limits),
        nodes=[node("n-1", M5_LARGE)],
    )


def placed(plan: Plan) -> list[str]:
    return [each.pod.name for each in plan.placements]


def test_a_node_that_stands_takes_what_its_driver_says_less_what_is_there() -> None:
    plan = planned(with_node(3, "a", "b", waiting=2))
    assert placed(plan) == ["p-new-0"]
    assert [[each.name for each in launch.pods] for launch in plan.launches] == [["p-new-1"]]


def test_a_volume_that_two_pods_share_is_attached_once() -> None:
    assert placed(planned(with_node(2, "a", "a"))) == ["p-new-0"]
    assert placed(planned(with_node(1, "a", "a"))) == []


def test_a_node_whose_driver_says_nothing_takes_any_number() -> None:
    claims = names("data", LIMIT + 1)
    there = [node("n-1", M5_LARGE)]
    plan = planned(seen(small("p", *claims), workload=storage(*map(claim, claims)), nodes=there))
    assert placed(plan) == ["p"]


def test_the_limit_of_a_new_node_makes_a_second_one() -> None:
    each = LIMIT // 2
    claims = [f"{pod_name}-{number}" for pod_name in names("p", 3) for number in range(each)]
    pods = [small(name, *(f"{name}-{number}" for number in range(each))) for name in names("p", 3)]
    plan = planned(seen(*pods, workload=storage(*map(claim, claims))))
    assert sorted(len(launch.pods) for launch in plan.launches) == [1, 2]


def test_a_pod_with_more_volumes_than_any_type_takes_is_told_so() -> None:
    claims = names("data", LIMIT + 1)
    plan = planned(seen(small("p", *claims), workload=storage(*map(claim, claims))))
    (unplaced,) = plan.unplaced
    refusal = unplaced.refusals[0].refusal
    assert isinstance(refusal, NoTypeFits)
    assert (refusal.resource, refusal.needed) == (f"{ATTACHABLE_VOLUMES}{EBS_DRIVER}", LIMIT + 1)


def test_a_claim_says_nothing_of_volumes_and_limits_count_none() -> None:
    limited = evolve(GENERAL, limits=node_pool(limits={"nodes": 1, "cpu": 2}).limits)
    plan = planned(seen(small("p", "data"), workload=storage(claim("data"))), limited)
    (launch,) = plan.launches
    told = {*launch.claim.allocatable, *launch.claim.capacity, *(use.resource for use in plan.limits)}
    assert not [name for name in told if name.startswith(ATTACHABLE_VOLUMES)]


def test_volumes_of_a_driver_without_any_limit_are_not_counted() -> None:
    claims = names("data", 60)
    workload = storage(*(claim(name, "shared") for name in claims), classes=[SHARED])
    assert len(planned(seen(small("p", *claims), workload=workload)).launches) == 1


def test_another_drivers_limit_holds_on_its_nodes_and_on_no_new_one() -> None:
    claims = names("data", 2)
    workload = evolve(
        storage(*(claim(name, "shared") for name in claims), classes=[SHARED]),
        attach_limits=(AttachLimit("n-1", "efs.csi.aws.com", 1),),
    )
    plan = planned(seen(small("p", *claims), workload=workload, nodes=[node("n-1", M5_LARGE)]))
    assert (placed(plan), len(plan.launches)) == ([], 1)


def test_machines_on_their_way_are_filled_as_they_were_planned() -> None:
    things: list[PersistentVolume | PersistentVolumeClaim] = []
    pods = []
    for name in names("p", 3):
        mounted = [f"{name}-{number}" for number in range(LIMIT // 2)]
        pods.append(small(name, *mounted))
        things += [bound(each, f"pv-{each}") for each in mounted]
        things += [volume(f"pv-{each}") for each in mounted]
    world = World(policy(GENERAL), pods)
    first = world.decide(workload=storage(*things))
    world.apply(first)
    again = world.decide(workload=storage(*things))
    assert len(first.launches) == 2
    assert again.launches == ()
    by_claim = {launch.claim.name: set(launch.pods) for launch in first.launches}
    assert {(each.pod, each.claim) for each in again.placements} == {
        (key, name) for name, keys in by_claim.items() for key in keys
    }


def test_pods_without_volumes_may_share_a_node_that_takes_no_more() -> None:
    crowded = with_node(1, "a", waiting=0)
    plan = planned(evolve(crowded, pods=(*crowded.pods, pod("plain", cpu="100m"), small("p-x", "b"))))
    assert plan.placements == (Placement(pod("plain").key, "n-1", None),)
