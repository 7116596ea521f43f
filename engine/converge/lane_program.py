"""The Pulumi program of a lane beside the main one: claims alone, on ground that the main stack holds.

What they stand on is given by literal ids, so that no stack refers to another one, and two updates can run at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.converge import urns
from engine.converge.claims import NodeSets
from engine.converge.ground import Ground
from engine.converge.placing import declare_claims
from engine.converge.providers import declare_launches
from engine.converge.urns import Urns
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.environment import Environment, NetworkMode


def declare_lane(
    document: DesiredDocument,
    environment: Environment,
    ground_ids: Mapping[str, str],
    *,
    claims: Sequence[Claim],
    adopt: Mapping[str, str],
) -> None:
    """Declare these new or unfinished claims. `ground_ids` are the main stack's resource ids by URN.

    Also with no claims the provider is declared, so that what leaves is deleted where the environment is now.
    Raises ClaimWithoutPlace.
    """
    launches = declare_launches(environment)
    ground = _ground(document, environment, ground_ids)
    declare_claims(claims, document, ground, NodeSets(), {}, launches, adopt)


def lacking_ground(
    claim: Claim, document: DesiredDocument, environment: Environment, ground_ids: Mapping[str, str]
) -> str:
    """What the claim would stand on and the main stack does not hold, by name; empty when all of it is there."""
    main = Urns(environment.name)
    needed = [
        main.template(template)
        for template in document.foundation.launch_templates
        if template.name == claim.inputs.launch_template
    ]
    if document.foundation.network_mode is NetworkMode.OWNED and claim.inputs.subnet_id is None:
        needed.append(main.of_foundation(urns.SUBNET, f"{environment.name}-{claim.inputs.zone}"))
        needed.append(main.of_foundation(urns.SECURITY_GROUP, environment.name))
    return ", ".join(urns.name_of(urn) for urn in needed if urn not in ground_ids)


def _ground(document: DesiredDocument, environment: Environment, ground_ids: Mapping[str, str]) -> Ground:
    part = Urns(environment.name).of_foundation
    subnets = {}
    if document.foundation.network_mode is NetworkMode.OWNED:
        urn_of = {zone: part(urns.SUBNET, f"{environment.name}-{zone}") for zone in document.foundation.zones}
        subnets = {zone: ground_ids[urn] for zone, urn in urn_of.items() if urn in ground_ids}
    return Ground(
        security_group_id=ground_ids.get(part(urns.SECURITY_GROUP, environment.name)) if subnets else None,
        subnet_ids=subnets,
        before_launch={},
        node_roles={},
    )
