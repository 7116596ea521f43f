"""What an environment stands on: its network when owned, the roles of its nodes, its queue when owned."""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from engine.converge.ground import FoundationParts, Ground, PartsMaker, attachment_name, foundation_digest, owned_tags
from engine.converge.interruption_queue import lay_interruption_queue
from engine.converge.subnets import network_plan
from engine.model.document import DesiredDocument, Foundation
from engine.model.environment import Environment, NetworkMode

_NODES_ASSUME_IT = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)


def declare_foundation(
    document: DesiredDocument, environment: Environment, provider: pulumi.ProviderResource, *, protect: bool
) -> Ground:
    """Declare network, queue and roles; `protect` guards the network against deletion. Raises NetworkTooSmall."""
    parts = FoundationParts(environment.name)
    options = pulumi.ResourceOptions(parent=parts, provider=provider)
    ground = lay_foundation(parts, document.foundation, environment, options, protect=protect)
    parts.finish(foundation_digest(document, environment))
    return ground


def lay_foundation(
    parts: PartsMaker,
    foundation: Foundation,
    environment: Environment,
    options: pulumi.ResourceOptions,
    *,
    protect: bool,
) -> Ground:
    """Name every part of the foundation to `parts`, what others refer to first. Raises NetworkTooSmall."""
    ground = Ground(security_group_id=None, subnet_ids={}, before_launch={}, node_roles={})
    if foundation.network_mode is NetworkMode.OWNED:
        ground = _owned_network(parts, foundation, environment, options, protect)
    if foundation.interruption_queue:
        lay_interruption_queue(parts, foundation.interruption_queue, environment, options)
    roles = {name: _node_role(parts, name, foundation, environment, options) for name in sorted(foundation.roles)}
    return Ground(ground.security_group_id, ground.subnet_ids, ground.before_launch, roles)


def _owned_network(
    parts: PartsMaker,
    foundation: Foundation,
    environment: Environment,
    options: pulumi.ResourceOptions,
    protect: bool,
) -> Ground:
    guarded = pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(protect=protect))
    name, tags = environment.name, owned_tags(environment, environment.name)
    vpc = parts.make(
        aws.ec2.Vpc,
        name,
        guarded,
        cidr_block=foundation.cidr,
        enable_dns_hostnames=True,
        enable_dns_support=True,
        tags=tags,
    )
    gateway = parts.make(aws.ec2.InternetGateway, name, options, vpc_id=vpc.id, tags=tags)
    table = parts.make(aws.ec2.RouteTable, name, options, vpc_id=vpc.id, tags=tags)
    way_out = parts.make(
        aws.ec2.Route,
        f"{name}-internet",
        options,
        route_table_id=table.id,
        destination_cidr_block="0.0.0.0/0",
        gateway_id=gateway.id,
    )
    group = _security_group(parts, vpc, foundation, environment, options, guarded)
    after_route = pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=[way_out]))
    shared = {**foundation.discovery_tags, f"kubernetes.io/cluster/{environment.cluster.name}": "shared"}
    subnets, before = {}, {}
    for zone, cidr in network_plan(foundation).items():
        of_zone = f"{name}-{zone}"
        subnet = parts.make(
            aws.ec2.Subnet,
            of_zone,
            guarded,
            vpc_id=vpc.id,
            cidr_block=cidr,
            availability_zone=zone,
            # The network has no NAT gateway: a node reaches its cluster by an address of its own.
            map_public_ip_on_launch=True,
            tags={**shared, **owned_tags(environment, of_zone)},
        )
        association = parts.make(
            aws.ec2.RouteTableAssociation, of_zone, after_route, subnet_id=subnet.id, route_table_id=table.id
        )
        subnets[zone], before[zone] = subnet.id, (subnet, association, group)
    return Ground(group.id, subnets, before, {})


def _security_group(
    parts: PartsMaker,
    vpc: aws.ec2.Vpc,
    foundation: Foundation,
    environment: Environment,
    options: pulumi.ResourceOptions,
    guarded: pulumi.ResourceOptions,
) -> aws.ec2.SecurityGroup:
    """Nodes talk to each other and to the outside. Rules are resources of their own, so that others can be added."""
    name = environment.name
    owned = {**foundation.discovery_tags, f"kubernetes.io/cluster/{environment.cluster.name}": "owned"}
    group = parts.make(
        aws.ec2.SecurityGroup,
        name,
        guarded,
        name=f"nodewright-{name}",
        description=f"Nodes of environment {name}",
        vpc_id=vpc.id,
        tags={**owned, **owned_tags(environment, name)},
    )
    every = {"security_group_id": group.id, "ip_protocol": "-1"}
    parts.make(aws.vpc.SecurityGroupEgressRule, f"{name}-out", options, cidr_ipv4="0.0.0.0/0", **every)
    among = f"{name}-among-nodes"
    parts.make(aws.vpc.SecurityGroupIngressRule, among, options, referenced_security_group_id=group.id, **every)
    return group


def _node_role(
    parts: PartsMaker,
    name: str,
    foundation: Foundation,
    environment: Environment,
    options: pulumi.ResourceOptions,
) -> tuple[pulumi.Resource, ...]:
    """A role that EC2 can give to nodes, its profile, and its way into the cluster: all that a boot needs."""
    tags = owned_tags(environment, name)
    role = parts.make(aws.iam.Role, name, options, name=name, assume_role_policy=_NODES_ASSUME_IT, tags=tags)
    needed: list[pulumi.Resource] = []
    for policy in sorted(foundation.role_policies):
        attached = attachment_name(name, policy)
        needed.append(parts.make(aws.iam.RolePolicyAttachment, attached, options, role=role.name, policy_arn=policy))
    needed.append(parts.make(aws.iam.InstanceProfile, name, options, name=name, role=role.name, tags=tags))
    if foundation.access_entry:
        entry = parts.make(
            aws.eks.AccessEntry,
            name,
            options,
            cluster_name=environment.cluster.name,
            principal_arn=role.arn,
            type="EC2_LINUX",
            tags=tags,
        )
        needed.append(entry)
    return tuple(needed)
