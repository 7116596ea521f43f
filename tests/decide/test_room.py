"""Room on what is there: nodes of ours, nodes that are not, machines in flight."""

from __future__ import annotations

from attrs import evolve

from engine.catalog.predicted_labels import predicted_labels
from engine.decide.bring_up import bring_ups
from engine.decide.expected_labels import ComingLabels
from engine.decide.fleet import match
from engine.decide.room import existing_nodes
from engine.model import labels as keys
from engine.model.ledger import Ledger, Milestones
from engine.model.pod import Owner
from engine.model.quantity import CPU, NVIDIA_GPU, Resources
from engine.model.snapshot import Snapshot
from engine.scheduling.problem import ExistingNode
from tests.builders import (
    G5_XLARGE,
    NOON,
    catalog,
    claim,
    daemon_set,
    document,
    minutes,
    node,
    node_pool,
    pod,
    requirement,
    snapshot,
    taint,
    toleration,
)
from tests.decide.world import policy

POOL = node_pool(taints=[taint("gpu")], startup_taints=[taint("cilium")])
ONE = claim("gpu-1", pool=POOL)
IDS = Ledger(instance_ids={"gpu-1": "i-1"})
UP = node("n", instance_id="i-1", taints=[taint("gpu")])
NO_GPU = Resources({**UP.allocatable, NVIDIA_GPU: 0})


def rooms(seen: Snapshot, lost: tuple[str, ...] = ()) -> list[ExistingNode]:
    fleet = match(seen)
    rules, sold = policy(POOL), catalog()
    coming = ComingLabels(rules, sold, seen.ledger, seen.taken_at)
    return list(existing_nodes(fleet, bring_ups(fleet, rules, seen), lost, seen, sold, coming))


def of_one(**more: object) -> Snapshot:
    return snapshot(document=document(ONE), ledger=IDS, **more)  # type: ignore[arg-type]


def test_bound_pods_and_daemons_to_come_are_taken_off() -> None:
    (room,) = rooms(of_one(nodes=[UP], pods=[pod("a", cpu="1", gpu=1, node="n")], daemon_sets=[daemon_set()]))
    assert room.room.amount(CPU) == 4000 - 1000 - 100
    assert room.room.amount(NVIDIA_GPU) == 0
    assert (room.node, room.claim, room.is_accelerated) == ("n", "gpu-1", True)


def test_a_daemon_that_is_there_is_counted_once() -> None:
    agent = pod("agent-x", cpu="100m", node="n", owner=Owner("DaemonSet", "agent"))
    (room,) = rooms(of_one(nodes=[UP], pods=[agent], daemon_sets=[daemon_set("agent", cpu="100m")]))
    assert room.room.amount(CPU) == 4000 - 100


def test_a_daemon_that_does_not_run_on_the_node_takes_nothing() -> None:
    elsewhere = [
        daemon_set("arm", selector={keys.ARCH: "arm64"}),
        daemon_set("spot", affinity=[[requirement(keys.CAPACITY_TYPE, "In", "spot")]]),
        daemon_set("shy", tolerations=[]),
    ]
    (room,) = rooms(of_one(nodes=[UP], daemon_sets=elsewhere))
    assert room.room.amount(CPU) == 4000


def test_a_daemon_bears_the_nodes_own_troubles_without_a_toleration() -> None:
    pressed = evolve(UP, taints=(taint("gpu"), taint("node.kubernetes.io/disk-pressure")))
    (room,) = rooms(of_one(nodes=[pressed], daemon_sets=[daemon_set(tolerations=[toleration("gpu")])]))
    assert room.room.amount(CPU) == 3900


def test_a_claim_in_flight_is_the_node_that_it_will_be() -> None:
    (room,) = rooms(of_one(daemon_sets=[daemon_set()]))
    assert (room.node, room.claim) == (None, "gpu-1")
    assert room.taints == (taint("gpu"),)
    assert room.room == ONE.allocatable - daemon_set().placing.requests


def test_a_node_that_is_coming_up_counts_as_what_it_will_be() -> None:
    booting = evolve(
        UP,
        ready=False,
        allocatable=NO_GPU,
        labels={},
        taints=(taint("cilium"), taint("node.kubernetes.io/not-ready"), taint("extra")),
    )
    (room,) = rooms(of_one(nodes=[booting]))
    assert room.room.amount(NVIDIA_GPU) == 1
    assert room.labels == {**predicted_labels(G5_XLARGE), **ONE.labels}
    assert room.taints == (taint("gpu"),)


def test_a_node_that_its_types_labels_have_not_reached_counts_as_having_them() -> None:
    (room,) = rooms(of_one(nodes=[evolve(UP, labels={keys.ZONE: "us-east-1c", "mine": "yes"})]))
    assert room.labels == {**ONE.labels, keys.ZONE: "us-east-1c", "mine": "yes"}


def test_a_node_that_stays_unready_is_given_up_on() -> None:
    late = evolve(of_one(nodes=[evolve(UP, ready=False)]), taken_at=NOON + minutes(30))
    assert rooms(late) == []


def test_a_device_that_never_shows_up_is_not_believed_in_for_ever() -> None:
    known = Ledger(instance_ids=IDS.instance_ids, milestones={"gpu-1": Milestones(accelerators_short_since=NOON)})
    late = evolve(of_one(nodes=[evolve(UP, allocatable=NO_GPU)]), taken_at=NOON + minutes(31), ledger=known)
    occupied = evolve(late, pods=(pod("web", node="n"),))
    (room,) = rooms(occupied)
    assert room.room.amount(NVIDIA_GPU) == 0
    assert rooms(late) == []


def test_nodes_that_take_no_pods_are_not_given() -> None:
    marked = evolve(UP, unschedulable=True, taints=(taint(keys.DISRUPTED_TAINT),))
    for closed in (evolve(UP, unschedulable=True), evolve(UP, deleting=True), marked):
        assert rooms(of_one(nodes=[closed])) == []
    assert rooms(of_one(nodes=[UP]), lost=("gpu-1",)) == []


def test_a_node_that_is_not_ours_is_filled_too() -> None:
    (room,) = rooms(snapshot(nodes=[node("theirs")], pods=[pod("a", cpu="3", node="theirs")]))
    assert (room.node, room.claim, room.is_accelerated) == ("theirs", None, True)
    assert room.room.amount(CPU) == 1000


def test_a_foreign_node_that_is_not_ready_or_cordoned_is_left_alone() -> None:
    assert rooms(snapshot(nodes=[node("a", ready=False), node("b", unschedulable=True)])) == []


def test_a_node_that_wavers_just_after_it_came_up_is_still_the_room_that_was_bought() -> None:
    """Nothing is bought again because a node is unready, or unreachable, while its pods are being bound."""
    came = Ledger(instance_ids=IDS.instance_ids, milestones={"gpu-1": Milestones(NOON, NOON, NOON)})
    for wavering in (
        evolve(UP, ready=False, taints=(taint("node.kubernetes.io/not-ready", effect="NoExecute"),)),
        evolve(UP, taints=(taint("node.kubernetes.io/unreachable"),)),
        evolve(UP, taints=(taint("readiness.k8s.io/network"),)),
    ):
        soon = evolve(of_one(nodes=[wavering]), taken_at=NOON + minutes(4), ledger=came)
        (room,) = rooms(soon)
        assert (room.taints, room.room.amount(NVIDIA_GPU)) == ((), 1)
        later = evolve(soon, taken_at=NOON + minutes(6))
        assert [each.taints for each in rooms(later)] in ([], [wavering.taints])
