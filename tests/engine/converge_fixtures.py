"""A converger over the real Pulumi CLI and the sandbox's EC2, each test in an environment of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from attrs import evolve, frozen

from engine.converge.driver import Converger
from engine.converge.events import Event
from engine.converge.session import Session
from engine.converge.toolchain import Toolchain
from engine.model import labels
from engine.model.claim import Claim
from engine.model.document import DesiredDocument, Foundation
from engine.model.environment import Environment
from engine.model.node import Instance, InstanceState
from engine.model.outcome import Outcome, OutcomeStatus
from engine.observe.ec2_foundation import Ec2FoundationFinder
from engine.sandbox.toolbox import attached_aws_plugin, stand_in_bin
from tests.converge import documents
from tests.engine.conftest import PROJECT, Sandbox

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
ZONES = {"us-east-1a": "use1-az1", "us-east-1b": "use1-az2"}


@frozen
class World:
    """One environment: its main converger, and EC2 as an observer would report it."""

    converger: Converger
    sandbox: Sandbox
    environment: Environment
    session: Session

    @property
    def name(self) -> str:
        return self.environment.name

    def claim(self, name: str, **more: object) -> Claim:
        fields: dict[str, object] = {"stack": self.name, "launch_template": f"{self.name}-gpu-0123456789", **more}
        made = documents.claim(name, **fields)  # type: ignore[arg-type]
        tags = {**made.inputs.tags, labels.TAG_ENVIRONMENT: self.name}
        return evolve(made, inputs=evolve(made.inputs, tags=tags))

    def foundation(self, **more: object) -> Foundation:
        template = documents.template(f"{self.name}-gpu-0123456789", role=f"{self.name}-node")
        fields: dict[str, object] = {"zones": ZONES, "roles": (f"{self.name}-node",), **more}
        return documents.foundation([template], **fields)

    def document(self, *claims: Claim, **more: object) -> DesiredDocument:
        fields: dict[str, object] = {"environment": self.name, "on": self.foundation(), **more}
        return documents.document(*claims, **fields)  # type: ignore[arg-type]

    def instances(self) -> tuple[Instance, ...]:
        found = self.sandbox.instances(**{labels.TAG_ENVIRONMENT: self.name})
        return tuple(
            Instance(
                id=one["InstanceId"],
                claim=next((tag["Value"] for tag in one["Tags"] if tag["Key"] == labels.TAG_CLAIM), ""),
                state=InstanceState(one["State"]["Name"]),
                instance_type=one["InstanceType"],
                zone=one["Placement"]["AvailabilityZone"],
                capacity_type=one.get("InstanceLifecycle", labels.ON_DEMAND),
                launched_at=one["LaunchTime"],
            )
            for one in found
        )

    def running(self) -> list[str]:
        """The claims of the instances that live, one each."""
        return sorted(instance.claim for instance in self.instances())

    def converge(self, document: DesiredDocument, *, refresh: bool = False) -> tuple[Outcome, list[Event]]:
        events: list[Event] = []
        outcome = self.converger.converge(document, self.instances(), events.append, refresh=refresh)
        return outcome, events

    def lose_state(self) -> None:
        """The backend forgets all stacks."""
        backend = self.converger.stack.cli.variables["PULUMI_BACKEND_URL"]
        shutil.rmtree(Path(backend.removeprefix("file://")) / ".pulumi")

    def vpcs(self) -> list[str]:
        filters = [{"Name": f"tag:{labels.TAG_ENVIRONMENT}", "Values": [self.name]}]
        return [vpc["VpcId"] for vpc in self.sandbox.client("ec2").describe_vpcs(Filters=filters)["Vpcs"]]


def statuses(outcome: Outcome) -> dict[str, OutcomeStatus]:
    return {one.claim: one.status for one in outcome.claims}


@pytest.fixture(scope="session")
def attached_plugin() -> Iterator[str]:
    with attached_aws_plugin({**os.environ, **CREDENTIALS}) as value:
        yield value


@pytest.fixture
def world(tmp_path: Path, toolchain: Toolchain, sandbox: Sandbox, attached_plugin: str) -> World:
    return made_world(tmp_path, toolchain, sandbox, {"PULUMI_DEBUG_PROVIDERS": attached_plugin})


def made_world(folder: Path, toolchain: Toolchain, sandbox: Sandbox, more: Mapping[str, str]) -> World:
    """An environment whose project and state are in `folder`, which also names it; `more` are further variables."""
    project, backend = folder / "project", folder / "backend"
    (project / "stacks").mkdir(parents=True)
    backend.mkdir()
    shutil.copy(PROJECT / "Pulumi.yaml", project)
    stand_ins = stand_in_bin(folder / "bin")
    variables = {
        "PATH": os.pathsep.join([str(stand_ins), str(toolchain.pulumi.parent), os.environ.get("PATH", "")]),
        "HOME": str(folder / "home"),
        "PULUMI_HOME": str(folder / "home" / ".pulumi"),
        "PULUMI_BACKEND_URL": backend.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "test",
        **more,
        **CREDENTIALS,
    }
    # IAM names are the account's: each test has its own.
    name = "t" + folder.name.replace("_", "-")[-20:].strip("-").lower()
    environment = documents.environment(name, sandbox.endpoint.url)
    finder = Ec2FoundationFinder(sandbox.endpoint.url, environment.region)
    session = Session(toolchain, project, environment, variables, finder)
    return World(session.lane(environment.name), sandbox, environment, session)
