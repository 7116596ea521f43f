"""Which nodes' pods fit into the room that others leave."""

from __future__ import annotations

from engine.scheduling.estate import Estate
from engine.scheduling.filling import filling
from engine.scheduling.layout import Layout
from tests.builders import G5_2XLARGE, G5_12XLARGE, G5_XLARGE, M5_LARGE, pod
from tests.scheduling.test_repacking import Cluster, gpu_pod


def filled(cluster: Cluster) -> list[str]:
    return [each.claim for each in filling(Layout(Estate.of(cluster.problem(), cluster.movable)))]


def test_nodes_go_as_long_as_a_larger_one_has_room_for_their_pods() -> None:
    cluster = Cluster().node("large", G5_12XLARGE, [gpu_pod("a"), gpu_pod("b")])
    for name in ("c", "d", "e"):
        cluster.node(name, G5_2XLARGE, [gpu_pod(name)])
    assert filled(cluster) == ["claim-c", "claim-d"]


def test_a_node_that_others_came_to_stays() -> None:
    cluster = Cluster().node("one", G5_12XLARGE, [gpu_pod("a"), gpu_pod("b"), gpu_pod("c")])
    cluster.node("two", G5_12XLARGE, [gpu_pod("d")]).node("three", G5_2XLARGE, [gpu_pod("e")])
    # The pod of the second takes the last place of the first, which therefore stays, and the third's finds none.
    assert filled(cluster) == ["claim-two"]


def test_all_pods_of_a_node_find_room_or_none_leaves() -> None:
    cluster = Cluster().node("full", G5_12XLARGE, [gpu_pod("a"), gpu_pod("b"), gpu_pod("c")])
    cluster.node("two-pods", G5_12XLARGE, [gpu_pod("d", "20"), gpu_pod("e", "20")])
    assert filled(cluster) == []


def test_nodes_without_pods_go_and_take_nobody() -> None:
    cluster = Cluster().node("empty", G5_2XLARGE).node("busy", G5_XLARGE, [gpu_pod("a", "2")])
    assert filled(cluster) == ["claim-empty"]


def test_a_pod_comes_to_no_node_that_would_not_have_it() -> None:
    cluster = Cluster().node("cpu", M5_LARGE, [pod("a", cpu="500m", memory="1Gi")])
    cluster.node("gpu", G5_XLARGE, [gpu_pod("b", "1")])
    assert filled(cluster) == ["claim-cpu"]
