"""The sandbox's capacity reservations: shown with what is left, filled by launches that aim at them, full when full."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from engine.model.reservation import CapacityReservation, MatchCriteria, ReservationKind
from engine.observe.ec2_reservations import reservations_of
from engine.sandbox.ec2 import RESERVATIONS_FILE, Ec2Endpoint
from engine.sandbox.reservations import SandboxReservation, write_reservations
from tests.builders import NOON

BLOCK = SandboxReservation(
    "cr-0a1", "g5.xlarge", "us-east-1b", 1, "capacity-block", ends_at="2026-11-30T12:00:00Z", tags={"team": "a & b"}
)
OPEN = SandboxReservation("cr-0a2", "g5.2xlarge", "us-east-1b", 5, match="open")


@pytest.fixture
def ec2(ec2_endpoint: Ec2Endpoint, ec2_state: Path) -> Iterator[Any]:
    write_reservations(ec2_state / RESERVATIONS_FILE, (OPEN, BLOCK))
    yield boto3.client(
        "ec2",
        endpoint_url=ec2_endpoint.url,
        region_name="us-east-1",
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
    )
    (ec2_state / RESERVATIONS_FILE).unlink()


def launch_in(ec2: Any, reservation: str, instance_type: str = "g5.xlarge") -> str:
    target = {"CapacityReservationTarget": {"CapacityReservationId": reservation}}
    answer = ec2.run_instances(
        ImageId="ami-0123456789abcdef0",
        MinCount=1,
        MaxCount=1,
        InstanceType=instance_type,
        Placement={"AvailabilityZone": "us-east-1b"},
        CapacityReservationSpecification=target,
    )
    return str(answer["Instances"][0]["InstanceId"])


def available(ec2: Any) -> dict[str, int]:
    return {each.id: each.available for each in reservations_of(ec2)}


def test_reservations_are_read_as_they_are(ec2: Any) -> None:
    assert reservations_of(ec2) == (
        CapacityReservation(
            "cr-0a1",
            "g5.xlarge",
            "us-east-1b",
            total=1,
            available=1,
            kind=ReservationKind.CAPACITY_BLOCK,
            owner_id="123456789012",
            ends_at=NOON,
            tags={"team": "a & b"},
        ),
        CapacityReservation(
            "cr-0a2",
            "g5.2xlarge",
            "us-east-1b",
            total=5,
            available=5,
            match_criteria=MatchCriteria.OPEN,
            owner_id="123456789012",
        ),
    )


def test_a_launch_takes_a_place_until_its_machine_is_gone(ec2: Any) -> None:
    instance = launch_in(ec2, "cr-0a1")
    assert available(ec2) == {"cr-0a1": 0, "cr-0a2": 5}
    ec2.terminate_instances(InstanceIds=[instance])
    assert available(ec2) == {"cr-0a1": 1, "cr-0a2": 5}


@pytest.mark.parametrize(
    ("target", "instance_type", "code"),
    [
        ("cr-0a2", "g5.xlarge", "ReservationCapacityExceeded"),
        ("cr-0ff", "g5.xlarge", "InvalidCapacityReservationId.NotFound"),
    ],
)
def test_a_launch_that_the_reservation_has_no_place_for_is_refused(
    ec2: Any, target: str, instance_type: str, code: str
) -> None:
    with pytest.raises(ClientError) as refused:
        launch_in(ec2, target, instance_type)
    assert refused.value.response["Error"]["Code"] == code


def test_a_full_reservation_refuses_a_launch(ec2: Any) -> None:
    instance = launch_in(ec2, "cr-0a1")
    with pytest.raises(ClientError, match="ReservationCapacityExceeded"):
        launch_in(ec2, "cr-0a1")
    ec2.terminate_instances(InstanceIds=[instance])
