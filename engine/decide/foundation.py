"""What the environment stands on: its network, its node roles, and the launch templates that claims boot from."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.claim import Claim
from engine.model.document import DesiredDocument, Foundation, LaunchTemplate
from engine.model.environment import Environment, NetworkMode
from engine.model.policy import Policy
from engine.policy.launch_template import role_name


def foundation(
    claims: Iterable[Claim],
    new_templates: Iterable[LaunchTemplate],
    published: DesiredDocument | None,
    policy: Policy,
    environment: Environment,
) -> Foundation:
    """The foundation under these claims.

    A template that a claim boots from is carried over as it was published; one that no claim boots from leaves. Roles
    are those of the node classes that pools use, and those that a carried template still needs.
    """
    wanted = {claim.inputs.launch_template for claim in claims}
    known = {template.name: template for template in new_templates}
    known.update({template.name: template for template in published.foundation.launch_templates} if published else {})
    templates = tuple(known[name] for name in sorted(wanted & known.keys()))
    return Foundation(
        network_mode=environment.network.mode,
        cidr=environment.network.cidr,
        zones=environment.network.zones,
        discovery_tags=environment.network.discovery_tags,
        roles=_roles(templates, published, policy, environment),
        role_policies=environment.node_role_policies,
        launch_templates=templates,
        access_entry=environment.cluster.owns_access_entry,
        interruption_queue=environment.interruption_queue if environment.owns_interruption_queue else "",
    )


def has_changed(foundation: Foundation, published: DesiredDocument | None) -> bool:
    """Whether there is anything to make, change or take away. Before the first document, an environment that owns
    nothing has nothing to make."""
    if published is not None:
        return foundation != published.foundation
    owns = foundation.network_mode is NetworkMode.OWNED or foundation.access_entry
    return owns or bool(foundation.roles or foundation.launch_templates or foundation.interruption_queue)


def _roles(
    templates: Iterable[LaunchTemplate],
    published: DesiredDocument | None,
    policy: Policy,
    environment: Environment,
) -> tuple[str, ...]:
    used = {pool.node_class for pool in policy.node_pools}
    roles = {role_name(each, environment) for each in policy.node_classes if each.name in used}
    made = set(published.foundation.roles) if published else set()
    roles |= {template.role for template in templates if template.role in made}
    return tuple(sorted(role for role in roles if role is not None))
