"""The sandbox with a real cluster, by the commands that a person types: found, read, scaled, stopped, forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sandbox.control_plane import ControlPlane, Plane
from engine.sandbox.plane_parts import PARTS
from tests.cluster.api import Cluster, eventually
from tests.engine.workspaces import Project, project


@pytest.fixture(scope="module")
def real(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """``control_plane`` says first whether there is a program to start at all."""
    with project(tmp_path_factory.mktemp("commands"), pods=10) as made:
        stack = made.root / "stacks" / "Pulumi.sandbox.yaml"
        stack.write_text(stack.read_text().replace("nodewright:sandbox:\n", "nodewright:sandbox:\n    cluster: real\n"))
        yield made


def own_plane(made: Project) -> ControlPlane:
    return ControlPlane(Path("control-plane"), made.root / ".nodewright" / "sandbox" / "plane")


def running(made: Project) -> Plane:
    plane = own_plane(made).status()
    assert plane is not None
    return plane


@pytest.fixture
def started(real: Project) -> Project:
    if own_plane(real).status() is None:
        assert real.nodewright("sandbox", "up", "sandbox").code == 0
    return real


def test_a_kind_of_cluster_that_the_stack_file_does_not_name_is_refused_with_the_line_to_write(real: Project) -> None:
    ran = real.nodewright("sandbox", "up", "sandbox", "--cluster", "simulated")
    assert ran.code == 1
    assert "has a real cluster" in ran.stderr
    assert "set cluster: simulated" in " ".join(ran.stderr.split())


def test_up_says_where_the_cluster_is_and_the_engine_sees_its_pods(real: Project) -> None:
    ran = real.nodewright("sandbox", "up", "sandbox")
    assert ran.code == 0, ran.words
    plane = running(real)
    assert f"Kubernetes at {plane.endpoint}" in ran.stdout
    assert f"export KUBECONFIG={plane.kubeconfig}" in ran.stdout

    eventually(lambda: len(Cluster(plane, "default").list("Pod")) == 10, "ten pods")
    plan = real.nodewright("plan", "sandbox", "-o", "json")
    assert plan.code == 2, plan.words
    assert plan.json["launches"]
    # The plane is found again, not started anew.
    assert running(real) == plane


def test_scaling_is_the_real_deployments(started: Project) -> None:
    ran = started.nodewright("sandbox", "scale", "4", "sandbox")
    assert ran.code == 0, ran.words
    cluster = Cluster(running(started), "default")
    eventually(lambda: len(cluster.list("Pod", "app=llm-inference")) == 4, "four replicas")


def test_down_stops_every_process_and_the_next_up_finds_the_objects_at_the_same_address(started: Project) -> None:
    before = running(started)
    ran = started.nodewright("sandbox", "down", "sandbox")
    assert "EC2 and the control plane stopped" in ran.stdout
    assert not any(own_plane(started).process(part) for part in PARTS)
    assert started.nodewright("sandbox", "up", "sandbox").code == 0
    assert running(started) == before
    assert Cluster(before, "default").get("Deployment", "llm-inference") is not None


def test_reset_forgets_the_cluster(started: Project) -> None:
    assert started.nodewright("sandbox", "reset", "sandbox").code == 0
    assert not (started.root / ".nodewright" / "sandbox").exists()
