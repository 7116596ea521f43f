"""What a stack holds already, registered again so that new claims can depend on it, and left as it is.

In a targeted update the engine takes a resource that is registered and not targeted from its state, whatever the
program says of it. So a type, a name and a parent are enough: an anchor. Dependencies that are only named by URN,
without an anchor, would be enough for one claim; with several at once the engine (3.274.1) can write a claim into the
state before the dependency that it names, which leaves a state that it refuses to read.

Anchors are registered in the order of their dependencies: the engine takes along what an anchor depends on, and
refuses a registration of something that it took along before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pulumi

from engine.converge import urns
from engine.converge.ground import FoundationParts, Ground, attachment_name
from engine.converge.urns import Urns
from engine.model.document import DesiredDocument
from engine.model.environment import Environment, NetworkMode


def anchor(
    kind: str,
    name: str,
    parent: pulumi.Resource,
    provider: pulumi.ProviderResource,
    after: Iterable[pulumi.Resource] = (),
) -> pulumi.Resource:
    """A resource that the state has and the update does not target; `after` are the anchors it may depend on."""
    options = pulumi.ResourceOptions(parent=parent, provider=provider, depends_on=list(after))
    return pulumi.CustomResource(kind, name, {}, options)


def standing_ground(
    document: DesiredDocument,
    environment: Environment,
    ids: Mapping[str, str],
    provider: pulumi.ProviderResource,
    *,
    zones: Collection[str],
    roles: Collection[str],
) -> Ground:
    """The ground of a foundation that stands, as far as `zones` and `roles` need it.

    `ids` are the state's resource ids by URN: subnets and the security group are given to claims as literals.
    """
    foundation, name = document.foundation, environment.name
    owned = [zone for zone in sorted(zones) if zone in foundation.zones]
    if foundation.network_mode is not NetworkMode.OWNED:
        owned = []
    needed_roles = [role for role in sorted(roles) if role in foundation.roles]
    if not owned and not needed_roles:
        return Ground(security_group_id=None, subnet_ids={}, before_launch={}, node_roles={})
    part = Urns(pulumi.get_stack()).of_foundation
    parts = FoundationParts(name)
    subnets, before = {}, {}
    if owned:
        group = anchor(urns.SECURITY_GROUP, name, parts, provider)
        for zone in owned:
            subnets[zone] = ids[part(urns.SUBNET, f"{name}-{zone}")]
            subnet = anchor(urns.SUBNET, f"{name}-{zone}", parts, provider)
            association = anchor(urns.ROUTE_TABLE_ASSOCIATION, f"{name}-{zone}", parts, provider, after=[subnet])
            before[zone] = (subnet, association, group)
    return Ground(
        security_group_id=ids[part(urns.SECURITY_GROUP, name)] if owned else None,
        subnet_ids=subnets,
        before_launch=before,
        node_roles={role: _role_anchors(role, document, parts, provider) for role in needed_roles},
    )


def _role_anchors(
    role: str, document: DesiredDocument, parts: FoundationParts, provider: pulumi.ProviderResource
) -> tuple[pulumi.Resource, ...]:
    """What foundation.declare_foundation makes for a role, the role itself apart."""
    foundation = document.foundation
    named = [
        (urns.ROLE_POLICY_ATTACHMENT, attachment_name(role, policy)) for policy in sorted(foundation.role_policies)
    ]
    named.append((urns.INSTANCE_PROFILE, role))
    if foundation.access_entry:
        named.append((urns.ACCESS_ENTRY, role))
    return tuple(anchor(kind, name, parts, provider) for kind, name in named)
