"""The sandbox's EC2: a process that outlives the command, and the parts of AWS that moto lacks."""

import json
import os
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from engine.model import labels
from engine.sandbox.boot_time import LAUNCH_SECONDS_VARIABLE
from engine.sandbox.ec2 import Ec2Endpoint, ec2_down, ec2_status, ec2_up, is_on_record
from engine.sandbox.ec2_app import LAUNCHES_PATH
from engine.sandbox.faults import Die, Error, NoCapacity, write_faults

IMAGE = "ami-0123456789abcdef0"
EKS = "/aws/service/eks/optimized-ami/1.34"


def network(ec2: Any, zone: str = "us-east-1b") -> str:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20", AvailabilityZone=zone)["Subnet"]["SubnetId"]
    return str(subnet)


def launch(ec2: Any, subnet: str, instance_type: str | None = "g5.xlarge", **more: Any) -> str:
    request = {"ImageId": IMAGE, "MinCount": 1, "MaxCount": 1, "SubnetId": subnet, **more}
    if instance_type:
        request["InstanceType"] = instance_type
    return str(ec2.run_instances(**request)["Instances"][0]["InstanceId"])


def refusal(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_second_up_finds_the_running_server(ec2_endpoint: Ec2Endpoint, ec2_state: Path) -> None:
    again = ec2_up(ec2_state)
    assert (again.url, again.boot_id, again.fresh) == (ec2_endpoint.url, ec2_endpoint.boot_id, False)


def test_a_server_that_was_lost_comes_back_fresh_at_the_same_address(tmp_path: Path) -> None:
    first = ec2_up(tmp_path)
    try:
        os.kill(first.pid, signal.SIGKILL)
        os.waitpid(first.pid, 0)
        assert ec2_status(tmp_path) is None
        second = ec2_up(tmp_path)
        assert second.fresh
        assert second.url == first.url
        assert second.boot_id != first.boot_id
    finally:
        assert ec2_down(tmp_path) is True
    assert ec2_down(tmp_path) is False


def test_a_pid_on_record_that_is_somebody_elses_is_not_taken_for_the_server(tmp_path: Path) -> None:
    record = {"url": "http://127.0.0.1:9", "pid": os.getpid(), "boot_id": "x", "fresh": False}
    (tmp_path / "ec2.json").write_text(json.dumps(record))
    assert ec2_status(tmp_path) is None
    assert ec2_down(tmp_path) is False


def test_a_server_that_the_record_names_no_more_knows_that_it_is_forgotten(tmp_path: Path) -> None:
    record = {"url": "http://127.0.0.1:1", "pid": 1, "boot_id": "mine"}
    assert not is_on_record(tmp_path, "mine")
    (tmp_path / "ec2.json").write_text(json.dumps(record))
    assert is_on_record(tmp_path, "mine")
    assert not is_on_record(tmp_path, "an earlier one's")
    (tmp_path / "ec2.json").write_text("{")
    assert not is_on_record(tmp_path, "mine")


def test_the_same_client_token_launches_once(aws_clients: Any) -> None:
    ec2 = aws_clients("ec2")
    subnet = network(ec2)
    assert launch(ec2, subnet, ClientToken="once") == launch(ec2, subnet, ClientToken="once")
    assert launch(ec2, subnet, ClientToken="other") != launch(ec2, subnet, ClientToken="once")


def test_a_client_token_with_another_request_is_refused(aws_clients: Any) -> None:
    ec2 = aws_clients("ec2")
    subnet = network(ec2)
    launch(ec2, subnet, ClientToken="mine")
    with pytest.raises(ClientError) as refused:
        launch(ec2, subnet, "g5.2xlarge", ClientToken="mine")
    assert refusal(refused) == "IdempotentParameterMismatch"


def test_an_unknown_instance_type_is_refused_wherever_it_is_written(aws_clients: Any) -> None:
    ec2 = aws_clients("ec2")
    subnet = network(ec2)
    with pytest.raises(ClientError, match=r"do not exist: \[g5\.gigantic\]") as refused:
        launch(ec2, subnet, "g5.gigantic")
    assert refusal(refused) == "InvalidInstanceType"
    ec2.create_launch_template(LaunchTemplateName="bad", LaunchTemplateData={"InstanceType": "g5.gigantic"})
    with pytest.raises(ClientError, match=r"g5\.gigantic"):
        launch(ec2, subnet, None, LaunchTemplate={"LaunchTemplateName": "bad"})
    assert launch(ec2, subnet, "p3.2xlarge")


@pytest.mark.parametrize(
    ("parameter", "name"),
    [
        (f"{EKS}/amazon-linux-2023/x86_64/nvidia/recommended/image_id", "al2023-x86_64-nvidia"),
        (f"{EKS}/amazon-linux-2023/arm64/standard/recommended/image_id", "al2023-arm64-standard"),
        (f"{EKS}/amazon-linux-2-gpu/recommended/image_id", "al2-gpu"),
    ],
)
def test_the_eks_image_parameters_give_images_that_exist(aws_clients: Any, parameter: str, name: str) -> None:
    image = aws_clients("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
    described = aws_clients("ec2").describe_images(ImageIds=[image])["Images"][0]
    assert name in described["Name"]
    with pytest.raises(ClientError):
        aws_clients("ssm").get_parameter(Name=f"{EKS}/no-such-image")


def test_no_capacity_strikes_the_zone_of_the_subnet_and_the_market_asked_for(aws_clients: Any, ec2_state: Path) -> None:
    ec2 = aws_clients("ec2")
    here, there = network(ec2, "us-east-1b"), network(ec2, "us-east-1c")
    spot = {"MarketType": "spot"}
    write_faults(ec2_state / "faults.json", [NoCapacity("g5.xlarge", "us-east-1b", "spot")])
    with pytest.raises(ClientError) as refused:
        launch(ec2, here, InstanceMarketOptions=spot)
    assert refusal(refused) == "InsufficientInstanceCapacity"
    assert launch(ec2, there, InstanceMarketOptions=spot)
    assert launch(ec2, here)
    last = [json.loads(line) for line in (ec2_state / "requests.jsonl").read_text().splitlines()][-3:]
    assert [(one["zone"], one["capacity_type"], one["error"]) for one in last] == [
        ("us-east-1b", "spot", "InsufficientInstanceCapacity"),
        ("us-east-1c", "spot", ""),
        ("us-east-1b", "on-demand", ""),
    ]


def test_an_injected_error_comes_as_aws_words_it(aws_clients: Any, ec2_state: Path) -> None:
    write_faults(ec2_state / "faults.json", [Error("DescribeVpcs", "UnauthorizedOperation", "no <you>", 403, times=1)])
    with pytest.raises(ClientError, match="no <you>") as refused:
        aws_clients("ec2").describe_vpcs()
    assert refusal(refused) == "UnauthorizedOperation"
    assert aws_clients("ec2").describe_vpcs()["Vpcs"] is not None


def test_a_server_told_to_die_dies_and_does_not_die_of_it_again(aws_clients: Any, ec2_state: Path) -> None:
    ec2 = aws_clients("ec2")
    subnet = network(ec2)
    write_faults(ec2_state / "faults.json", [Die(at=1, when="before")])
    with pytest.raises(BotoCoreError):
        launch(ec2, subnet)
    assert ec2_status(ec2_state) is None
    assert ec2_up(ec2_state).fresh
    assert launch(ec2, network(ec2))


def test_aws_managed_policies_can_be_attached(aws_clients: Any) -> None:
    iam = aws_clients("iam")
    iam.create_role(RoleName="r", AssumeRolePolicyDocument='{"Version": "2012-10-17", "Statement": []}')
    policy = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
    iam.attach_role_policy(RoleName="r", PolicyArn=policy)
    assert iam.list_attached_role_policies(RoleName="r")["AttachedPolicies"][0]["PolicyArn"] == policy


def test_it_tells_when_it_received_the_launch_of_each_claim(ec2_endpoint: Ec2Endpoint, aws_clients: Any) -> None:
    ec2 = aws_clients("ec2")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": labels.TAG_CLAIM, "Value": "gpu-7f3a"}]}]
    subnet = network(ec2)
    before = time.time()
    launch(ec2, subnet, TagSpecifications=tags)
    with pytest.raises(ClientError):
        launch(ec2, subnet, "p99.huge", TagSpecifications=tags)

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(ec2_endpoint.url + LAUNCHES_PATH) as answer:
        received = [one["received_at"] for one in json.load(answer) if one["claim"] == "gpu-7f3a"]

    assert len(received) == 2
    assert before <= received[0] <= received[1] <= time.time()


def test_a_machine_is_pending_for_as_long_as_the_sandbox_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LAUNCH_SECONDS_VARIABLE, "1.5")
    own = ec2_up(tmp_path)
    try:
        ec2 = boto3.client(
            "ec2",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            endpoint_url=own.url,
        )
        subnet = network(ec2)
        started = time.monotonic()
        booting, ended = launch(ec2, subnet), launch(ec2, subnet)
        assert state_of(ec2, booting) == "pending"
        ec2.terminate_instances(InstanceIds=[ended])
        while state_of(ec2, booting) == "pending":
            assert time.monotonic() - started < 30
            time.sleep(0.05)
        assert time.monotonic() - started >= 1.5
        assert (state_of(ec2, booting), state_of(ec2, ended)) == ("running", "terminated")
    finally:
        ec2_down(tmp_path)


def state_of(ec2: Any, instance_id: str) -> str:
    [reservation] = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
    return str(reservation["Instances"][0]["State"]["Name"])
