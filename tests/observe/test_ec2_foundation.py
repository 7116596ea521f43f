"""Each part of a foundation is found again by what it was made from, and only the environment's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from engine.model import labels
from engine.observe.ec2_foundation import Ec2FoundationFinder

REGION = "us-east-1"
TAGS = {labels.TAG_NAME: "prod", labels.TAG_ENVIRONMENT: "prod"}


@pytest.fixture
def aws() -> Iterator[Any]:
    with mock_aws():
        yield boto3.session.Session(region_name=REGION)


def find(kind: str, **inputs: Any) -> str | None:
    return Ec2FoundationFinder(None, REGION).find(kind, inputs)


def tagged(kind: str, tags: dict[str, str] | None = None) -> list[dict[str, Any]]:
    pairs = [{"Key": key, "Value": value} for key, value in (tags or TAGS).items()]
    return [{"ResourceType": kind, "Tags": pairs}]


def test_the_parts_of_a_network_are_found_by_tags_and_place(aws: Any) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tagged("vpc"))["Vpc"]["VpcId"]
    other = {**TAGS, labels.TAG_ENVIRONMENT: "test"}
    ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tagged("vpc", other))
    assert find("aws:ec2/vpc:Vpc", tags=TAGS, cidrBlock="10.0.0.0/16") == vpc
    assert find("aws:ec2/vpc:Vpc", tags={**TAGS, labels.TAG_NAME: "another"}) is None

    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/19")["Subnet"]["SubnetId"]
    assert find("aws:ec2/subnet:Subnet", vpcId=vpc, cidrBlock="10.0.0.0/19") == subnet
    assert find("aws:ec2/subnet:Subnet", vpcId=vpc, cidrBlock="10.0.32.0/19") is None

    gateway = ec2.create_internet_gateway(TagSpecifications=tagged("internet-gateway"))
    gateway_id = gateway["InternetGateway"]["InternetGatewayId"]
    assert find("aws:ec2/internetGateway:InternetGateway", vpcId=vpc, tags=TAGS) == gateway_id
    ec2.attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway_id)

    made = ec2.create_route_table(VpcId=vpc, TagSpecifications=tagged("route-table"))
    table = made["RouteTable"]["RouteTableId"]
    assert find("aws:ec2/routeTable:RouteTable", vpcId=vpc, tags=TAGS) == table

    route = {"routeTableId": table, "destinationCidrBlock": "0.0.0.0/0"}
    assert find("aws:ec2/route:Route", **route) is None
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway_id)
    assert find("aws:ec2/route:Route", **route) == f"{table}_0.0.0.0/0"

    place = {"routeTableId": table, "subnetId": subnet}
    kind = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    assert find(kind, **place) is None
    associated = ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    assert find(kind, **place) == associated["AssociationId"]


def test_a_security_group_and_its_rules_are_found_and_told_apart(aws: Any) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="nodewright-prod", Description="nodes", VpcId=vpc)["GroupId"]
    assert find("aws:ec2/securityGroup:SecurityGroup", vpcId=vpc, name="nodewright-prod") == group
    assert find("aws:ec2/securityGroup:SecurityGroup", vpcId=vpc, name="nodewright-test") is None

    among = {"securityGroupId": group, "ipProtocol": "-1", "referencedSecurityGroupId": group}
    out = {"securityGroupId": group, "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"}
    ingress = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    egress = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    assert find(ingress, **among) is None
    permission = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    made = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])
    assert find(ingress, **among) == made["SecurityGroupRules"][0]["SecurityGroupRuleId"]
    # EC2 gives every new group this one.
    assert str(find(egress, **out)).startswith("sgr-")
    assert find(ingress, **out) is None


def test_what_is_named_is_found_by_its_name(aws: Any) -> None:
    ec2, iam = aws.client("ec2"), aws.client("iam")
    kinds = {
        "aws:ec2/launchTemplate:LaunchTemplate": "prod-gpu-0123456789",
        "aws:iam/role:Role": "prod-node",
        "aws:iam/instanceProfile:InstanceProfile": "prod-node",
    }
    assert [find(kind, name=name) for kind, name in kinds.items()] == [None, None, None]
    template = ec2.create_launch_template(
        LaunchTemplateName="prod-gpu-0123456789", LaunchTemplateData={"ImageId": "ami-12345678"}
    )
    iam.create_role(RoleName="prod-node", AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName="prod-node")
    assert [find(kind, name=name) for kind, name in kinds.items()] == [
        template["LaunchTemplate"]["LaunchTemplateId"],
        "prod-node",
        "prod-node",
    ]


def test_what_has_the_name_and_not_the_tags_is_somebody_elses(aws: Any) -> None:
    iam = aws.client("iam")
    iam.create_role(RoleName="prod-node", AssumeRolePolicyDocument="{}")
    assert find("aws:iam/role:Role", name="prod-node", tags=TAGS) is None
    iam.tag_role(RoleName="prod-node", Tags=[{"Key": key, "Value": value} for key, value in TAGS.items()])
    assert find("aws:iam/role:Role", name="prod-node", tags=TAGS) == "prod-node"


def test_a_policys_attachment_is_found_by_role_and_policy(aws: Any) -> None:
    iam = aws.client("iam")
    iam.create_role(RoleName="prod-node", AssumeRolePolicyDocument="{}")
    document = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}]}'
    policy = iam.create_policy(PolicyName="nodes", PolicyDocument=document)["Policy"]["Arn"]
    attached = {"role": "prod-node", "policyArn": policy}
    kind = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    assert find(kind, **attached) is None
    iam.attach_role_policy(RoleName="prod-node", PolicyArn=policy)
    assert find(kind, **attached) == f"prod-node/{policy}"


def test_a_queue_and_what_feeds_it_are_found_by_their_names_and_tags(aws: Any) -> None:
    sqs, events = aws.client("sqs"), aws.client("events")
    kinds: dict[str, dict[str, Any]] = {
        "aws:sqs/queue:Queue": {"name": "prod-queue", "tags": TAGS},
        "aws:sqs/queuePolicy:QueuePolicy": {"queueUrl": "https://sqs.us-east-1.amazonaws.com/1/prod-queue"},
        "aws:cloudwatch/eventRule:EventRule": {"name": "prod-spot", "tags": TAGS},
        "aws:cloudwatch/eventTarget:EventTarget": {"rule": "prod-spot", "targetId": "queue"},
    }
    assert [find(kind, **inputs) for kind, inputs in kinds.items()] == [None] * 4
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    url = sqs.create_queue(QueueName="prod-queue", Attributes={"Policy": policy})["QueueUrl"]
    kinds["aws:sqs/queuePolicy:QueuePolicy"]["queueUrl"] = url
    rule = events.put_rule(Name="prod-spot", EventPattern='{"source": ["aws.ec2"]}')["RuleArn"]
    assert [find(kind, **inputs) for kind, inputs in kinds.items()] == [None, url, None, None]
    sqs.tag_queue(QueueUrl=url, Tags=TAGS)
    events.tag_resource(ResourceARN=rule, Tags=[{"Key": key, "Value": value} for key, value in TAGS.items()])
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_targets(Rule="prod-spot", Targets=[{"Id": "queue", "Arn": arn}])
    assert [find(kind, **inputs) for kind, inputs in kinds.items()] == [url, url, "prod-spot", "prod-spot-queue"]
