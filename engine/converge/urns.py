"""How Pulumi names what an environment is made of. Each name can be computed without running anything."""

from __future__ import annotations

from attrs import frozen

from engine.model.claim import Claim
from engine.model.document import LaunchTemplate

PROJECT = "nodewright"

FOUNDATION = "nodewright:index:Foundation"
NODE_SET = "nodewright:index:GpuNodeSet"
COMPONENTS = frozenset({FOUNDATION, NODE_SET})

PROVIDER = "pulumi:providers:aws"
VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
INTERNET_GATEWAY = "aws:ec2/internetGateway:InternetGateway"
ROUTE_TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
ROUTE_TABLE_ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
ROLE = "aws:iam/role:Role"
ROLE_POLICY_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
INSTANCE_PROFILE = "aws:iam/instanceProfile:InstanceProfile"
ACCESS_ENTRY = "aws:eks/accessEntry:AccessEntry"
QUEUE = "aws:sqs/queue:Queue"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"
EVENT_RULE = "aws:cloudwatch/eventRule:EventRule"
EVENT_TARGET = "aws:cloudwatch/eventTarget:EventTarget"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
INSTANCE = "aws:ec2/instance:Instance"

# The outputs of the foundation's component: what it was declared from, in short, and the URNs of its parts.
DIGEST = "digest"
PARTS = "parts"

# Launches have a provider of their own: the AWS provider retries a lack of capacity as often as `maxRetries` says,
# which by default takes up to half an hour in silence, while the rest is served best by many retries.
EVERYTHING_ELSE = "aws"
LAUNCHES = "aws-launches"


@frozen
class Urns:
    """The URNs of one stack. `environment` names the foundation's component; lanes have their environment's."""

    stack: str

    def node_set(self, node_pool: str) -> str:
        return self._urn(NODE_SET, node_pool)

    def claim(self, claim: Claim) -> str:
        return self._urn(f"{NODE_SET}${INSTANCE}", claim.name)

    def stray(self, instance_id: str) -> str:
        """A machine that was taken into the state only to be deleted: it has no pool above it."""
        return self._urn(INSTANCE, instance_id)

    def template(self, template: LaunchTemplate) -> str:
        return self._urn(f"{NODE_SET}${LAUNCH_TEMPLATE}", template.name)

    def foundation(self, environment: str) -> str:
        return self._urn(FOUNDATION, environment)

    def of_foundation(self, kind: str, name: str) -> str:
        """A part of the foundation by its type and name."""
        return self._urn(f"{FOUNDATION}${kind}", name)

    def provider(self, name: str) -> str:
        return self._urn(PROVIDER, name)

    def _urn(self, kinds: str, name: str) -> str:
        return f"urn:pulumi:{self.stack}::{PROJECT}::{kinds}::{name}"


def name_of(urn: str) -> str:
    """The last part of a URN: a claim's or a launch template's name."""
    return urn.rsplit("::", 1)[-1]


def type_of(urn: str) -> str:
    """The resource's own type, its parents' left out."""
    return urn.split("::")[2].rsplit("$", 1)[-1]


def is_stray(urn: str) -> bool:
    """Whether the URN is one of `Urns.stray`."""
    return urn.split("::")[2] == INSTANCE
