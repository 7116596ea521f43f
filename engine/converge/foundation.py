"""What an environment stands on: its providers, its network when owned, the roles of its nodes."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
from attrs import frozen

from engine.converge import urns
from engine.model.canonical import digest
from engine.model.document import DesiredDocument, Foundation
from engine.model.environment import Environment, NetworkMode
from engine.model.fault import Fault

# A subnet is an eighth of the network: a /19, with 8,187 addresses, of a /16.
SUBNET_BITS = 3
# AWS allows no smaller subnet.
LONGEST_SUBNET_PREFIX = 28
# Enough for a dropped connection, and over in a second when AWS has no capacity.
LAUNCH_RETRIES = 3

_NODES_ASSUME_IT = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)


class NetworkTooSmall(Fault):
    """The owned network's address range cannot be divided among its zones."""


@frozen
class Ground:
    """Where claims are put: ids, or outputs that will be, and the resources that have to stand before.

    `subnet_ids` and `before_launch` are by zone; `node_roles` by role name.
    """

    security_group_id: pulumi.Input[str] | None
    subnet_ids: Mapping[str, pulumi.Input[str]]
    before_launch: Mapping[str, tuple[pulumi.Resource, ...]]
    node_roles: Mapping[str, tuple[pulumi.Resource, ...]]

    def resources(self) -> tuple[pulumi.Resource, ...]:
        """All that it names, each once."""
        named = [one for group in (*self.before_launch.values(), *self.node_roles.values()) for one in group]
        return tuple(dict.fromkeys(named))


class FoundationParts(pulumi.ComponentResource):
    """The tree's node for everything that is no claim; its outputs are what was declared, in short."""

    def __init__(self, environment: str) -> None:
        super().__init__(urns.FOUNDATION, environment)
        self.parts: list[pulumi.CustomResource] = []

    def keep(self, part: Any) -> Any:
        self.parts.append(part)
        return part

    def finish(self, declared: str) -> None:
        """The digest is stored only when every part stands, so that a half-made foundation is seen as such."""
        ids: list[Any] = [part.id for part in self.parts]
        names: list[Any] = [part.urn for part in self.parts]
        standing = pulumi.Output.all(*ids).apply(lambda _: declared)
        self.register_outputs({urns.DIGEST: standing, urns.PARTS: pulumi.Output.all(*names)})


def foundation_digest(document: DesiredDocument, environment: Environment) -> str:
    """Of everything that the foundation is declared from, launch templates apart: those have names of their own."""
    foundation = document.foundation
    declared = {
        "network": network_plan(foundation) if foundation.network_mode is NetworkMode.OWNED else None,
        "discovery_tags": dict(foundation.discovery_tags),
        "roles": sorted(foundation.roles),
        "role_policies": sorted(foundation.role_policies),
        "access_entry": environment.cluster.name if foundation.access_entry else None,
        "tags": _tags(environment, environment.name),
        "cluster": environment.cluster.name,
        "provider": provider_arguments(environment),
    }
    return digest(declared)[:16]


def provider_arguments(environment: Environment) -> dict[str, Any]:
    """The AWS provider's inputs: of the environment alone, so that nothing ambient changes a provider."""
    arguments: dict[str, Any] = {"region": environment.region}
    if environment.endpoint_url is not None:
        services = ("ec2", "iam", "eks", "ssm", "sts")
        arguments["endpoints"] = [dict.fromkeys(services, environment.endpoint_url)]
        arguments["skip_credentials_validation"] = True
        arguments["skip_metadata_api_check"] = True
        arguments["skip_requesting_account_id"] = True
    return arguments


def declare_providers(environment: Environment) -> tuple[aws.Provider, aws.Provider]:
    """(everything else, launches)."""
    arguments = provider_arguments(environment)
    if "endpoints" in arguments:
        arguments["endpoints"] = [aws.ProviderEndpointArgs(**one) for one in arguments["endpoints"]]
    everything_else = aws.Provider(urns.EVERYTHING_ELSE, **arguments)
    launches = aws.Provider(urns.LAUNCHES, **arguments, max_retries=LAUNCH_RETRIES)
    return everything_else, launches


def declare_foundation(
    document: DesiredDocument, environment: Environment, provider: aws.Provider, *, protect: bool
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


def network_plan(foundation: Foundation) -> dict[str, str]:
    """The address range of each zone's subnet.

    A zone's last letter chooses its range, so that a zone added later moves no other; where two zones share a
    letter (local zones), their order does. Raises NetworkTooSmall.
    """
    network = ipaddress.ip_network(foundation.cidr)
    bits = min(SUBNET_BITS, LONGEST_SUBNET_PREFIX - network.prefixlen)
    zones = sorted(foundation.zones)
    if bits < 0 or len(zones) > 2**bits:
        raise NetworkTooSmall(
            f"network.cidr {foundation.cidr} has no room for a subnet in each of {len(zones)} zones",
            f"choose a range of /{LONGEST_SUBNET_PREFIX - SUBNET_BITS} or larger for up to {2**SUBNET_BITS} zones",
        )
    letters = [ord(zone[-1]) - ord("a") for zone in zones]
    are_usable = len(set(letters)) == len(zones) and all(0 <= letter < 2**bits for letter in letters)
    ranges = list(network.subnets(prefixlen_diff=bits))
    places = letters if are_usable else list(range(len(zones)))
    return {zone: str(ranges[place]) for zone, place in zip(zones, places, strict=True)}


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
        return _tags(environment, f"{name}-{part}" if part else name)

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
                **_tags(environment, name),
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
    role = parts.keep(
        aws.iam.Role(name, name=name, assume_role_policy=_NODES_ASSUME_IT, tags=_tags(environment, name), opts=options)
    )
    needed: list[pulumi.Resource] = [
        parts.keep(
            aws.iam.RolePolicyAttachment(attachment_name(name, policy), role=role.name, policy_arn=policy, opts=options)
        )
        for policy in sorted(foundation.role_policies)
    ]
    needed.append(
        parts.keep(
            aws.iam.InstanceProfile(name, name=name, role=role.name, tags=_tags(environment, name), opts=options)
        )
    )
    if foundation.access_entry:
        entry = aws.eks.AccessEntry(
            name,
            cluster_name=environment.cluster.name,
            principal_arn=role.arn,
            type="EC2_LINUX",
            tags=_tags(environment, name),
            opts=options,
        )
        needed.append(parts.keep(entry))
    return tuple(needed)


def attachment_name(role: str, policy_arn: str) -> str:
    return f"{role}-{policy_arn.rsplit('/', 1)[-1]}"


def _tags(environment: Environment, name: str) -> dict[str, str]:
    return {**environment.tags, "Name": name, "nodewright.dev/environment": environment.name}
