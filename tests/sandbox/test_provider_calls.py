"""Retries, waits and errors of the stand-in provider, by the AWS plugin's rules."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from engine.sandbox.aws.instance import Instance
from engine.sandbox.aws.resource import PartialError
from engine.sandbox.aws.session import AwsError, Region, Session, UnreachableError, is_retried
from engine.sandbox.aws.waiting import Pace, Wait, WaitError, patiently
from tests.sandbox.provider import FakeClient, a_config

NOW = Pace(scale=0)


def refused(code: str, status: int = 400, message: str = "no") -> ClientError:
    response = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "RequestId": "r"},
    }
    return ClientError(response, "X")  # type: ignore[arg-type]


def a_region_of(client: FakeClient, **config: Any) -> Region:
    session = Session(a_config(**config), NOW)
    session.client = lambda service, region: client  # type: ignore[method-assign]
    return session.region(None)


def in_turn(*answers: Any) -> Any:
    waiting = list(answers)
    return lambda **request: waiting.pop(0) if len(waiting) > 1 else waiting[0]


# Retries


def test_insufficient_capacity_is_retried_up_to_max_retries_with_one_client_token() -> None:
    client = FakeClient({"run_instances": in_turn(refused("InsufficientInstanceCapacity", 500, "none left"))})
    with pytest.raises(AwsError) as failed:
        Instance().make(a_region_of(client, max_retries=3), {"ami": "ami-1", "instanceType": "g5.xlarge"}, 60)
    assert failed.value.code == "InsufficientInstanceCapacity"
    assert str(failed.value).endswith("api error InsufficientInstanceCapacity: none left")
    assert "operation error EC2: RunInstances, https response error StatusCode: 500, RequestID: r" in str(failed.value)
    assert len(client.requests) == 4
    assert len({request["ClientToken"] for _, request in client.requests}) == 1


def test_two_creates_have_two_client_tokens() -> None:
    client = FakeClient({"run_instances": in_turn({"Instances": [{"InstanceId": "i-1"}]})})
    for _ in range(2):
        Instance().make(a_region_of(client), {"ami": "ami-1", "instanceType": "g5.xlarge"}, 60)
    assert len({request["ClientToken"] for _, request in client.requests}) == 2


@pytest.mark.parametrize(
    ("code", "status", "retried"),
    [
        ("InsufficientInstanceCapacity", 500, True),
        ("RequestLimitExceeded", 503, True),
        ("InternalError", 500, True),
        ("UnfulfillableCapacity", 400, False),
        ("SpotMaxPriceTooLow", 400, False),
        ("MaxSpotInstanceCountExceeded", 400, False),
        ("VcpuLimitExceeded", 400, False),
        ("InvalidSubnetID.NotFound", 400, False),
    ],
)
def test_these_refusals_of_a_launch_are_retried_and_those_are_final(code: str, status: int, retried: bool) -> None:
    assert is_retried("RunInstances", AwsError("ec2", "RunInstances", code, "", status, "")) is retried


def test_insufficient_capacity_is_retried_for_launches_only() -> None:
    error = AwsError("ec2", "StartInstances", "InsufficientInstanceCapacity", "", 500, "")
    assert is_retried("StartInstances", error) is False


def test_an_endpoint_that_does_not_answer_is_given_up_after_three_attempts() -> None:
    client = FakeClient({"describe_vpcs": in_turn(EndpointConnectionError(endpoint_url="http://127.0.0.1:9"))})
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9"):
        a_region_of(client).ec2("DescribeVpcs")
    assert len(client.requests) == 3


def test_a_service_without_an_endpoint_is_refused_by_name() -> None:
    session = Session(a_config(), NOW)
    with pytest.raises(UnreachableError, match="none for iam"):
        session.region(None).iam("GetRole", RoleName="r")


# Creating


def test_an_instance_that_dies_while_it_starts_keeps_its_id_and_gives_ec2s_reason() -> None:
    dead = {
        "InstanceId": "i-1",
        "State": {"Name": "terminated"},
        "StateReason": {"Message": "Server.SpotInstanceTermination: reclaimed"},
    }
    client = FakeClient(
        {
            "run_instances": in_turn({"Instances": [{"InstanceId": "i-1"}]}),
            "describe_instances": in_turn({"Reservations": [{"Instances": [dead]}]}),
        }
    )
    with pytest.raises(PartialError, match="unexpected state 'terminated', wanted target 'running'") as failed:
        Instance().create(a_region_of(client), {"ami": "ami-1", "instanceType": "g5.xlarge"}, 0)
    assert failed.value.identity == "i-1"
    assert "reclaimed" in str(failed.value)


def test_a_defect_after_the_launch_does_not_lose_the_instance() -> None:
    client = FakeClient(
        {
            "run_instances": in_turn({"Instances": [{"InstanceId": "i-1"}]}),
            "describe_instances": in_turn({"Reservations": [{"Instances": [{"InstanceId": "i-1"}]}]}),
        }
    )
    with pytest.raises(PartialError, match="KeyError") as failed:
        Instance().create(a_region_of(client), {"ami": "ami-1", "instanceType": "g5.xlarge"}, 0)
    assert failed.value.identity == "i-1"


def test_a_launch_carries_its_tags_and_overrides_the_templates_switches() -> None:
    client = FakeClient({"run_instances": in_turn({"Instances": [{"InstanceId": "i-1"}]})})
    inputs = {"launchTemplate": {"id": "lt-1", "version": "2"}, "tagsAll": {"claim": "c"}, "subnetId": "s"}
    Instance().make(a_region_of(client, default_tags={"team": "x"}), inputs, 60)
    request = client.requests[0][1]
    assert request["LaunchTemplate"] == {"LaunchTemplateId": "lt-1", "Version": "2"}
    assert request["SubnetId"] == "s"
    assert (request["DisableApiTermination"], request["EbsOptimized"]) == (False, False)
    assert request["TagSpecifications"] == [
        {"ResourceType": "instance", "Tags": [{"Key": "claim", "Value": "c"}]},
        {"ResourceType": "volume", "Tags": [{"Key": "team", "Value": "x"}]},
    ]


def test_an_address_moves_subnet_and_groups_into_one_network_interface() -> None:
    client = FakeClient({"run_instances": in_turn({"Instances": [{"InstanceId": "i-1"}]})})
    inputs = {
        "ami": "a",
        "instanceType": "t",
        "subnetId": "s",
        "vpcSecurityGroupIds": ["g"],
        "associatePublicIpAddress": False,
    }
    Instance().make(a_region_of(client), inputs, 60)
    request = client.requests[0][1]
    assert "SubnetId" not in request
    assert request["NetworkInterfaces"] == [
        {"DeviceIndex": 0, "SubnetId": "s", "Groups": ["g"], "AssociatePublicIpAddress": False}
    ]


# Deleting


def test_an_instance_that_is_gone_already_is_deleted() -> None:
    gone = refused("InvalidInstanceID.NotFound")
    client = FakeClient({"terminate_instances": in_turn(gone), "describe_instances": in_turn(gone)})
    Instance().remove(a_region_of(client), "i-1", {}, 60)
    assert [method for method, _ in client.requests] == ["terminate_instances", "describe_instances"]


def test_a_deletion_waits_until_the_instance_is_terminated() -> None:
    states = [
        {"Reservations": [{"Instances": [{"State": {"Name": name}}]}]} for name in ("shutting-down", "terminated")
    ]
    client = FakeClient({"terminate_instances": in_turn({}), "describe_instances": in_turn(*states)})
    Instance().remove(a_region_of(client), "i-1", {}, 60)
    assert [method for method, _ in client.requests] == ["terminate_instances", *["describe_instances"] * 2]


def test_a_spot_instance_whose_request_cannot_be_cancelled_is_not_deleted() -> None:
    client = FakeClient({"cancel_spot_instance_requests": in_turn(refused("InvalidSpotInstanceRequestID.NotFound"))})
    known = {"instanceLifecycle": "spot", "spotInstanceRequestId": "sir-1"}
    with pytest.raises(AwsError, match="InvalidSpotInstanceRequestID"):
        Instance().remove(a_region_of(client), "i-1", known, 60)


# Waiting


def test_a_wait_ends_at_its_target_and_fails_at_a_state_it_did_not_expect() -> None:
    Wait(10).until(NOW, "running", in_turn("pending", "pending", "running"), pending=("pending",))
    with pytest.raises(WaitError, match="unexpected state 'stopped', wanted target 'running'"):
        Wait(10).until(NOW, "running", in_turn("pending", "stopped"), pending=("pending",))


def test_a_thing_that_is_not_found_is_waited_for_a_while_and_then_missed() -> None:
    Wait(10, misses=2).until(NOW, "found", in_turn(None, None, "found"))
    with pytest.raises(WaitError, match="couldn't find resource"):
        Wait(10, misses=2).until(NOW, "found", in_turn(None))


def test_found_once_is_not_found_three_times_running() -> None:
    seen: list[str | None] = ["x", None, "x", "x", "x"]
    answers = iter(seen)
    Wait(10).until_found(NOW, lambda: next(answers), times=3)
    assert next(answers, "all used") == "all used"


def test_a_wait_gives_up_at_its_timeout() -> None:
    with pytest.raises(WaitError, match=r"timeout while waiting for state to become 'up' \(last state: 'down'"):
        Wait(0).until(NOW, "up", lambda: "down")


def test_a_cancelled_wait_ends_at_once() -> None:
    pace = Pace(scale=1)
    pace.stopped.set()
    with pytest.raises(WaitError, match="canceled"):
        Wait(600, delay_seconds=600).until(pace, "up", lambda: "down")


def test_real_times_are_chosen_by_the_environment() -> None:
    assert Pace.chosen_by({"NODEWRIGHT_STANDIN_REAL_WAITS": "1"}).scale == 1
    assert Pace.chosen_by({}).scale == 1 / 50


def test_patience_ends_with_the_last_error() -> None:
    attempts: list[int] = []

    def fail() -> None:
        attempts.append(1)
        raise ValueError(f"attempt {len(attempts)}")

    with pytest.raises(ValueError, match="attempt 1"):
        patiently(NOW, 0, lambda error: False, fail)
    with pytest.raises(ValueError, match="attempt"):
        patiently(NOW, 0, lambda error: True, fail)
