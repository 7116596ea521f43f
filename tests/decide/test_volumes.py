"""Where the volumes of waiting pods are, and what becomes of pods whose volumes cannot be used."""

from __future__ import annotations

import itertools

import pytest
from attrs import evolve

from engine.decide.volumes import Volumes
from engine.model import labels as keys
from engine.model.plan import Placement
from engine.model.pod import PodKey
from engine.model.refusal import RequirementMismatch
from engine.model.workload import StorageClass
from tests.builders import M5_LARGE, node, pod, requirement
from tests.decide.volume_values import (
    GP3,
    A,
    B,
    bound,
    claim,
    in_zones,
    planned,
    refused,
    seen,
    small,
    storage,
    volume,
    zones_of,
)

LOCAL = (requirement(keys.HOSTNAME, "In", "n-1"),)
ROOMY = {"name": "n-1", "kind": M5_LARGE, "labels": {keys.HOSTNAME: "n-1"}}


@pytest.mark.parametrize("zone", [A, B])
def test_a_pod_gets_a_node_in_the_zone_of_its_volume(zone: str) -> None:
    plan = planned(seen(small("p", "data"), workload=storage(bound("data", "pv"), volume("pv", in_zones(zone)))))
    assert zones_of(plan) == [zone]


def test_the_zone_that_an_ebs_driver_names_is_a_zone() -> None:
    term = (requirement("topology.ebs.csi.aws.com/zone", "In", B),)
    plan = planned(seen(small("p", "data"), workload=storage(bound("data", "pv"), volume("pv", term))))
    assert zones_of(plan) == [B]


def test_a_volume_of_several_terms_is_reached_by_any_of_them() -> None:
    both = volume("pv", in_zones("nowhere"), in_zones(B))
    plan = planned(seen(small("p", "data"), workload=storage(bound("data", "pv"), both)))
    assert zones_of(plan) == [B]


def test_the_alternatives_of_two_volumes_are_met_together() -> None:
    anywhere, one = volume("pv-1", in_zones(A), in_zones(B)), volume("pv-2", in_zones(B))
    things = (bound("one", "pv-1"), bound("two", "pv-2"), anywhere, one)
    assert zones_of(planned(seen(small("p", "one", "two"), workload=storage(*things)))) == [B]


def test_the_pods_own_terms_hold_beside_its_volumes() -> None:
    own = pod("p", affinity=[in_zones(A), in_zones(B)])
    asked = evolve(own, placing=evolve(own.placing, volume_claims=("data",)))
    plan = planned(seen(asked, workload=storage(bound("data", "pv"), volume("pv", in_zones(B)))))
    assert zones_of(plan) == [B]


def test_volumes_in_two_zones_leave_no_node_and_say_so() -> None:
    things = (bound("one", "pv-1"), bound("two", "pv-2"), volume("pv-1", in_zones(A)), volume("pv-2", in_zones(B)))
    plan = planned(seen(small("p", "one", "two"), workload=storage(*things)))
    zone = "topology.kubernetes.io/zone In us-east-1"
    assert refused(plan) == {"p": ("two", f"it is reached from {zone}b, the pod's other volumes from {zone}a")}
    assert not plan.launches


def test_a_volume_in_a_zone_that_nobody_sells_in_is_told_as_its_zone() -> None:
    plan = planned(seen(small("p", "data"), workload=storage(bound("data", "pv"), volume("pv", in_zones("mars")))))
    (unplaced,) = plan.unplaced
    refusal = unplaced.refusals[0].refusal
    assert isinstance(refusal, RequirementMismatch)
    assert (refusal.key, refusal.wanted) == (keys.ZONE, "mars")


@pytest.mark.parametrize(
    "restricted",
    [
        evolve(GP3, zones=(B,)),
        evolve(GP3, zones=(B,), allowed_topologies=((requirement("topology.ebs.csi.aws.com/zone", "In", B),),)),
    ],
)
def test_a_volume_that_is_yet_to_be_made_goes_where_its_class_may(restricted: StorageClass) -> None:
    plan = planned(seen(small("p", "data"), workload=storage(claim("data"), classes=[restricted])))
    assert zones_of(plan) == [B]


def test_a_volume_that_can_be_made_anywhere_leaves_the_pod_free() -> None:
    given = small("p", "data")
    (rewritten,) = Volumes(seen(given, workload=storage(claim("data")))).mounting((given,)).pods
    assert rewritten.placing.volume_terms == ()


def test_a_pod_follows_the_node_that_was_chosen_for_its_volume() -> None:
    chosen = claim("data", selected_node="n-2")
    nodes = [node(name, M5_LARGE, labels={keys.HOSTNAME: name}) for name in ("n-1", "n-2")]
    plan = planned(seen(small("p", "data"), workload=storage(chosen), nodes=nodes))
    assert plan.placements == (Placement(PodKey("default", "p"), "n-2", None),)


def test_a_node_that_was_chosen_and_is_gone_binds_nobody() -> None:
    plan = planned(seen(small("p", "data"), workload=storage(claim("data", selected_node="gone"))))
    assert len(plan.launches) == 1


def test_a_pod_with_a_local_volume_goes_to_its_node_alone() -> None:
    things = (bound("data", "pv"), volume("pv", LOCAL, driver=""))
    there = [node("n-0", M5_LARGE, labels={keys.HOSTNAME: "n-0"}), node(**ROOMY)]  # type: ignore[arg-type]
    plan = planned(seen(small("p", "data"), workload=storage(*things), nodes=there))
    assert plan.placements == (Placement(PodKey("default", "p"), "n-1", None),)


def test_a_pod_whose_local_volume_is_on_a_full_node_waits_rather_than_buys() -> None:
    things = (bound("data", "pv"), volume("pv", LOCAL, driver=""))
    full = pod("full", cpu="2", node="n-1")
    plan = planned(seen(small("p", "data"), full, workload=storage(*things), nodes=[node(**ROOMY)]))  # type: ignore[arg-type]
    (unplaced,) = plan.unplaced
    assert unplaced.refusals[0].refusal == RequirementMismatch(keys.HOSTNAME, "n-1", offered="")
    assert not plan.launches


NOT_READY = [
    pytest.param((), "it does not exist", id="a claim that nobody made"),
    pytest.param(
        (claim("data", deleting=True, volume="pv"), volume("pv")), "it is being deleted", id="a claim on its way out"
    ),
    pytest.param(
        (claim("data", volume="pv", phase="Lost"),),
        "it is lost: the volume that it was bound to is gone",
        id="a lost claim",
    ),
    pytest.param((bound("data", "pv"),), "its volume pv does not exist", id="a bound claim without its volume"),
    pytest.param(
        (claim("data", "fast"),),
        "it is not bound yet, and its storage class fast does not exist",
        id="a class that nobody made",
    ),
    pytest.param(
        (claim("data", "now"),),
        "it is not bound to a volume yet, and does not wait for a pod to be bound",
        id="a claim that its binder has yet to bind",
    ),
    pytest.param(
        (claim("data", "now", volume="pv", phase="Pending"), volume("pv")),
        "it is not bound to a volume yet, and does not wait for a pod to be bound",
        id="a claim that names a volume and is not bound yet",
    ),
    pytest.param(
        (claim("data", ""),),
        "it is not bound to a volume yet, and does not wait for a pod to be bound",
        id="a claim without a class",
    ),
    pytest.param(
        (claim("data", "shelf"),),
        "it is not bound to a volume yet, and its storage class shelf makes none",
        id="a class of volumes made by hand",
    ),
    pytest.param(
        (bound("data", "pv"), volume("pv", LOCAL, driver="")),
        "its volume pv is on a node that is gone: kubernetes.io/hostname In n-1",
        id="a local volume of a node that is gone",
    ),
    pytest.param((bound("data", "pv"), volume("pv", ())), "its volume pv admits no node", id="an empty term"),
]


@pytest.mark.parametrize(("things", "why"), NOT_READY)
def test_a_claim_that_cannot_be_used_is_told_and_buys_nothing(things: tuple[object, ...], why: str) -> None:
    classes = [
        GP3,
        StorageClass("now", provisioner="x"),
        StorageClass("shelf", provisioner="kubernetes.io/no-provisioner", waits_for_consumer=True),
    ]
    plan = planned(seen(small("p", "data"), small("other"), workload=storage(*things, classes=classes)))
    assert refused(plan) == {"p": ("data", why)}
    assert [[each.name for each in launch.pods] for launch in plan.launches] == [["other"]]


def test_a_claim_for_one_pod_only_goes_to_the_pod_that_has_it_else_to_the_first() -> None:
    things = (bound("data", "pv", access_modes=("ReadWriteOncePod",)), volume("pv"))
    waiting = (small("b", "data"), small("a", "data"), small("first", "data", priority=7))
    told = refused(planned(seen(*waiting, workload=storage(*things))))
    assert told == dict.fromkeys("ab", ("data", "only one pod may use it, and default/first does or will"))
    holder = small("holder", "data", node="n-1")
    told = refused(planned(seen(*waiting, holder, workload=storage(*things), nodes=[node("n-1", M5_LARGE)])))
    assert sorted(told) == ["a", "b", "first"]


def test_pods_that_share_a_volume_yet_to_be_made_go_one_after_the_other() -> None:
    plan = planned(seen(small("b", "data"), small("a", "data"), workload=storage(claim("data"))))
    assert refused(plan) == {"b": ("data", "its volume is made where default/a goes, so that goes first")}


def test_pods_that_differ_in_the_names_of_their_claims_are_placed_alike() -> None:
    pods = tuple(small(f"p-{number}", f"data-{number}") for number in range(3))
    mounting = Volumes(seen(workload=storage(*(claim(f"data-{number}") for number in range(3))))).mounting(pods)
    assert len({each.placing.content for each in mounting.pods}) == 1


def test_pods_without_claims_stay_the_very_same() -> None:
    pods = (small("a"), small("b"))
    assert Volumes(seen(workload=storage())).mounting(pods).pods is pods


def test_the_order_of_everything_changes_nothing() -> None:
    waiting = (small("p", "one"), small("q", "two"), small("r", "three"), small("s", "none"))
    things = (
        bound("one", "pv-1"),
        claim("two"),
        bound("three", "pv-3"),
        volume("pv-1", in_zones(B)),
        volume("pv-3", in_zones(A)),
    )
    plans = {
        planned(seen(*pods, workload=storage(*storages))).hash
        for pods in itertools.permutations(waiting)
        for storages in (things, things[::-1])
    }
    assert len(plans) == 1
