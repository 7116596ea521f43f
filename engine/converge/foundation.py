"""What an environment stands on: its network when owned, the roles of its nodes."""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from engine.converge.ground import FoundationParts, Ground, attachment_name, foundation_digest, owned_tags
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
    """Declare network and roles; `protect` guards the network against deletion. Raises NetworkTooSmall."""
    parts = FoundationParts(environment.name)
    foundation = document.foundation
    options = pulumi.ResourceOptions(parent=parts, provider=provider)
    ground = Ground(security_group_id=None, subnet_ids={}, before_launch={}, node_roles={})
    if foundation.network_mode is NetworkMode.OWNED:
        ground = _owned_network(parts, foundation, environment, options, protect)
    roles = {name: _node_role(parts, name, foundation, environment, options) for name in sorted(foundation.roles)}
    parts.finish(foundation_digest(document, environment))
    return Ground(ground.security_group_id, ground.subnet_ids, ground.before_launch, roles)


def _owned_network(
    parts: FoundationParts,
    foundation: Foundation,
    environment: Environment,
    options: pulumi.ResourceOptions,
    protect: bool,
) -> Ground:
    guarded = pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(protect=protect))
    name = environment.name

    def tags(part: str) -> dict[str, str]:
        return owned_tags(environment, f"{name}-{part}" if part else name)

    vpc = parts.keep(
        aws.ec2.Vpc(
            name,
            cidr_block=foundation.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=tags(""),
            opts=guarded,
        )
    )
    gateway = parts.keep(aws.ec2.InternetGateway(name, vpc_id=vpc.id, tags=tags(""), opts=options))
    table = parts.keep(aws.ec2.RouteTable(name, vpc_id=vpc.id, tags=tags(""), opts=options))
    way_out = parts.keep(
        aws.ec2.Route(
            f"{name}-internet",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=options,
        )
    )
    group = _security_group(parts, vpc, foundation, environment, options, guarded)
    after_route = pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=[way_out]))
    cluster_tag = {f"kubernetes.io/cluster/{environment.cluster.name}": "shared"}
    subnets, before = {}, {}
    for zone, cidr in network_plan(foundation).items():
        subnet = parts.keep(
            aws.ec2.Subnet(
                f"{name}-{zone}",
                vpc_id=vpc.id,
                cidr_block=cidr,
                availability_zone=zone,
                # The network has no NAT gateway: a node reaches its cluster by an address of its own.
                map_public_ip_on_launch=True,
                tags={**foundation.discovery_tags, **cluster_tag, **tags(zone)},
                opts=guarded,
            )
        )
        association = parts.keep(
            aws.ec2.RouteTableAssociation(
                f"{name}-{zone}", subnet_id=subnet.id, route_table_id=table.id, opts=after_route
            )
        )
        subnets[zone], before[zone] = subnet.id, (subnet, association, group)
    return Ground(group.id, subnets, before, {})


def _security_group(
    parts: FoundationParts,
    vpc: aws.ec2.Vpc,
    foundation: Foundation,
    environment: Environment,
    options: pulumi.ResourceOptions,
    guarded: pulumi.ResourceOptions,
) -> aws.ec2.SecurityGroup:
    """Nodes talk to each other and to the outside. Rules are resources of their own, so that others can be added."""
    name = environment.name
    group: aws.ec2.SecurityGroup = parts.keep(
        aws.ec2.SecurityGroup(
            name,
            name=f"nodewright-{name}",
            description=f"Nodes of environment {name}",
            vpc_id=vpc.id,
            tags={
                **foundation.discovery_tags,
                f"kubernetes.io/cluster/{environment.cluster.name}": "owned",
                **owned_tags(environment, name),
            },
            opts=guarded,
        )
    )
    parts.keep(
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-out", security_group_id=group.id, ip_protocol="-1", cidr_ipv4="0.0.0.0/0", opts=options
        )
    )
    parts.keep(
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-among-nodes",
            security_group_id=group.id,
            ip_protocol="-1",
            referenced_security_group_id=group.id,
            opts=options,
        )
    )
    return group


def _node_role(
    parts: FoundationParts,
    name: str,
    foundation: Foundation,
    environment: Environment,
    options: pulumi.ResourceOptions,
) -> tuple[pulumi.Resource, ...]:
    """A role that EC2 can give to nodes, its profile, and its way into the cluster: all that a boot needs."""
    tags = owned_tags(environment, name)
    role = parts.keep(aws.iam.Role(name, name=name, assume_role_policy=_NODES_ASSUME_IT, tags=tags, opts=options))
    needed: list[pulumi.Resource] = [
        parts.keep(
            aws.iam.RolePolicyAttachment(attachment_name(name, policy), role=role.name, policy_arn=policy, opts=options)
        )
        for policy in sorted(foundation.role_policies)
    ]
    needed.append(parts.keep(aws.iam.InstanceProfile(name, name=name, role=role.name, tags=tags, opts=options)))
    if foundation.access_entry:
        entry = aws.eks.AccessEntry(
            name,
            cluster_name=environment.cluster.name,
            principal_arn=role.arn,
            type="EC2_LINUX",
            tags=tags,
            opts=options,
        )
        needed.append(parts.keep(entry))
    return tuple(needed)
