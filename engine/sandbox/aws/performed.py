"""The resource types that the stand-in performs."""

from engine.sandbox.aws.access_entry import AccessEntry
from engine.sandbox.aws.event_rule import EventRule, EventTarget
from engine.sandbox.aws.instance import Instance
from engine.sandbox.aws.instance_profile import InstanceProfile
from engine.sandbox.aws.internet_gateway import InternetGateway
from engine.sandbox.aws.launch_template import LaunchTemplate
from engine.sandbox.aws.queue import Queue, QueuePolicy
from engine.sandbox.aws.resource import Resource
from engine.sandbox.aws.role import Role
from engine.sandbox.aws.role_policy_attachment import RolePolicyAttachment
from engine.sandbox.aws.route import Route
from engine.sandbox.aws.route_table import RouteTable
from engine.sandbox.aws.route_table_association import RouteTableAssociation
from engine.sandbox.aws.security_group import SecurityGroup
from engine.sandbox.aws.security_group_rule import SecurityGroupEgressRule, SecurityGroupIngressRule
from engine.sandbox.aws.subnet import Subnet
from engine.sandbox.aws.vpc import Vpc

PERFORMED: dict[str, Resource] = {
    resource.token: resource
    for resource in (
        Vpc(),
        Subnet(),
        InternetGateway(),
        RouteTable(),
        Route(),
        RouteTableAssociation(),
        SecurityGroup(),
        SecurityGroupIngressRule(),
        SecurityGroupEgressRule(),
        Role(),
        RolePolicyAttachment(),
        InstanceProfile(),
        LaunchTemplate(),
        Instance(),
        AccessEntry(),
        Queue(),
        QueuePolicy(),
        EventRule(),
        EventTarget(),
    )
}
