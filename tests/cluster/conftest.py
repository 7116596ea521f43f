"""One real control plane for all tests of this folder, in a folder of its own on free ports, ended with the session.

Nodes are the whole cluster's, so a test names and labels its own; everything else lives in the test's namespace.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from engine.model import labels as keys
from engine.programs.building import ProgramError
from engine.programs.cache import user_cache_dir
from engine.programs.go_program import CONTROL_PLANE, require_program
from engine.sandbox.control_plane import ControlPlane, Plane
from engine.sandbox.ec2 import Ec2Endpoint
from engine.sandbox.kubelets import OWNER, Kubelets, Pace
from tests.cluster.api import Cluster
from tests.ec2_fixtures import ec2_endpoint, ec2_state  # noqa: F401 (fixtures)

PROJECT = Path(__file__).parents[2]
REGION = "us-east-1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs the plane is of the cluster tier."""
    for item in items:
        if Path(__file__).parent in item.path.parents and "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Never built by a test: that takes a quarter of an hour and is `make`'s work."""
    try:
        path, cache = os.environ.get("PATH", ""), user_cache_dir(os.environ)
        program = require_program(CONTROL_PLANE, path, cache, PROJECT / "tools")
    except ProgramError as error:
        told = f"{error}; {' '.join(error.hints)}"
        if os.environ.get("CI"):
            pytest.fail(f"the cluster's tests need a control plane: {told}")
        pytest.skip(f"NO CONTROL PLANE, SO NOTHING IS TESTED AGAINST A REAL KUBERNETES API: {told}")
    # With this process as its owner the plane ends even when the session is killed.
    made = ControlPlane(program, tmp_path_factory.mktemp("plane"), owner=os.getpid())
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.fixture
def plane(control_plane: ControlPlane) -> Plane:
    """The plane, whole: what an earlier test stopped has been started again."""
    return control_plane.up()


@pytest.fixture
def cluster(control_plane: ControlPlane, plane: Plane, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A namespace of the test's own. It is not waited for at the end: emptying one takes seconds."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    made = Cluster(plane, f"{words}-{uuid.uuid4().hex[:6]}")
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.namespace}})
    yield made
    # Of now: a test may have stopped it, or renewed its token.
    Cluster(control_plane.up(), made.namespace).delete("Namespace", made.namespace)


@pytest.fixture
def ec2(ec2_endpoint: Ec2Endpoint) -> Any:  # noqa: F811
    return boto3.client(
        "ec2",
        region_name=REGION,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
        endpoint_url=ec2_endpoint.url,
    )


JoinMachines = Callable[..., Kubelets]


@pytest.fixture
def kubelets(plane: Plane, ec2: Any) -> Iterator[JoinMachines]:
    """``kubelets(environment, Pace(...))``: from then on that environment's machines join the cluster.

    At the end they stop, the machines are terminated and their nodes deleted.
    """
    started: dict[str, Kubelets] = {}

    def start(environment: str, pace: Pace = Pace(poll_seconds=0.1)) -> Kubelets:
        made = Kubelets(ec2, plane.parts_client, environment, pace)
        made.start()
        started[environment] = made
        return made

    yield start
    for environment, one in started.items():
        one.stop()
        terminate(ec2, environment)
        whole = Cluster(plane, "default")
        for node in whole.list("Node"):
            if (node["metadata"].get("annotations") or {}).get(OWNER) == environment:
                whole.delete("Node", node["metadata"]["name"])


def terminate(ec2: Any, environment: str) -> None:
    filters = [
        {"Name": f"tag:{keys.TAG_ENVIRONMENT}", "Values": [environment]},
        {"Name": "instance-state-name", "Values": ["pending", "running", "stopped"]},
    ]
    groups = ec2.describe_instances(Filters=filters)["Reservations"]
    ids = [one["InstanceId"] for group in groups for one in group["Instances"]]
    if ids:
        ec2.terminate_instances(InstanceIds=ids)
