"""What a stack holds already, so that a program can build on it without registering it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pulumi
from attrs import frozen
from pulumi.resource import DependencyResource

from engine.converge import urns
from engine.converge.foundation import Ground, attachment_name
from engine.converge.urns import Urns
from engine.model.document import DesiredDocument
from engine.model.environment import Environment, NetworkMode


@frozen
class Standing:
    """What the stack holds already, for a program that registers only what changes.

    `launches` and `everything_else` are provider references (URN::ID); `ids` are resource ids by URN.
    """

    launches: str
    everything_else: str
    ids: Mapping[str, str]


def standing_ground(document: DesiredDocument, environment: Environment, standing: Standing) -> Ground:
    """The ground of a foundation that stands: ids as literals, dependencies by URN."""
    named = standing_parts(document, environment, Urns(pulumi.get_stack()))
    return Ground(
        security_group_id=standing.ids.get(named.security_group) if named.security_group else None,
        subnet_ids={zone: standing.ids[urn] for zone, urn in named.subnets.items() if urn in standing.ids},
        before_launch={zone: _by_urn(parts) for zone, parts in named.before_launch.items()},
        node_roles={role: _by_urn(parts) for role, parts in named.node_roles.items()},
    )


@frozen
class StandingParts:
    """The URNs in a foundation that claims and templates refer to; by zone, by role."""

    security_group: str | None
    subnets: Mapping[str, str]
    before_launch: Mapping[str, tuple[str, ...]]
    node_roles: Mapping[str, tuple[str, ...]]


def standing_parts(document: DesiredDocument, environment: Environment, stack_urns: Urns) -> StandingParts:
    foundation = document.foundation
    part = stack_urns.of_foundation
    name = environment.name
    zones = sorted(foundation.zones) if foundation.network_mode is NetworkMode.OWNED else []
    group = part(urns.SECURITY_GROUP, name) if zones else None
    roles = {}
    for role in foundation.roles:
        needed = [
            part(urns.ROLE_POLICY_ATTACHMENT, attachment_name(role, policy))
            for policy in sorted(foundation.role_policies)
        ]
        needed.append(part(urns.INSTANCE_PROFILE, role))
        if foundation.access_entry:
            needed.append(part(urns.ACCESS_ENTRY, role))
        roles[role] = tuple(needed)
    subnets = {zone: part(urns.SUBNET, f"{name}-{zone}") for zone in zones}
    before = {
        zone: (subnets[zone], part(urns.ROUTE_TABLE_ASSOCIATION, f"{name}-{zone}"), group or "") for zone in zones
    }
    return StandingParts(security_group=group, subnets=subnets, before_launch=before, node_roles=roles)


def _by_urn(parts: Iterable[str]) -> tuple[pulumi.Resource, ...]:
    """Resources that stand, named as dependencies without being registered."""
    return tuple(DependencyResource(urn) for urn in parts)
