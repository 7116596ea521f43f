"""The stand-in's property names are those of pulumi_aws, all of them and no others."""

import importlib
import importlib.metadata

import pytest

from engine.sandbox.aws.performed import PERFORMED
from engine.sandbox.aws.provider import STANDS_IN_FOR

CLASSES = {
    "aws:ec2/vpc:Vpc": ("ec2", "Vpc"),
    "aws:ec2/subnet:Subnet": ("ec2", "Subnet"),
    "aws:ec2/internetGateway:InternetGateway": ("ec2", "InternetGateway"),
    "aws:ec2/routeTable:RouteTable": ("ec2", "RouteTable"),
    "aws:ec2/route:Route": ("ec2", "Route"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": ("ec2", "RouteTableAssociation"),
    "aws:ec2/securityGroup:SecurityGroup": ("ec2", "SecurityGroup"),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": ("vpc", "SecurityGroupIngressRule"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": ("vpc", "SecurityGroupEgressRule"),
    "aws:iam/role:Role": ("iam", "Role"),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": ("iam", "RolePolicyAttachment"),
    "aws:iam/instanceProfile:InstanceProfile": ("iam", "InstanceProfile"),
    "aws:ec2/launchTemplate:LaunchTemplate": ("ec2", "LaunchTemplate"),
    "aws:ec2/instance:Instance": ("ec2", "Instance"),
    "aws:eks/accessEntry:AccessEntry": ("eks", "AccessEntry"),
    "aws:sqs/queue:Queue": ("sqs", "Queue"),
    "aws:sqs/queuePolicy:QueuePolicy": ("sqs", "QueuePolicy"),
    "aws:cloudwatch/eventRule:EventRule": ("cloudwatch", "EventRule"),
    "aws:cloudwatch/eventTarget:EventTarget": ("cloudwatch", "EventTarget"),
}

# Objects whose inner properties the stand-in has a table for.
ARGUMENT_OBJECTS = {
    "launchTemplate": "InstanceLaunchTemplateArgs",
    "rootBlockDevice": "InstanceRootBlockDeviceArgs",
    "metadataOptions": "InstanceMetadataOptionsArgs",
    "cpuOptions": "InstanceCpuOptionsArgs",
    "instanceMarketOptions": "InstanceInstanceMarketOptionsArgs",
}
COMPUTED_PARTS = {"volumeId", "deviceName", "tagsAll"}


def wire_names(of: type) -> set[str]:
    return {
        value.fget._pulumi_name for value in vars(of).values() if hasattr(getattr(value, "fget", None), "_pulumi_name")
    }


def required_names(of: type) -> set[str]:
    """Arguments whose getter does not allow None."""
    return {
        value.fget._pulumi_name
        for value in vars(of).values()
        if hasattr(getattr(value, "fget", None), "_pulumi_name")
        and "None" not in str(value.fget.__annotations__["return"])
        and "Optional" not in str(value.fget.__annotations__["return"])
    }


@pytest.mark.parametrize("token", sorted(PERFORMED))
def test_inputs_and_outputs_are_those_of_the_official_package(token: str) -> None:
    module_name, name = CLASSES[token]
    module = importlib.import_module(f"pulumi_aws.{module_name}")
    resource, arguments = getattr(module, name), getattr(module, f"{name}Args")
    ours = PERFORMED[token]
    assert resource.pulumi_type == token
    assert {one.name for one in ours.table()} == wire_names(arguments)
    assert {one.name for one in ours.table() if one.required} == required_names(arguments)
    assert set(ours.outputs) == wire_names(resource) - wire_names(arguments)


@pytest.mark.parametrize("name", sorted(ARGUMENT_OBJECTS))
def test_the_parts_of_an_instances_objects_are_those_of_the_official_package(name: str) -> None:
    arguments = getattr(importlib.import_module("pulumi_aws.ec2"), ARGUMENT_OBJECTS[name])
    one = next(one for one in PERFORMED["aws:ec2/instance:Instance"].table() if one.name == name)
    assert {part.name for part in one.parts} == wire_names(arguments) - COMPUTED_PARTS


def test_the_version_stood_in_for_is_the_packages() -> None:
    assert importlib.metadata.version("pulumi_aws") == STANDS_IN_FOR
