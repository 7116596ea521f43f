"""aws:ec2/vpc:Vpc"""

from typing import Any

from engine.sandbox.aws.deleting import delete, found
from engine.sandbox.aws.resource import MINUTE_SECONDS, Resource
from engine.sandbox.aws.schema import Difference, Input
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.tagging import remote_tags, tag_specifications
from engine.sandbox.aws.waiting import Wait
from engine.sandbox.aws.wire import Properties

AVAILABLE = Wait(timeout_seconds=10 * MINUTE_SECONDS)

_GONE = ("InvalidVpcID.NotFound",)

# In the order in which the plugin sets them; the second is on in a new VPC, the others off.
_ATTRIBUTES = (
    ("enableDnsHostnames", "EnableDnsHostnames", False),
    ("enableDnsSupport", "EnableDnsSupport", True),
    ("enableNetworkAddressUsageMetrics", "EnableNetworkAddressUsageMetrics", False),
)


class Vpc(Resource):
    token = "aws:ec2/vpc:Vpc"
    noun = "EC2 VPC"
    inputs = (
        Input("cidrBlock", computed=True, replaces=True),
        Input("enableDnsHostnames", computed=True),
        Input("enableDnsSupport", default=True),
        Input("enableNetworkAddressUsageMetrics", computed=True),
        Input("instanceTenancy", default="default"),
        Input("assignGeneratedIpv6CidrBlock", performed=False),
        Input("ipv4IpamPoolId", replaces=True, performed=False),
        Input("ipv4NetmaskLength", replaces=True, performed=False),
        Input("ipv6CidrBlock", computed=True, performed=False),
        Input("ipv6CidrBlockNetworkBorderGroup", computed=True, performed=False),
        Input("ipv6IpamPoolId", performed=False),
        Input("ipv6NetmaskLength", performed=False),
    )
    outputs = (
        "arn",
        "defaultNetworkAclId",
        "defaultRouteTableId",
        "defaultSecurityGroupId",
        "dhcpOptionsId",
        "ipv6AssociationId",
        "mainRouteTableId",
        "ownerId",
        "tagsAll",
    )

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        answer = aws.ec2(
            "CreateVpc",
            CidrBlock=inputs.get("cidrBlock"),
            InstanceTenancy=inputs.get("instanceTenancy"),
            TagSpecifications=tag_specifications("vpc", inputs.get("tagsAll")),
        )
        return str(answer["Vpc"]["VpcId"])

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        AVAILABLE.until(aws.pace, "available", lambda: _state(aws, identity), pending=("pending",))
        for name, attribute, at_birth in _ATTRIBUTES:
            if inputs.get(name) is not None and inputs[name] != at_birth:
                aws.ec2("ModifyVpcAttribute", VpcId=identity, **{attribute: {"Value": inputs[name]}})

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        vpc = find_vpc(aws, identity)
        if vpc is None:
            return None
        of_vpc = [{"Name": "vpc-id", "Values": [identity]}]
        default = [{"Name": "default", "Values": ["true"]}]
        main = [{"Name": "association.main", "Values": ["true"]}]
        acls = aws.ec2("DescribeNetworkAcls", Filters=of_vpc + default)["NetworkAcls"]
        tables = aws.ec2("DescribeRouteTables", Filters=of_vpc + main)["RouteTables"]
        named_default = [{"Name": "group-name", "Values": ["default"]}]
        groups = aws.ec2("DescribeSecurityGroups", Filters=of_vpc + named_default)["SecurityGroups"]
        main_table = tables[0]["RouteTableId"] if tables else None
        return {
            "arn": aws.arn("ec2", f"vpc/{identity}", vpc.get("OwnerId")),
            "cidrBlock": vpc["CidrBlock"],
            "instanceTenancy": vpc.get("InstanceTenancy"),
            "dhcpOptionsId": vpc.get("DhcpOptionsId"),
            "ownerId": vpc.get("OwnerId"),
            "defaultNetworkAclId": acls[0]["NetworkAclId"] if acls else None,
            "mainRouteTableId": main_table,
            "defaultRouteTableId": known.get("defaultRouteTableId") or main_table,
            "defaultSecurityGroupId": groups[0]["GroupId"] if groups else None,
            "ipv6AssociationId": "",
            "ipv6CidrBlock": "",
            "tagsAll": remote_tags(aws.session.config, vpc.get("Tags")),
            **{name: _attribute(aws, identity, attribute) for name, attribute, _ in _ATTRIBUTES},
        }

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        for name, attribute, _ in _ATTRIBUTES:
            if name in changed:
                aws.ec2("ModifyVpcAttribute", VpcId=identity, **{attribute: {"Value": bool(new.get(name))}})
        if "instanceTenancy" in changed:
            aws.ec2("ModifyVpcTenancy", VpcId=identity, InstanceTenancy=new["instanceTenancy"])
        return identity

    def also_replaces(
        self, aws: Region, identity: str, difference: Difference, state: Properties, new: Properties
    ) -> set[str]:
        # AWS can only ever loosen a VPC's tenancy.
        return set() if new.get("instanceTenancy") == "default" else {"instanceTenancy"}

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(aws, "DeleteVpc", _GONE, timeout, while_in_use=("DependencyViolation",), VpcId=identity)
        Wait(timeout).until_gone(aws.pace, lambda: _state(aws, identity))


def find_vpc(aws: Region, identity: str) -> Any:
    return found(aws, "DescribeVpcs", "Vpcs", _GONE, VpcIds=[identity])


def _state(aws: Region, identity: str) -> str | None:
    vpc = find_vpc(aws, identity)
    return None if vpc is None else str(vpc["State"])


def _attribute(aws: Region, identity: str, attribute: str) -> bool:
    answer = aws.ec2("DescribeVpcAttribute", VpcId=identity, Attribute=attribute[0].lower() + attribute[1:])
    return bool(answer.get(attribute, {}).get("Value", False))
