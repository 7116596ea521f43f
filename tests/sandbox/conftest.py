"""One EC2 endpoint for all tests of this folder, on a free port, ended with the session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from engine.sandbox.ec2 import Ec2Endpoint, ec2_down, ec2_up


@pytest.fixture(scope="session")
def ec2_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    state = tmp_path_factory.mktemp("ec2")
    yield state
    ec2_down(state)


@pytest.fixture
def endpoint(ec2_state: Path) -> Iterator[Ec2Endpoint]:
    """The endpoint, running and without faults."""
    (ec2_state / "faults.json").unlink(missing_ok=True)
    yield ec2_up(ec2_state)
    (ec2_state / "faults.json").unlink(missing_ok=True)


@pytest.fixture
def aws_clients(endpoint: Ec2Endpoint) -> Any:
    """A function from a service's name to a client of the endpoint that tries once."""

    def client(service: str) -> Any:
        from botocore.config import Config

        return boto3.client(
            service,  # type: ignore[call-overload]
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            endpoint_url=endpoint.url,
            config=Config(retries={"total_max_attempts": 1}),
        )

    return client
