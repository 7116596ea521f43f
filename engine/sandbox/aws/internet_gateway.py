"""aws:ec2/internetGateway:InternetGateway"""

from typing import Any

from engine.sandbox.aws.deleting import delete, found
from engine.sandbox.aws.resource import Resource
from engine.sandbox.aws.schema import Input
from engine.sandbox.aws.session import Region, has_code
from engine.sandbox.aws.tagging import remote_tags, tag_specifications
from engine.sandbox.aws.waiting import Wait, patiently
from engine.sandbox.aws.wire import Properties

_GONE = ("InvalidInternetGatewayID.NotFound",)
_IN_USE = ("DependencyViolation",)


class InternetGateway(Resource):
    token = "aws:ec2/internetGateway:InternetGateway"
    noun = "EC2 Internet Gateway"
    inputs = (Input("vpcId", computed=True),)
    outputs = ("arn", "ownerId", "tagsAll")

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        tags = tag_specifications("internet-gateway", inputs.get("tagsAll"))
        answer = aws.ec2("CreateInternetGateway", TagSpecifications=tags)
        return str(answer["InternetGateway"]["InternetGatewayId"])

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        if inputs.get("vpcId"):
            _attach(aws, identity, inputs["vpcId"], timeout)

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        gateway = _find(aws, identity)
        if gateway is None:
            return None
        attachments = gateway.get("Attachments") or []
        return {
            "arn": aws.arn("ec2", f"internet-gateway/{identity}", gateway.get("OwnerId")),
            "ownerId": gateway.get("OwnerId"),
            "vpcId": attachments[0]["VpcId"] if attachments else "",
            "tagsAll": remote_tags(aws.session.config, gateway.get("Tags")),
        }

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if "vpcId" in changed:
            if old.get("vpcId"):
                _detach(aws, identity, old["vpcId"], timeout)
            if new.get("vpcId"):
                _attach(aws, identity, new["vpcId"], timeout)
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        if known.get("vpcId"):
            _detach(aws, identity, known["vpcId"], timeout)
        delete(aws, "DeleteInternetGateway", _GONE, timeout, while_in_use=_IN_USE, InternetGatewayId=identity)


def _attach(aws: Region, identity: str, vpc: str, timeout: float) -> None:
    patiently(
        aws.pace,
        timeout,
        lambda error: has_code(error, *_GONE),
        lambda: aws.ec2("AttachInternetGateway", InternetGatewayId=identity, VpcId=vpc),
    )
    Wait(timeout).until(aws.pace, "available", lambda: _attachment(aws, identity, vpc), pending=("attaching",))


def _detach(aws: Region, identity: str, vpc: str, timeout: float) -> None:
    not_there = ("Gateway.NotAttached", "InvalidVpcID.NotFound", *_GONE)
    delete(
        aws, "DetachInternetGateway", not_there, timeout, while_in_use=_IN_USE, InternetGatewayId=identity, VpcId=vpc
    )
    Wait(timeout).until_gone(aws.pace, lambda: _attachment(aws, identity, vpc))


def _attachment(aws: Region, identity: str, vpc: str) -> str | None:
    gateway = _find(aws, identity) or {}
    states = [one["State"] for one in gateway.get("Attachments") or [] if one["VpcId"] == vpc]
    return str(states[0]) if states and states[0] != "detached" else None


def _find(aws: Region, identity: str) -> Any:
    return found(aws, "DescribeInternetGateways", "InternetGateways", _GONE, InternetGatewayIds=[identity])
