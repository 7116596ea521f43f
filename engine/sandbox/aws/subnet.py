"""aws:ec2/subnet:Subnet"""

import ipaddress
from typing import Any

from engine.sandbox.aws.deleting import delete, found
from engine.sandbox.aws.resource import MINUTE_SECONDS, Resource
from engine.sandbox.aws.schema import Input, Rules
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.tagging import remote_tags, tag_specifications
from engine.sandbox.aws.waiting import Wait
from engine.sandbox.aws.wire import Properties, Value

_GONE = ("InvalidSubnetID.NotFound",)

# The plugin sets what is to be off first, then what is to be on, and public addresses last.
_ATTRIBUTES = (
    ("enableResourceNameDnsARecordOnLaunch", "EnableResourceNameDnsARecordOnLaunch"),
    ("mapPublicIpOnLaunch", "MapPublicIpOnLaunch"),
)


def says_wrong_cidr(value: Value) -> str:
    """A block must be a network's address: AWS refuses 10.0.0.1/16."""
    try:
        ipaddress.ip_network(value)
    except ValueError as error:
        return str(error)
    return ""


class Subnet(Resource):
    token = "aws:ec2/subnet:Subnet"
    noun = "EC2 Subnet"
    create_seconds = 10 * MINUTE_SECONDS
    inputs = (
        Input("vpcId", required=True, replaces=True),
        Input("cidrBlock", computed=True, replaces=True, says_wrong=says_wrong_cidr),
        Input("availabilityZone", computed=True, replaces=True),
        Input("availabilityZoneId", computed=True, replaces=True),
        Input("mapPublicIpOnLaunch", default=False),
        Input("enableResourceNameDnsARecordOnLaunch", default=False),
        Input("assignIpv6AddressOnCreation", default=False, performed=False),
        Input("enableDns64", default=False, performed=False),
        Input("enableResourceNameDnsAaaaRecordOnLaunch", default=False, performed=False),
        Input("ipv6CidrBlock", computed=True, performed=False),
        Input("ipv6Native", default=False, replaces=True, performed=False),
        Input("privateDnsHostnameTypeOnLaunch", computed=True, performed=False),
        Input("ipv4IpamPoolId", replaces=True, performed=False),
        Input("ipv4NetmaskLength", replaces=True, performed=False),
        Input("ipv6IpamPoolId", replaces=True, performed=False),
        Input("ipv6NetmaskLength", replaces=True, performed=False),
        Input("outpostArn", replaces=True, performed=False),
        Input("customerOwnedIpv4Pool", performed=False),
        Input("mapCustomerOwnedIpOnLaunch", performed=False),
        Input("enableLniAtDeviceIndex", performed=False),
    )
    outputs = ("arn", "ipv6CidrBlockAssociationId", "ownerId", "tagsAll")
    rules = Rules(exclusive=(("availabilityZone", "availabilityZoneId"),))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        answer = aws.ec2(
            "CreateSubnet",
            VpcId=inputs["vpcId"],
            CidrBlock=inputs.get("cidrBlock"),
            AvailabilityZone=inputs.get("availabilityZone"),
            AvailabilityZoneId=inputs.get("availabilityZoneId"),
            TagSpecifications=tag_specifications("subnet", inputs.get("tagsAll")),
        )
        return str(answer["Subnet"]["SubnetId"])

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        Wait(timeout).until(aws.pace, "available", lambda: _state(aws, identity), pending=("pending",))
        _set_attributes(aws, identity, {name: True for name, _ in _ATTRIBUTES if inputs.get(name)})

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        subnet = _find(aws, identity)
        if subnet is None:
            return None
        options = subnet.get("PrivateDnsNameOptionsOnLaunch") or {}
        return {
            "arn": subnet.get("SubnetArn") or aws.arn("ec2", f"subnet/{identity}", subnet.get("OwnerId")),
            "vpcId": subnet["VpcId"],
            "cidrBlock": subnet["CidrBlock"],
            "availabilityZone": subnet["AvailabilityZone"],
            "availabilityZoneId": subnet.get("AvailabilityZoneId"),
            "mapPublicIpOnLaunch": bool(subnet.get("MapPublicIpOnLaunch")),
            "enableResourceNameDnsARecordOnLaunch": bool(
                options.get("EnableResourceNameDnsARecord", known.get("enableResourceNameDnsARecordOnLaunch", False))
            ),
            "privateDnsHostnameTypeOnLaunch": options.get("HostnameType", "ip-name"),
            "ipv6CidrBlockAssociationId": "",
            "ownerId": subnet.get("OwnerId"),
            "tagsAll": remote_tags(aws.session.config, subnet.get("Tags")),
        }

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        _set_attributes(aws, identity, {name: bool(new.get(name)) for name, _ in _ATTRIBUTES if name in changed})
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(aws, "DeleteSubnet", _GONE, timeout, while_in_use=("DependencyViolation",), SubnetId=identity)


def _set_attributes(aws: Region, identity: str, wanted: dict[str, bool]) -> None:
    for value in (False, True):
        for name, attribute in _ATTRIBUTES:
            if wanted.get(name) is value:
                aws.ec2("ModifySubnetAttribute", SubnetId=identity, **{attribute: {"Value": value}})


def _find(aws: Region, identity: str) -> Any:
    return found(aws, "DescribeSubnets", "Subnets", _GONE, SubnetIds=[identity])


def _state(aws: Region, identity: str) -> str | None:
    subnet = _find(aws, identity)
    return None if subnet is None else str(subnet["State"])
