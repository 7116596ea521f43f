"""Clients of the folder's EC2 endpoint."""

from typing import Any

import boto3
import pytest

from engine.sandbox.ec2 import Ec2Endpoint
from tests.ec2_fixtures import ec2_endpoint, ec2_state  # noqa: F401 (fixtures)


@pytest.fixture
def aws_clients(ec2_endpoint: Ec2Endpoint) -> Any:  # noqa: F811
    """A function from a service's name to a client of the endpoint that tries once."""

    def client(service: str) -> Any:
        from botocore.config import Config

        return boto3.client(
            service,  # type: ignore[call-overload]
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            endpoint_url=ec2_endpoint.url,
            config=Config(retries={"total_max_attempts": 1}),
        )

    return client
