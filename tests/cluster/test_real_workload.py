"""The sandbox's pods on a real control plane: made by real controllers, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.model.fault import Fault
from engine.model.quantity import Resources
from engine.sandbox.control_plane import ControlPlane, Plane
from engine.sandbox.manifests import read_manifests
from engine.sandbox.plane_client import PlaneClient
from engine.sandbox.real_workload import INFERENCE, create_once, real_objects, scale_inference
from engine.sandbox.workload import sandbox_objects
from tests.cluster.api import Cluster, eventually

PODS = 30


@pytest.fixture(scope="module")
def own_plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A plane of its own: the workload is in the default namespace, and counted whole."""
    made = ControlPlane(control_plane.program, tmp_path_factory.mktemp("workload"), owner=control_plane.owner)
    try:
        yield made.up()
    finally:
        made.down()


@pytest.fixture
def client(own_plane: Plane) -> PlaneClient:
    return own_plane.client()


def asked(pods: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """What pods ask for, whichever way it is written, and where they may go."""
    return Counter(
        (
            tuple(sorted(Resources.parse(pod["spec"]["containers"][0]["resources"]["requests"]).items())),
            tuple(sorted(pod["spec"].get("nodeSelector", {}).items())),
        )
        for pod in pods
    )


def test_the_workload_is_that_of_the_simulated_cluster_and_is_created_once(
    own_plane: Plane, client: PlaneClient
) -> None:
    everything = Cluster(own_plane, "default")
    assert create_once(client, lambda: real_objects(PODS, 1))
    eventually(lambda: len(everything.list("Pod")) == PODS, f"{PODS} pods")
    simulated = [each for each in sandbox_objects(PODS, 1) if each["kind"] == "Pod"]
    assert asked(everything.list("Pod")) == asked(simulated)
    assert {each["metadata"]["name"] for each in everything.list("DaemonSet")} == {"nvidia-device-plugin", "log-agent"}

    assert not create_once(client, lambda: pytest.fail("the workload is made again"))

    before = scale_inference(client, 7)
    assert before == 3
    eventually(lambda: len(everything.list("Pod", f"app={INFERENCE}")) == 7, "seven replicas")


def test_a_file_with_a_kind_that_the_api_server_does_not_know_is_named(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: odd}\n")
    with pytest.raises(Fault, match=r"Thing odd: .* knows no example\.com/v1 Thing"):
        create_once(control_plane.up().client(), lambda: read_manifests([file]))
