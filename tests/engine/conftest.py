"""The real Pulumi CLI against the sandbox's EC2, each test in a home and a state backend of its own.

Language host and AWS plugin are the stand-ins, found on PATH by the engine like the official ones.
"""

import json
import os
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from attrs import frozen

from engine.converge.pulumi_cli import ToolchainError
from engine.converge.toolchain import Toolchain, find_toolchain, pulumi_home
from engine.programs.cache import user_cache_dir
from engine.sandbox.ec2 import Ec2Endpoint
from engine.sandbox.ec2_app import LAUNCHES_PATH
from engine.sandbox.faults import Fault, write_faults
from engine.sandbox.toolbox import stand_in_bin
from tests.ec2_fixtures import ec2_endpoint, ec2_state  # noqa: F401 (fixtures)

PROJECT = Path(__file__).parents[2]
REGION = "us-east-1"
STACK = "test"
RUN_SECONDS = 240


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The Pulumi CLI. Never built by a test: that takes minutes and is `make`'s work."""
    try:
        return find_toolchain(
            os.environ.get("PATH", ""),
            user_cache_dir(os.environ),
            PROJECT / "tools",
            plugins_home=pulumi_home(os.environ),
            may_fetch=False,
        )
    except ToolchainError as error:
        if os.environ.get("CI"):
            pytest.fail(f"the engine's tests need Pulumi: {error}")
        pytest.skip(f"NO PULUMI, SO THE ENGINE IS NOT TESTED: {error}")


@frozen
class Sandbox:
    """The endpoint as tests use it: clients that look at it from outside, and faults."""

    endpoint: Ec2Endpoint
    state: Path

    def client(self, service: str) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload]
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            endpoint_url=self.endpoint.url,
        )

    def instances(self, **tags: str) -> list[dict[str, Any]]:
        """Those that are not terminated and carry the tags."""
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
        pages = self.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        found = [one for page in pages for group in page["Reservations"] for one in group["Instances"]]
        return [one for one in found if one["State"]["Name"] not in ("terminated", "shutting-down")]

    def faults(self, *faults: Fault) -> None:
        write_faults(self.state / "faults.json", faults)

    def requests(self, action: str) -> list[dict[str, Any]]:
        """What has been asked of the endpoint since it started, oldest first."""
        lines = (self.state / "requests.jsonl").read_text(encoding="utf-8").splitlines()
        return [one for one in map(json.loads, lines) if one["action"] == action]

    def launches(self) -> dict[str, float]:
        """When EC2 received the launch of each claim, in seconds of the wall clock; the last of several."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.endpoint.url + LAUNCHES_PATH) as answer:
            return {one["claim"]: one["received_at"] for one in json.load(answer)}


@pytest.fixture
def sandbox(ec2_endpoint: Ec2Endpoint, ec2_state: Path) -> Sandbox:  # noqa: F811
    return Sandbox(ec2_endpoint, ec2_state)


@frozen
class Run:
    """A finished `pulumi` command."""

    code: int
    output: str


@frozen
class PulumiRoom:
    """A Pulumi project in a folder of its own, with the environment that its commands run in."""

    folder: Path
    environment: Mapping[str, str]

    def program(self, text: str) -> None:
        (self.folder / "__main__.py").write_text(text, encoding="utf-8")

    def run(self, *arguments: str, **environment: str) -> Run:
        done = subprocess.run(
            ["pulumi", "--non-interactive", *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        return Run(done.returncode, done.stdout + done.stderr)

    def up(self, *arguments: str, **environment: str) -> Run:
        return self.run("up", "--yes", "--skip-preview", "--stack", STACK, *arguments, **environment)

    def deployment(self) -> dict[str, Any]:
        """The exported state."""
        return dict(json.loads(self.run("stack", "export", "--stack", STACK).output)["deployment"])

    def ids(self, type_: str) -> dict[str, str]:
        """Logical name to id, of all resources of a type in the state."""
        return {
            one["urn"].rsplit("::", 1)[-1]: one["id"]
            for one in self.deployment().get("resources", [])
            if one["type"] == type_
        }


@pytest.fixture
def pulumi_room(tmp_path: Path, toolchain: Toolchain, sandbox: Sandbox) -> PulumiRoom:
    folder, home, backend = tmp_path / "project", tmp_path / "home", tmp_path / "backend"
    for made in (folder / "stacks", home, backend):
        made.mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: engine-test\nruntime: python\nstackConfigDir: stacks\n")
    stand_ins = stand_in_bin(tmp_path / "bin")
    environment = {
        "PATH": os.pathsep.join([str(stand_ins), str(toolchain.pulumi.parent), os.environ.get("PATH", "")]),
        "HOME": str(home),
        "PULUMI_HOME": str(home / ".pulumi"),
        "PULUMI_BACKEND_URL": f"file://{backend}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "EC2_URL": sandbox.endpoint.url,
    }
    room = PulumiRoom(folder, environment)
    room.program("")
    made_stack = room.run("stack", "init", STACK)
    assert made_stack.code == 0, made_stack.output
    return room
