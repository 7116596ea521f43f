"""Where a pod's volumes are, beside what it asks for itself."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import Requirement
from engine.model.pod import Pod
from engine.scheduling.groups import Demand, pod_classes
from tests.builders import pod, requirement

ZONE_A, ZONE_B = requirement(keys.ZONE, "In", "a"), requirement(keys.ZONE, "In", "b")
LARGE = requirement("size", "In", "large")


def with_volumes(own: Pod, *terms: tuple[Requirement, ...]) -> Pod:
    return evolve(own, placing=evolve(own.placing, volume_terms=terms))


def test_each_of_the_pods_terms_is_joined_with_each_of_its_volumes() -> None:
    demand = Demand.of(with_volumes(pod(affinity=[[LARGE], [ZONE_B]]), (ZONE_A,), (ZONE_B,)).placing)
    assert demand.terms == ((LARGE, ZONE_A), (LARGE, ZONE_B), (ZONE_B, ZONE_A), (ZONE_B, ZONE_B))
    assert demand.admits({"size": "large", keys.ZONE: "a"})
    assert not demand.admits({"size": "large", keys.ZONE: "c"})
    assert demand.keys == {"size", keys.ZONE}


def test_what_the_pod_asks_for_itself_is_known_apart() -> None:
    demand = Demand.of(with_volumes(pod(selector={"size": "large"}), (ZONE_A,)).placing)
    assert not demand.admits({"size": "large", keys.ZONE: "b"})
    assert demand.own.admits({"size": "large", keys.ZONE: "b"})


def test_volumes_that_no_node_can_reach_leave_no_term() -> None:
    assert Demand.of(with_volumes(pod(), ()).placing).terms == ()


def test_pods_part_by_where_their_volumes_are_and_share_a_demand_otherwise() -> None:
    there = [with_volumes(pod(f"{zone.values[0]}{n}"), (zone,)) for zone in (ZONE_A, ZONE_B) for n in range(2)]
    sized = with_volumes(pod("big", cpu="2"), (ZONE_A,))
    classes = pod_classes([*there, sized])
    assert sorted([key.name for key in each.pods] for each in classes) == [["a0", "a1"], ["b0", "b1"], ["big"]]
    by_first = {each.pods[0].name: each.demand for each in classes}
    assert by_first["a0"] is by_first["big"]
    assert by_first["a0"] is not by_first["b0"]
